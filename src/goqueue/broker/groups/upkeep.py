"""The upkeep of groups: what nobody needs any more is forgotten.

Groups that have had no members for long lose their offsets; with a topic goes what was out of it.
"""

import logging
from uuid import UUID

from goqueue.broker.broker import Broker
from goqueue.broker.slices import Slices
from goqueue.core.delivery.events import DeliveryDropped
from goqueue.core.groups.events import GroupDeleted
from goqueue.model.errors import GoQueueError

log = logging.getLogger(__name__)


async def expire_offsets(broker: Broker) -> None:
    """Forget groups whose offsets nobody has needed for the retention; note those that have members."""
    for journal in broker.coordinator.journals:
        events = journal.groups.expire_offsets(now_ms=broker.clock.wall_ms())
        if not events:
            continue
        try:
            await journal.submit(*events)
        except GoQueueError as error:
            log.warning("offsets_not_expired partition=%s reason=%s", journal.partition.source, error)
            continue
        for event in events:
            if isinstance(event, GroupDeleted):
                log.info("offsets_expired group=%s", event.group)


async def forget_topic(broker: Broker, topic_id: UUID) -> None:
    """A topic is gone: what is out of it counts for nobody any more, and its receipts are unknown."""
    slices = Slices(broker.clock)
    for journal in broker.coordinator.journals:
        for number in [one.number for one in journal.deliveries if one.topic_id == topic_id]:
            await slices.pause()
            delivery = journal.deliveries.numbered(number)
            if delivery is None or delivery.topic_id != topic_id:
                continue  # the upkeep was quicker
            try:
                journal.submit(DeliveryDropped(delivery.number))
            except GoQueueError as error:
                # The topic is gone all the same; the upkeep comes by here until the journal has it.
                log.warning("delivery_kept group=%s reason=%s", delivery.group, error)
