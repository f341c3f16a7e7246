"""Which modules of tests are slow as a whole: told by their text, where they say so in `pytestmark`."""

import re

_SLOW_AS_A_WHOLE = re.compile(r"^pytestmark = \[?\s*pytest\.mark\.slow\b", re.MULTILINE)


def is_slow_as_a_whole(source: str) -> bool:
    """Whether a module says of all its tests that they are slow."""
    return _SLOW_AS_A_WHOLE.search(source) is not None
