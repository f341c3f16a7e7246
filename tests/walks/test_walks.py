"""Every walk is still told as it is written. `make walks` writes them anew, to be reviewed as a diff."""

from pathlib import Path

import pytest

from tests.walks.teller import told_anew, walks


@pytest.mark.parametrize("walk", walks(), ids=lambda walk: walk.stem)
def test_a_walk_is_told_as_it_is_written(walk: Path) -> None:
    text = walk.read_text(encoding="utf-8")

    assert told_anew(text) == text
