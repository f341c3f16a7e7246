"""The thread that carries spans to one target.

Each target has a thread of its own, so that a collector that hangs holds up neither the loop, nor the
threads that write the log, nor the other targets. It is a daemon: a process that ends never waits for it
longer than `close` was told to.
"""

import logging
import threading
import time
from collections.abc import Sequence
from typing import Protocol

from goqueue.model.telemetry import ExportStatus
from goqueue.node.tracing.outbox import Outbox
from goqueue.node.tracing.outgoing import Outgoing

log = logging.getLogger(__name__)


class Target(Protocol):
    """Where spans go."""

    def send(self, spans: Sequence[Outgoing]) -> None:
        """Hand over a batch whole. Raises OSError with the reason when it did not arrive."""

    def close(self) -> None:
        """Let go of files and connections; a send that waits in another thread comes back soon."""


class Courier:
    """Takes spans in at any rate, and sends them at the rate the target takes them."""

    def __init__(self, status: ExportStatus, target: Target, *, waiting_max: int) -> None:
        self.status = status
        self._target = target
        self._outbox = Outbox(status, waiting_max=waiting_max)
        self._changed = threading.Condition()
        self._is_closing = False
        self._thread = threading.Thread(target=self._carry, name=f"traces_{status.name}", daemon=True)
        self._thread.start()

    def put(self, spans: Sequence[Outgoing], *, left_out: int = 0) -> None:
        """Have spans sent; so many more are not here and never will be. Returns at once."""
        with self._changed:
            self.status.dropped += left_out
            self._outbox.put(spans)
            self._changed.notify_all()

    def close(self, *, within_s: float) -> None:
        """Send what waits and end, but do not take longer than that. Blocks."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        self._thread.join(within_s)
        self._target.close()
        with self._changed:
            lost = len(self._outbox)
            self._outbox.give_up()
        if lost:
            log.warning("trace_export_cut_short", extra={"exporter": self.status.name, "lost": lost})

    def _carry(self) -> None:
        while batch := self._next_batch():
            reason = self._sent(batch)
            with self._changed:
                if not reason:
                    is_news = self._outbox.succeed()
                else:
                    is_news = self._outbox.fail(reason, now_ms=time.monotonic_ns() // 1_000_000)
            if is_news:
                self._tell(reason)
            if reason and not self._may_retry():
                return

    def _next_batch(self) -> list[Outgoing]:
        with self._changed:
            while not (batch := self._outbox.batch()) and not self._is_closing:
                self._changed.wait()
            return batch

    def _sent(self, batch: list[Outgoing]) -> str:
        """Why a batch did not arrive; empty when it did."""
        try:
            self._target.send(batch)
        except OSError as error:
            return str(error)
        except Exception as error:  # a bug here, or in a library, must not end the export without a word
            log.exception("trace_export_broken", extra={"exporter": self.status.name})
            return repr(error)
        return ""

    def _may_retry(self) -> bool:
        """Leave the target alone for a while. False when the process ends meanwhile."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closing, self._outbox.retry_ms() / 1000)
            return not self._is_closing

    def _tell(self, reason: str) -> None:
        status = self.status
        if reason:
            log.warning(
                "trace_export_failed",
                extra={
                    "exporter": status.name,
                    "reason": reason,
                    "waiting": status.waiting,
                    "dropped": status.dropped,
                },
            )
        else:
            log.info("trace_export_resumed", extra={"exporter": status.name, "dropped": status.dropped})
