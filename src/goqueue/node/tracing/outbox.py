"""What waits to be sent to one target: bounded, the oldest given up first, every loss counted.

No I/O and no clock in here: the courier (`courier.py`) carries what this decides.
"""

from collections import deque
from collections.abc import Sequence

from goqueue.model.telemetry import ExportStatus
from goqueue.node.tracing.outgoing import Outgoing

BATCH_COUNT_MAX = 512
"""Spans a send. A collector takes far more; a smaller batch is less to lose and to repeat."""
ATTEMPTS_MAX = 8
"""After so many failures in a row a batch is given up: it may be the batch that is wrong, not the target."""
_RETRY_MS_FIRST = 1_000
_RETRY_MS_MAX = 30_000
_TOLD_EVERY_MS = 60_000


class Outbox:
    """Spans in order, and the batch that is under way."""

    def __init__(self, status: ExportStatus, *, waiting_max: int) -> None:
        self.status = status
        self._waiting_max = waiting_max
        self._waiting: deque[Outgoing] = deque()
        self._under_way: list[Outgoing] = []
        self._failed_in_row = 0
        self._told_ms: int | None = None

    def __len__(self) -> int:
        return len(self._waiting) + len(self._under_way)

    def put(self, spans: Sequence[Outgoing]) -> None:
        """Add spans at the end. When there is no room, those that have waited longest go."""
        self._waiting.extend(spans)
        for _ in range(len(self._waiting) - self._waiting_max):
            self._waiting.popleft()
            self.status.dropped += 1
        self.status.waiting = len(self)

    def batch(self) -> list[Outgoing]:
        """What to send now: the batch that failed before, else the next one; empty when there is nothing."""
        if not self._under_way:
            count = min(len(self._waiting), BATCH_COUNT_MAX)
            self._under_way = [self._waiting.popleft() for _ in range(count)]
        return self._under_way

    def succeed(self) -> bool:
        """The batch has arrived. True when that ends a failure that people were told of."""
        self.status.sent += len(self._under_way)
        self._finish_batch()
        was_told, self._told_ms = self._told_ms is not None, None
        self.status.last_error = ""
        return was_told

    def fail(self, reason: str, *, now_ms: int) -> bool:
        """The batch has not arrived. True when it is time to tell people, which is once a minute at most."""
        self.status.failures += 1
        self.status.last_error = reason
        self._failed_in_row += 1
        if self._failed_in_row == ATTEMPTS_MAX:
            self.status.dropped += len(self._under_way)
            self._finish_batch()
        if self._told_ms is not None and now_ms - self._told_ms < _TOLD_EVERY_MS:
            return False
        self._told_ms = now_ms
        return True

    def retry_ms(self) -> int:
        """How long to leave the target alone after a failure."""
        return min(_RETRY_MS_FIRST << max(self._failed_in_row - 1, 0), _RETRY_MS_MAX)

    def give_up(self) -> None:
        """Nothing more will be sent."""
        self.status.dropped += len(self)
        self._waiting.clear()
        self._finish_batch()

    def _finish_batch(self) -> None:
        self._under_way = []
        self._failed_in_row = 0
        self.status.waiting = len(self)
