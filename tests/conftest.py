"""For all tests: how long an example of Hypothesis takes says more of the machine than of the code."""

from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
