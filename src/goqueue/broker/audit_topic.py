"""The audit log as a topic, `__audit`: what a node has written to its files, it publishes there, too.

In a cluster the topic has copies on other nodes, so that who takes a node's disk does not take what it has
written down. Each line belongs to the chain of its node; a gap shows. Nobody waits for it: lines wait in a
bounded queue until the topic takes them. Which was published last stands in a file, so that a node goes on
there after a crash; a line may then come twice.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from contextlib import suppress

from goqueue.broker.access.audit import FOLDER, QUEUE_MAX, SUFFIX
from goqueue.broker.broker import Broker
from goqueue.broker.topics.verbs import create_topic
from goqueue.broker.write.publish import publish
from goqueue.core.access.audit_chain import last_link
from goqueue.model.commands import Publish
from goqueue.model.errors import GoQueueError, TopicExists
from goqueue.model.ids import TopicName
from goqueue.model.messages import Message
from goqueue.model.topics import CreateTopic

log = logging.getLogger(__name__)
AUDIT_TOPIC = TopicName("__audit")
_POSITION = f"{FOLDER}/published"
_PIECE = 500
_PAUSE_S = 1.0


class AuditTopic:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._disk = broker.disk
        self._node = broker.config.node_id.encode()
        self._waiting: deque[bytes] = deque()
        self._wanted = asyncio.Event()
        self._publishing = asyncio.Lock()
        self.published = 0
        self.dropped = 0
        """Lines that are in the files alone: the topic took nothing for too long."""

    async def open(self) -> None:
        """Go on behind the line that was published last."""
        self.offer(await self._broker.threads.run(self._unpublished))

    def offer(self, lines: Sequence[bytes]) -> None:
        """Have lines published, soon."""
        room = max(QUEUE_MAX - len(self._waiting), 0)
        self._waiting.extend(lines[:room])
        self.dropped += max(len(lines) - room, 0)
        self._wanted.set()

    async def publish_on(self) -> None:
        """Publish what comes, for ever."""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            try:
                await self.drain()
            except (GoQueueError, OSError) as error:
                log.warning("audit_not_published reason=%s", error)
                self._wanted.set()
                await asyncio.sleep(_PAUSE_S)

    async def drain(self) -> None:
        """Return when all is published that was offered before."""
        async with self._publishing:
            await self._drain()

    async def _drain(self) -> None:
        while self._waiting:
            piece = [self._waiting[at] for at in range(min(len(self._waiting), _PIECE))]
            await self._ensure_topic()
            messages = [Message(line, key=self._node, partition=0) for line in piece]
            command = Publish(topic=AUDIT_TOPIC, messages=messages, is_own=True)
            await self._broker.at_home(publish, command)
            await self._broker.threads.run(self._note_position, last_link(piece[-1]).number)
            for _ in piece:
                self._waiting.popleft()
            self.published += len(piece)

    async def _ensure_topic(self) -> None:
        if AUDIT_TOPIC in self._broker.metadata.topics:
            return
        retention_ms = self._broker.config.access.audit.topic_retention_ms
        command = CreateTopic(
            name=AUDIT_TOPIC, partitions=1, settings={"retention.ms": str(retention_ms)}, is_own=True
        )
        with suppress(TopicExists):  # another node was quicker
            await self._broker.at_home(create_topic, command)

    def _note_position(self, number: int) -> None:
        self._disk.make_folder(FOLDER)
        self._disk.replace(_POSITION, str(number).encode())

    def _unpublished(self) -> list[bytes]:
        """In a thread: the lines behind the one that was published last, as far as they can wait."""
        position = self._disk.read_whole(_POSITION)
        if position is None or not position.isdigit():
            return []
        lines: list[bytes] = []
        for name in reversed([each for each in self._disk.list(FOLDER) if each.endswith(SUFFIX)]):
            whole = (self._disk.read_whole(f"{FOLDER}/{name}") or b"").splitlines()
            behind = [line for line in whole if _number(line) > int(position)]
            lines = behind + lines
            if len(behind) < len(whole) or len(lines) > QUEUE_MAX:
                break
        return lines


def _number(line: bytes) -> int:
    """Which of its chain a line is; what is no line comes before all others."""
    try:
        return last_link(line).number
    except ValueError:
        return 0
