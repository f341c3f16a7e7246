"""What the broker holds of exactly-once sinks: what tasks have staged, and a lock each.

Their machines are those of journals of `__transactions`.
"""

import asyncio
from weakref import WeakValueDictionary

from goqueue.broker.sinks.stages import Stages
from goqueue.model.ports import Disk


class SinkState:
    def __init__(self, disk: Disk) -> None:
        self.stages = Stages(disk)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def lock(self, name: str) -> asyncio.Lock:
        """Held while a sink changes."""
        lock = self._locks.get(name)
        if lock is None:
            lock = self._locks[name] = asyncio.Lock()
        return lock
