"""When messages were stored, as far as somebody has looked: a group that stands still is asked for often."""

from weakref import WeakKeyDictionary

from goqueue.broker.storage.readable import ReadableLog

REMEMBERED_MAX = 64
"""Times remembered of one partition: as many groups can stand still at offsets of their own."""


class StoredTimes:
    """Times by log and offset. A log that was opened anew, whose messages may differ, is another log."""

    def __init__(self) -> None:
        self._times: WeakKeyDictionary[ReadableLog, dict[int, int]] = WeakKeyDictionary()

    def get(self, log: ReadableLog, offset: int) -> int | None:
        """When the message at an offset was stored (unix ms), if that is remembered."""
        return self._times.get(log, {}).get(offset)

    def remember(self, log: ReadableLog, offset: int, stored_ms: int) -> None:
        times = self._times.setdefault(log, {})
        if len(times) >= REMEMBERED_MAX:
            del times[next(iter(times))]
        times[offset] = stored_ms
