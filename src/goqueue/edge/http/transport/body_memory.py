"""What the bodies of all clients' requests take together.

Counted as they arrive, not as they are told, so that nobody takes room by a promise. A body gives its room
back when its request is answered, refused or hung up on. Whoever sends a piece of a longer body while there
is no room is refused, which makes room for the others; a request that comes in one piece is served.
"""

from goqueue.model.settings import GiB

BODIES_BYTES_MAX = GiB


class BodyMemory:
    """Shared by all connections of a door."""

    __slots__ = ("_bytes_max", "held_bytes")

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self.held_bytes = 0

    @property
    def is_full(self) -> bool:
        return self.held_bytes > self._bytes_max
