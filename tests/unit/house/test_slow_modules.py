"""`make check` does not import modules that are slow as a whole, and leaves no fast test out with them."""

import pytest

from tests.slow_modules import is_slow_as_a_whole


@pytest.mark.parametrize(
    "source",
    [
        "import pytest\n\npytestmark = pytest.mark.slow\n",
        "pytestmark = [pytest.mark.slow, pytest.mark.timeout(60)]\n",
        "pytestmark = [\n    pytest.mark.slow,\n    pytest.mark.timeout(60),\n]\n",
    ],
)
def test_a_module_that_marks_all_its_tests_is_slow_as_a_whole(source: str) -> None:
    assert is_slow_as_a_whole(source)


@pytest.mark.parametrize(
    "source",
    [
        "@pytest.mark.slow\ndef test_one() -> None: ...\n",
        "pytestmark = pytest.mark.usefixtures('orders')\n",
        "pytestmark = pytest.mark.slowly\n",
        "def test_one() -> None:\n    pytestmark = pytest.mark.slow\n",
    ],
)
def test_a_module_with_a_test_that_may_be_fast_is_not(source: str) -> None:
    assert not is_slow_as_a_whole(source)
