"""For all tests: how long an example of Hypothesis takes says more of the machine than of the code."""

from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.register_profile("check", deadline=None, max_examples=25)
settings.load_profile("untimed")
