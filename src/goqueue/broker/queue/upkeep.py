"""The upkeep of deliveries: what nobody polls for must happen all the same.

Leases run out and messages become dead letters although every consumer is gone; moves that a crash or a
failing disk has held up are finished; what belonged to a deleted topic is forgotten.
"""

import logging

from goqueue.broker.broker import Broker
from goqueue.broker.groups.journal import GroupJournal
from goqueue.broker.queue.dead_letters import start_moves
from goqueue.broker.queue.delivery import advance
from goqueue.broker.slices import Slices
from goqueue.core.delivery.delivery import Delivery
from goqueue.core.delivery.events import DeliveryDropped
from goqueue.model.errors import GoQueueError

log = logging.getLogger(__name__)


async def keep_up_deliveries(broker: Broker) -> None:
    """Once at the start, and then every few seconds."""
    broker.queue.sample(broker.clock.monotonic_ns())
    slices = Slices(broker.clock)
    for journal in broker.coordinator.journals:
        # By number: a list of them would keep those that are dropped meanwhile, and free them in one go.
        for number in [delivery.number for delivery in journal.deliveries]:
            await slices.pause()
            delivery = journal.deliveries.numbered(number)
            if delivery is None:
                continue  # it was dropped while others had their turn
            try:
                _keep_up(broker, journal, delivery)
            except GoQueueError as error:
                log.warning(
                    "upkeep_skipped group=%s partition=%s reason=%s", delivery.group, delivery.source, error
                )


def _keep_up(broker: Broker, journal: GroupJournal, delivery: Delivery) -> None:
    if delivery.topic_id not in broker.metadata.names:
        journal.submit(DeliveryDropped(delivery.number))
        return
    advance(broker, journal, delivery)
    if delivery.moves:
        start_moves(broker, journal, delivery)
