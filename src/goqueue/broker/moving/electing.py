"""The verb that has leaders elected: the preferred ones, or any that is alive where nobody leads."""

import asyncio
import logging
from collections.abc import Iterable, Iterator

from goqueue.broker.broker import Broker
from goqueue.broker.moving.reassigning import admit_orders
from goqueue.core.cluster import orders
from goqueue.core.cluster.metadata import Metadata
from goqueue.model.errors import GoQueueError, NoEligibleLeader, PreferredLeaderAway
from goqueue.model.ids import TopicPartition
from goqueue.model.moving import Election, ElectLeaders

logger = logging.getLogger(__name__)
_AT_ONCE = 8
"""So many orders are given side by side: a store answers each within a millisecond or two."""


async def elect_leaders(broker: Broker, command: ElectLeaders) -> list[Election]:
    """What came of each; without names, of those alone where there was something to elect."""
    admit_orders(broker)
    image, is_unclean = broker.metadata, command.is_unclean
    sources = list(_all_that_need_it(image, command) if command.sources is None else command.sources)
    refused: dict[TopicPartition, GoQueueError] = {}
    ordered: dict[TopicPartition, str] = {}

    async def order_one_by_one(left: Iterator[TopicPartition]) -> None:
        for source in left:
            try:
                ordered[source] = await broker.agreement.make(
                    lambda source=source: orders.election(image, source, is_unclean=is_unclean)  # type: ignore[misc]
                )
            except GoQueueError as error:
                refused[source] = error

    left = iter(dict.fromkeys(sources))
    await asyncio.gather(*(order_one_by_one(left) for _ in range(_AT_ONCE)))
    if is_unclean and ordered:
        logger.warning("unclean_elections_ordered", extra={"partitions": [*map(str, ordered)]})
    await _until_gone(broker, set(ordered.values()), command.wait_ms)
    for source in ordered:
        if (error := _missed(image, source, is_unclean=is_unclean)) is not None:
            refused[source] = error
    return [Election(source, refused.get(source)) for source in dict.fromkeys(sources)]


def _all_that_need_it(image: Metadata, command: ElectLeaders) -> Iterable[TopicPartition]:
    for (topic_id, number), record in image.records.items():
        is_due = record.leader is None if command.is_unclean else record.leader != record.replicas[0]
        if is_due and topic_id in image.names:
            yield TopicPartition(image.names[topic_id], number)


def _missed(image: Metadata, source: TopicPartition, *, is_unclean: bool) -> GoQueueError | None:
    try:
        record = orders.record_of(image, source)
    except GoQueueError as error:
        return error  # it was deleted meanwhile
    if is_unclean:
        return NoEligibleLeader(*source) if record.leader is None else None
    preferred = record.replicas[0]
    return None if record.leader == preferred else PreferredLeaderAway(*source, preferred)


async def _until_gone(broker: Broker, waited_for: set[str], wait_ms: int) -> None:
    """Wait until orders are carried out; those that are not in time are taken back."""
    image, changed = broker.metadata, asyncio.Event()
    broker.agreement.listeners.append(changed.set)
    try:
        async with asyncio.timeout(wait_ms / 1000):
            while waited_for & image.orders.keys():
                changed.clear()
                await changed.wait()
    except TimeoutError:
        for order_id in sorted(waited_for & image.orders.keys()):
            await broker.agreement.make(lambda order_id=order_id: orders.taken_back(image, order_id))  # type: ignore[misc]
    finally:
        broker.agreement.listeners.remove(changed.set)
