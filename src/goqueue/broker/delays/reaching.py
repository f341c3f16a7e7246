"""How the keeper of several nodes reaches the partitions that messages go to, and others reach the keeper.

Every call may be run twice, or late: whoever leads the partition refuses it then (`deliveries.py`). So calls
are carried on to a new leader like any other, and what is not answered in time is looked up.
"""

import asyncio
import logging
from typing import TYPE_CHECKING

from goqueue.broker.delays.batches import batches_due
from goqueue.broker.delays.deliveries import deliver_due, find_delivered
from goqueue.broker.delays.stock import Ready
from goqueue.broker.delays.store import DelayStore
from goqueue.broker.delays.targets import Target
from goqueue.core.delays.delivered import Step
from goqueue.model.delays import DeliverDue, FindDelivered
from goqueue.model.errors import GoQueueError, NoLeader, NotFound
from goqueue.model.ids import TopicPartition

if TYPE_CHECKING:  # the broker is made with the keeper, which reaches others through this module
    from goqueue.broker.broker import Broker, Forwarding

log = logging.getLogger(__name__)
ANSWER_S = 3.0
"""So long a leader is waited for; the others wait for it too."""


async def learn(broker: "Broker", store: DelayStore, target: Target) -> None:
    """Ask a partition's leader what has been delivered to it. From then on no earlier keeper delivers."""
    source = source_of(broker, target)
    if source is None:
        target.is_gone = True
        return
    command = FindDelivered(
        target=source,
        topic_id=target.topic_id,
        keeper_epoch=store.journal.partition.leader_epoch,
        from_offset=None if target.noted_offset is None else target.scan_offset,
        delayed_end=store.journal.end_offset,
    )
    try:
        async with asyncio.timeout(ANSWER_S):
            found = await forwarding_of(broker, source).run(find_delivered, command)
    except TimeoutError:
        raise NoLeader(*source) from None
    for due_ms, end_offset in found.steps:
        target.confirmed.add(Step(due_ms, end_offset))
    target.scan_offset = found.end_offset
    target.delivered = target.confirmed.copy()
    store.is_changed = True


async def deliver(
    broker: "Broker", store: DelayStore, target: Target, items: list[Ready], step: Step
) -> int | None:
    """Have a partition's leader append messages; returns the end of its log. None: it is not known whether
    it has.
    """
    source = source_of(broker, target)
    if source is None:
        return None
    batches = batches_due(broker, items, step)
    command = DeliverDue(
        target=source,
        topic_id=target.topic_id,
        keeper_epoch=store.journal.partition.leader_epoch,
        known_offset=target.scan_offset,
        batches=[bytes(batch.body) for batch in batches],
        lanes=[batch.lane for batch in batches],
        numbers=[item.waiting.number for item in items],
    )
    try:
        async with asyncio.timeout(ANSWER_S):
            return await forwarding_of(broker, source).run(deliver_due, command)
    except NotFound:
        return None  # whoever looks for the topic next finds that it is gone
    except (GoQueueError, TimeoutError) as error:
        log.info("delivery_unknown partition=%s reason=%r", source, error)
        return None


def source_of(broker: "Broker", target: Target) -> TopicPartition | None:
    """The partition of a target by its name; None when its topic is gone."""
    name = broker.metadata.names.get(target.topic_id)
    return None if name is None else TopicPartition(name, target.partition)


def forwarding_of(broker: "Broker", source: TopicPartition) -> "Forwarding":
    """The way to other nodes, once there is one."""
    if broker.forwarding is None:
        raise NoLeader(*source)
    return broker.forwarding
