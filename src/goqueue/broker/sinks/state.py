"""What the broker holds of exactly-once sinks: their machine, what tasks have staged, and a lock each."""

import asyncio
from weakref import WeakValueDictionary

from goqueue.broker.sinks.stages import Stages
from goqueue.core.transactions.sinks import Sinks
from goqueue.model.ports import Disk


class SinkState:
    def __init__(self, machine: Sinks, disk: Disk) -> None:
        self.machine = machine
        """Written through the first journal of `__transactions`."""
        self.stages = Stages(disk)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def lock(self, name: str) -> asyncio.Lock:
        """Held while a sink changes."""
        lock = self._locks.get(name)
        if lock is None:
            lock = self._locks[name] = asyncio.Lock()
        return lock
