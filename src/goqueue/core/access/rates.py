"""How fast something may go: token buckets that hold one second's worth.

A bucket is one number, the time up to which all that was taken is paid for at its rate. While that time
lies ahead, the bucket is in debt. It never lies more than a second back: that second is the burst.
"""

_NS_PER_S = 1_000_000_000
BURST_NS = _NS_PER_S
DEBT_NS_MAX = 60 * _NS_PER_S
"""What is taken beyond this is forgiven: nobody is held back so long that it looks dead."""


class Bucket:
    """So many tokens a second; 0: as many as anybody wants."""

    __slots__ = ("_paid_ns", "per_second")

    def __init__(self, per_second: int) -> None:
        self.per_second = per_second
        self._paid_ns = -BURST_NS  # full, also when the clock has only begun

    def take(self, tokens: int, *, now_ns: int) -> None:
        """Take tokens whether they are there or not."""
        if self.per_second:
            paid_ns = self._begin(now_ns) + tokens * _NS_PER_S // self.per_second
            self._paid_ns = min(paid_ns, now_ns + DEBT_NS_MAX)

    def wait_ns(self, tokens: int, *, now_ns: int) -> int:
        """How long until so many can be had. What is more than a full bucket can be had from a full one."""
        if not self.per_second:
            return 0
        wanted_ns = min(tokens * _NS_PER_S // self.per_second, BURST_NS)
        return max(self._begin(now_ns) + wanted_ns - now_ns, 0)

    def left(self, *, now_ns: int) -> int:
        """How many tokens are there."""
        return max((now_ns - self._begin(now_ns)) * self.per_second // _NS_PER_S, 0)

    def _begin(self, now_ns: int) -> int:
        return max(self._paid_ns, now_ns - BURST_NS)


class Rate:
    """Messages and bytes a second, whichever is used up first."""

    __slots__ = ("_bytes", "_messages")

    def __init__(self, *, messages: int, size_bytes: int) -> None:
        self._messages = Bucket(messages)
        self._bytes = Bucket(size_bytes)

    def change(self, *, messages: int, size_bytes: int) -> None:
        """Another rate from now on. What was taken before is paid for as it was."""
        self._messages.per_second = messages
        self._bytes.per_second = size_bytes

    def take(self, messages: int, size_bytes: int, *, now_ns: int) -> None:
        """Count what has gone through: the rate may be in debt behind it."""
        self._messages.take(messages, now_ns=now_ns)
        self._bytes.take(size_bytes, now_ns=now_ns)

    def wait_ns(self, messages: int = 0, size_bytes: int = 0, *, now_ns: int) -> int:
        """How long until so much may go through; of nothing, until there is no debt."""
        return max(
            self._messages.wait_ns(messages, now_ns=now_ns), self._bytes.wait_ns(size_bytes, now_ns=now_ns)
        )

    def messages_now(self, wanted: int, *, now_ns: int) -> int:
        """How many of the messages wanted may go through now, at least one: for whoever is not in debt."""
        return _at_hand(self._messages, wanted, now_ns)

    def bytes_now(self, wanted: int, *, now_ns: int) -> int:
        """The same for bytes."""
        return _at_hand(self._bytes, wanted, now_ns)

    def __str__(self) -> str:
        messages, size = self._messages.per_second, self._bytes.per_second
        limits = [f"{messages} messages"] * bool(messages) + [f"{size} bytes"] * bool(size)
        return " and ".join(limits) + " a second"


def _at_hand(bucket: Bucket, wanted: int, now_ns: int) -> int:
    return max(min(wanted, bucket.left(now_ns=now_ns)), 1) if bucket.per_second else wanted
