"""For all tests: what says more of the machine, or of pytest, than of the code is left out of what they do.

How long an example of Hypothesis takes is not judged. The many thousand objects of the collected tests are
put aside, so that no collection of garbage looks through them. Where slow tests are left out, the modules
that hold no others are not even imported: every worker would do so, Spark and all real clients included.
"""

import gc
from pathlib import Path

import pytest
from hypothesis import settings

from tests.slow_modules import is_slow_as_a_whole

settings.register_profile("untimed", deadline=None)
settings.register_profile("check", deadline=None, max_examples=25)
settings.load_profile("untimed")

FAST_ALONE = "not slow"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    if config.option.markexpr == FAST_ALONE and collection_path.match("test_*.py"):
        return True if is_slow_as_a_whole(collection_path.read_text(encoding="utf-8")) else None
    return None


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
