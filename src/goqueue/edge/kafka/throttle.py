"""A client that is asked to slow down is told so in the reply, and not served until the time is over."""


class Throttle:
    """What the handlers of one connection ask of it."""

    __slots__ = ("hold_ms",)

    def __init__(self) -> None:
        self.hold_ms = 0
        """What has been asked for and not been taken yet. Looked at on every request."""

    def ask(self, hold_ms: int) -> None:
        """Begin nothing more for so long."""
        self.hold_ms = max(self.hold_ms, hold_ms)

    def take(self) -> int:
        """What was asked for since this was last looked at."""
        hold_ms, self.hold_ms = self.hold_ms, 0
        return hold_ms
