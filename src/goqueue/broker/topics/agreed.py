"""Topics of a cluster: what it takes to agree on them. Their folders follow, on whichever nodes hold them.

A topic has a record for each partition, more than fit into one change. They come first and mean nothing; the
change that names the topic, or its number of partitions, comes last: everybody sees all of it or none.
"""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace

from goqueue.broker.broker import Broker, Placed
from goqueue.broker.topics.holding import Holding
from goqueue.core.cluster.controller import bundle, new_records
from goqueue.core.cluster.members import placeable
from goqueue.core.cluster.orders import check_placement
from goqueue.core.cluster.values import Topic, encode, part_key
from goqueue.model.cluster import Step
from goqueue.model.errors import InvalidReplication, NoNodeReady
from goqueue.model.topics import CatchUp

COPIES = 3
"""What a topic gets when nobody says, if there are so many nodes."""


async def catch_up(broker: Broker, command: CatchUp) -> None:
    """Return when this node knows of what was agreed by a revision, and holds what it says; or is late."""
    with suppress(TimeoutError):
        async with asyncio.timeout(command.wait_ms / 1_000):
            await broker.agreement.reached(command.revision)
            if broker.shared_topics is not None:
                await broker.shared_topics.catch_up()


class AgreedTopics:
    """The port `SharedTopics`: how verbs make and change topics where there are several nodes."""

    def __init__(self, broker: Broker, holding: Holding) -> None:
        self._broker = broker
        self._image = broker.metadata
        self._agreement = broker.agreement
        self._holding = holding

    def copies(self, asked: int) -> int:
        there = len(placeable(self._image))
        if not there:
            raise NoNodeReady
        if asked == -1:
            return min(self._broker.config.replication or COPIES, there)
        if not 1 <= asked <= there:
            raise InvalidReplication(f"{there} nodes are ready, which cannot hold {asked} copies")
        return asked

    def check_placement(self, replicas: Placed, *, partitions: int, copies: int) -> None:
        check_placement(self._image, replicas, partitions=partitions, copies=copies)

    async def create(self, topic: Topic, replicas: Placed = ()) -> None:
        await self._place(topic, range(topic.partitions), replicas)
        # Records of a topic that nobody makes are dropped some day, this one first.
        placed = self._image.guard(part_key(topic.topic_id, 0))

        def decide() -> Step[None]:
            step = self._image.create_topic(topic)
            return replace(step, guards=(*step.guards, placed))

        await self._agreement.make(decide)
        await self._holding.catch_up()

    async def grow(self, topic: Topic, total: int, replicas: Placed = ()) -> None:
        await self._place(topic, range(topic.partitions, total), replicas)
        await self._agreement.make(lambda: self._image.add_partitions(topic.name, total))
        await self._holding.catch_up()

    async def delete(self, topic: Topic) -> None:
        await self._holding.catch_up()
        places = [place for place in self._image.records if place[0] == topic.topic_id]
        for step in bundle(Step(None, (), {}, (part_key(*place),)) for place in places):
            await self._agreement.make(lambda step=step: step)  # type: ignore[misc]
        await self._agreement.make(lambda: self._image.remove_topic(topic))

    async def catch_up(self) -> None:
        await self._holding.catch_up()

    async def _place(self, topic: Topic, numbers: Iterable[int], replicas: Placed) -> None:
        """Say where partitions are to be that nobody knows of yet."""
        image = self._image
        placed = [
            (part_key(topic.topic_id, number), record)
            for number, record in new_records(image, topic, numbers, replicas)
        ]
        steps = (Step(None, (image.guard(key),), {key: encode(record)}) for key, record in placed)
        for step in bundle(steps):
            await self._agreement.make(lambda step=step: step)  # type: ignore[misc]
