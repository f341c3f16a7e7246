"""One broker with all its doors in a thread of its own, for clients that block."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import httpx
import uvloop

from goqueue.broker.broker import Broker
from goqueue.broker.opening import close_broker, open_broker
from goqueue.broker.read.read import read_messages
from goqueue.edge.http.config import HttpConfig
from goqueue.edge.http.door import HttpDoor
from goqueue.edge.kafka.config import KafkaConfig
from goqueue.edge.kafka.door import KafkaDoor
from goqueue.model.commands import ReadMessages
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.messages import StoredMessage
from goqueue.model.settings import BrokerConfig
from goqueue.node.clock import SystemClock
from goqueue.node.disk import FolderDisk
from goqueue.node.threads import WorkerThreads
from goqueue.testing.world.workshop import WorkshopAtHand

HOST = "127.0.0.1"
PATIENCE_S = 30
T = TypeVar("T")
_numbers = count(1)


class House:
    """Opened by the constructor, closed by `close`."""

    def __init__(self, folder: Path) -> None:
        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="house")
        self._thread.start()
        self._workers = WorkerThreads()
        self.broker: Broker
        self.kafka: KafkaDoor
        self.http: HttpDoor
        self.kafka_port, self.http_port = self.run(self._open(folder))
        # There is no TLS here, and reading the machine's certificates takes longer than opening the broker.
        self.client = httpx.Client(base_url=self.url, timeout=PATIENCE_S, verify=False)

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.http_port}"

    @property
    def kafka_address(self) -> str:
        return f"{HOST}:{self.kafka_port}"

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run something on the broker's loop and wait for it."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(PATIENCE_S)

    def close(self) -> None:
        self.client.close()
        try:
            self.run(self._close())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(PATIENCE_S)
            self._loop.close()
            self._workers.close()

    def topic(self, *, partitions: int = 1, prefix: str = "topic", **settings: str) -> str:
        """A topic that no other test uses. Settings have underscores for dots."""
        name = f"{prefix}-{next(_numbers)}"
        given = {setting.replace("_", "."): value for setting, value in settings.items()}
        body = {"name": name, "num_partitions": partitions, "settings": given}
        self.client.post("/topics", json=body).raise_for_status()
        return name

    def stored(self, topic: str, partition: int = 0) -> list[StoredMessage]:
        """What everybody may read of a partition now; nothing where there is no such topic."""
        if TopicName(topic) not in self.broker.topics:
            return []
        source = TopicPartition(TopicName(topic), partition)
        return self.run(self._read(source))

    def stored_until(
        self, topic: str, is_so: Callable[[list[StoredMessage]], bool], partition: int = 0
    ) -> list[StoredMessage]:
        """The same when it has become as a test wants it."""

        async def look() -> list[StoredMessage]:
            async with asyncio.timeout(PATIENCE_S / 2):
                while not is_so(found := await self._read(TopicPartition(TopicName(topic), partition))):
                    await asyncio.sleep(0.01)
            return found

        return self.run(look())

    async def _read(self, source: TopicPartition) -> list[StoredMessage]:
        return (await read_messages(self.broker, ReadMessages(source=source, offset=0, limit=100))).messages

    async def _open(self, folder: Path) -> tuple[int, int]:
        self.broker = await open_broker(
            config=BrokerConfig(),
            disk=FolderDisk(folder),
            clock=SystemClock(),
            threads=self._workers,
            workshop=WorkshopAtHand(),
        )
        self.kafka = KafkaDoor(self.broker, KafkaConfig())
        self.http = HttpDoor(self.broker, HttpConfig())
        return await self.kafka.start(HOST, 0), await self.http.start(HOST, 0)

    async def _close(self) -> None:
        await self.kafka.stop()
        await self.http.stop()
        await close_broker(self.broker)
