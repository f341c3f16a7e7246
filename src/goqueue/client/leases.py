"""What a consumer has out: when leases want to be extended, and acknowledgements that wait for company.

Nothing here has a clock or a socket. A consumer's own thread and its user's meet here, hence the lock.
"""

import threading
from collections.abc import Container, Iterable

ACK_COUNT = 100
"""So many acknowledgements go in one request; the first of them waits no longer than the linger time."""


class Leases:
    """Receipts that are not settled, and receipts whose acknowledgement is on its way."""

    def __init__(self, *, visibility_ns: int | None, ack_linger_ns: int) -> None:
        self._lock = threading.Lock()
        self._visibility_ns = visibility_ns
        self._ack_linger_ns = ack_linger_ns
        self._held: dict[str, int] = {}
        """Since when, or since when last extended; the oldest first."""
        self._lost: set[str] = set()
        """Those that could not be extended. Nobody has settled them."""
        self._acks: list[str] = []
        self._first_ack_ns = 0
        self._is_flushing = False

    def hold(self, receipts: Iterable[str], *, now_ns: int) -> None:
        """Messages are out, or kept for longer, from now on."""
        with self._lock:
            for receipt in receipts:
                self._held.pop(receipt, None)
                self._held[receipt] = now_ns

    def extended(self, receipts: Iterable[str], lost: Container[str], *, now_ns: int) -> None:
        """Leases run anew from now; those that were settled meanwhile are not taken up again."""
        with self._lock:
            for receipt in receipts:
                if self._held.pop(receipt, None) is None:
                    continue
                if receipt in lost:
                    self._lost.add(receipt)
                else:
                    self._held[receipt] = now_ns

    def drop(self, receipt: str) -> None:
        """A message is settled, or lost."""
        with self._lock:
            self._held.pop(receipt, None)
            self._lost.discard(receipt)

    def is_open(self, receipt: str) -> bool:
        """Whether nobody has said yet what is to become of a message."""
        with self._lock:
            return receipt in self._held or receipt in self._lost

    def ack(self, receipt: str, *, now_ns: int) -> None:
        """A message is done; the node hears of it soon."""
        with self._lock:
            self._held.pop(receipt, None)
            self._lost.discard(receipt)
            if not self._acks:
                self._first_ack_ns = now_ns
            self._acks.append(receipt)

    def flush(self) -> None:
        """Acknowledgements go at once."""
        with self._lock:
            self._is_flushing = bool(self._acks)

    def due_acks(self, now_ns: int) -> list[str]:
        """Those to be sent now. They still wait until they are `acked`."""
        with self._lock:
            if not self._acks or self._acks_in_ns(now_ns) > 0:
                return []
            return self._acks[:ACK_COUNT]

    def acked(self, receipts: list[str], *, now_ns: int) -> None:
        """The node has answered."""
        with self._lock:
            sent = set(receipts)
            self._acks = [receipt for receipt in self._acks if receipt not in sent]
            self._first_ack_ns = now_ns
            self._is_flushing = self._is_flushing and bool(self._acks)

    def due_extensions(self, now_ns: int) -> list[str]:
        """Receipts whose lease is half over."""
        if self._visibility_ns is None:
            return []
        half_ns = self._visibility_ns // 2
        with self._lock:
            return [receipt for receipt, since_ns in self._held.items() if now_ns - since_ns >= half_ns]

    def due_in_ns(self, now_ns: int) -> int | None:
        """How long until something is to be sent; None: nothing is."""
        waits = []
        with self._lock:
            if self._acks:
                waits.append(self._acks_in_ns(now_ns))
            if self._held and self._visibility_ns is not None:
                oldest_ns = next(iter(self._held.values()))
                waits.append(max(oldest_ns + self._visibility_ns // 2 - now_ns, 0))
        return min(waits, default=None)

    def _acks_in_ns(self, now_ns: int) -> int:
        if self._is_flushing or len(self._acks) >= ACK_COUNT:
            return 0
        return max(self._first_ack_ns + self._ack_linger_ns - now_ns, 0)
