"""Journals of several nodes: whoever leads one serves what it keeps, and nobody else.

They are partitions of internal topics that are replicated like any other. Becoming the leader of one reads it
back; until that is done, and on all other nodes, who asks for what it keeps is refused with the reason.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple, Protocol

from goqueue.broker.broker import Broker
from goqueue.broker.delays.deliveries import DELAYED_TOPIC
from goqueue.broker.groups.journal import OFFSETS_TOPIC
from goqueue.broker.schemas.state import SCHEMAS_TOPIC
from goqueue.broker.storage.journal import JOURNAL_SETTINGS, Journal
from goqueue.broker.storage.journal_set import JOURNAL_COUNT
from goqueue.broker.storage.partition import Partition
from goqueue.broker.transactions.hanging import look_soon
from goqueue.broker.transactions.journal import TRANSACTIONS_TOPIC
from goqueue.core.cluster.controller import WantedTopic
from goqueue.model.errors import GoQueueError
from goqueue.model.ids import TopicName

log = logging.getLogger(__name__)
_PAUSE_S = 0.5
"""Before a journal that could not be read back is read once more."""
ReadBack = Callable[[Journal[Any]], Awaitable[None]]


class Keeper(Protocol):
    """What serves from the journals of one topic."""

    async def take_over(self, partition: Partition, read_back: ReadBack) -> object:
        """This node leads a journal from now on: read it back, then serve what it keeps."""

    def let_go(self, number: int) -> object:
        """It does so no more: who waits is sent away, and nothing that was known of it holds."""


class Shared(NamedTuple):
    """A topic of journals, and who serves from them."""

    topic: TopicName
    partitions: int
    keeper: Keeper


def all_shared(broker: Broker) -> list[Shared]:
    """All journals that nodes share."""
    return [
        Shared(OFFSETS_TOPIC, JOURNAL_COUNT, broker.coordinator),
        Shared(TRANSACTIONS_TOPIC, JOURNAL_COUNT, broker.transactions),
        Shared(SCHEMAS_TOPIC, 1, broker.schemas.journals),
        Shared(DELAYED_TOPIC, 1, broker.delays),
    ]


class SharedJournals:
    """Hears which partitions this node leads: the port `Roles`."""

    def __init__(self, broker: Broker, shared: Sequence[Shared]) -> None:
        self._broker = broker
        self._keepers = {topic: keeper for topic, _, keeper in shared}
        self.wanted = tuple(
            WantedTopic(topic, partitions, JOURNAL_SETTINGS) for topic, partitions, _ in shared
        )
        """The topics, as whoever decides for the cluster makes them."""

    def leads(self, partition: Partition, *, is_leader: bool) -> None:
        """This node leads a partition from now on, or does so no more."""
        keeper = self._keepers.get(partition.source.topic)
        if keeper is None:
            self._broker.transactions.verified.forget_all(partition)
            if is_leader:
                look_soon(self._broker, partition)
        elif is_leader:
            task = asyncio.get_running_loop().create_task(self._take_over(partition, keeper))
            self._broker.keep(task)
        else:
            keeper.let_go(partition.source.partition)

    async def _take_over(self, partition: Partition, keeper: Keeper) -> None:
        epoch = partition.leader_epoch
        begun_ns = self._broker.clock.monotonic_ns()
        while partition.is_leader and partition.leader_epoch == epoch:
            try:
                await keeper.take_over(partition, self._read_back)
            except (GoQueueError, OSError) as error:
                log.warning("journal_not_taken_over partition=%s reason=%s", partition.source, error)
                await asyncio.sleep(_PAUSE_S)
            else:
                took_ms = (self._broker.clock.monotonic_ns() - begun_ns) // 1_000_000
                log.info("journal_taken_over partition=%s took_ms=%d", partition.source, took_ms)
                return

    async def _read_back(self, journal: Journal[Any]) -> None:
        await self._broker.threads.run(journal.replay)
