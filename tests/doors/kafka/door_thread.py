"""A broker with its Kafka door in a thread of its own, for clients that block."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest
import uvloop

from goqueue.broker.broker import Broker
from goqueue.broker.opening import close_broker, open_broker
from goqueue.edge.authentication import AuthConfig, Authenticator, TokenReader
from goqueue.edge.kafka.config import KafkaConfig
from goqueue.edge.kafka.door import KafkaDoor
from goqueue.edge.listening import PLAIN_LISTENER, Listener
from goqueue.model.settings import BrokerConfig
from goqueue.node.clock import SystemClock
from goqueue.node.disk import FolderDisk
from goqueue.node.threads import WorkerThreads
from goqueue.testing.world.workshop import WorkshopAtHand

T = TypeVar("T")

HOST = "127.0.0.1"
PATIENCE_S = 30


class DoorThread:
    """Opened by the constructor, closed by `close`. `port` is where clients connect."""

    def __init__(
        self,
        folder: Path,
        broker_config: BrokerConfig,
        kafka_config: KafkaConfig,
        *,
        host: str = HOST,
        listener: Listener = PLAIN_LISTENER,
        auth: AuthConfig | None = None,
        tokens: Callable[[Broker], TokenReader] | None = None,
    ) -> None:
        self._tokens = tokens
        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="kafka-door")
        self._thread.start()
        self.broker: Broker
        self.door: KafkaDoor
        self.run(self._open(folder, broker_config, kafka_config, auth))
        self.port = self.listen(listener, host)

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run something on the broker's loop and wait for it."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(PATIENCE_S)

    def listen(self, listener: Listener, host: str = HOST) -> int:
        """Open one more listener; gives its port."""
        return self.run(self.door.start(host, 0, listener))

    def close(self) -> None:
        try:
            self.run(self._close())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(PATIENCE_S)
            self._loop.close()

    async def _open(
        self, folder: Path, broker_config: BrokerConfig, kafka_config: KafkaConfig, auth: AuthConfig | None
    ) -> None:
        self.broker = await open_broker(
            config=broker_config,
            disk=FolderDisk(folder),
            clock=SystemClock(),
            threads=WorkerThreads(),
            workshop=WorkshopAtHand(),
        )
        tokens = None if self._tokens is None else self._tokens(self.broker)
        known = None if auth is None else Authenticator(self.broker, auth, tokens)
        self.door = KafkaDoor(self.broker, kafka_config, known)

    async def _close(self) -> None:
        await self.door.stop()
        await close_broker(self.broker)


def sync_by_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every sync go through `OpenFile.sync`, which a test can then slow, count or fail."""
    monkeypatch.setattr(WorkerThreads, "sync", lambda workers, file: workers.run(file.sync))
