"""Which key each busy message has, for groups that take messages in the order of their keys.

Not kept over a restart: it is read again from the log. Empty for all other groups.
"""

from collections.abc import Iterable

from goqueue.core.delivery.lease import Lease
from goqueue.core.delivery.runs import Run, Runs
from goqueue.model.messages import StoredMessage

NOBODY = ""
"""Holds the keys of messages that wait for their next try: no consumer may pass them."""


class KeyHolds:
    def __init__(self) -> None:
        self._keys: dict[int, bytes | None] = {}

    def unknown(self, busy: Runs) -> list[Run]:
        """Busy messages whose key is not known yet; what is not busy any more is forgotten."""
        for offset in [offset for offset in self._keys if offset not in busy]:
            del self._keys[offset]
        missing = Runs(busy)
        for offset in self._keys:
            missing.remove(offset, offset + 1)
        return list(missing)

    def learn(self, messages: Iterable[StoredMessage]) -> None:
        self._keys.update((message.offset, message.key) for message in messages)

    def holders(self, leases: Iterable[Lease], waiting: Iterable[int]) -> dict[bytes, str]:
        """Who alone may have more of each key."""
        holders: dict[bytes, str] = {}
        for lease in leases:
            for first, end in lease.offsets:
                for offset in range(first, end):
                    key = self._keys.get(offset)
                    if key is not None:
                        holders[key] = lease.consumer
        for offset in waiting:
            key = self._keys.get(offset)
            if key is not None:
                holders[key] = NOBODY
        return holders
