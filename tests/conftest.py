"""For all tests: what says more of the machine, or of pytest, than of the code is left out of what they do.

How long an example of Hypothesis takes is not judged. The many thousand objects of the collected tests are
put aside, so that no collection of garbage looks through them.
"""

import gc

from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.register_profile("check", deadline=None, max_examples=25)
settings.load_profile("untimed")


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
