"""How a body with times is shared."""

from typing import TypeVar

# Without a bound: the framework looks at bodies also before it knows what stands for it.
Time = TypeVar("Time")
"""Text at the door, a `datetime` in the client."""
