"""How much data is checked where everybody is served. What is more is checked by a helper process."""

CHECK_NS_MAX = 8_000_000
"""What one message may take to check."""
PREPARE_NS_MAX = 5_000_000
"""What it may take to make a checker of a prepared schema."""
EXPLAINED_PART = 4
"""To say why data does not fit takes longer than to see it: so many times less data is explained here."""


class TooMuch(Exception):
    """The answer may take long: it is to be asked for elsewhere."""
