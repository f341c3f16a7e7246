"""The upkeep of deliveries: what nobody polls for must happen all the same.

Leases run out and messages become dead letters although every consumer is gone; moves that a crash or a
failing disk has held up are finished; what belonged to a deleted topic is forgotten.
"""

import logging
from typing import TYPE_CHECKING
from uuid import UUID

from goqueue.core.delivery.delivery import Delivery
from goqueue.core.delivery.events import DeliveryDropped
from goqueue.model.errors import GoQueueError

if TYPE_CHECKING:  # the broker keeps its deliveries through this module
    from goqueue.broker.broker import Broker
    from goqueue.broker.group_journal import GroupJournal

log = logging.getLogger(__name__)


def keep_up_deliveries(broker: "Broker") -> None:
    """Once at the start, and then every few seconds."""
    broker.delivery_room.sample(broker.clock.monotonic_ns())
    for journal in broker.coordinator.journals:
        for delivery in journal.deliveries:
            try:
                _keep_up(broker, journal, delivery)
            except GoQueueError as error:
                log.warning(
                    "upkeep_skipped group=%s partition=%s reason=%s", delivery.group, delivery.source, error
                )


def forget_topic(broker: "Broker", topic_id: UUID) -> None:
    """A topic is gone: what is out of it takes nobody's room, and its receipts are unknown."""
    for journal in broker.coordinator.journals:
        for delivery in journal.deliveries:
            if delivery.topic_id == topic_id:
                try:
                    journal.note(DeliveryDropped(delivery.number))
                except GoQueueError as error:
                    # The topic is gone all the same; the upkeep comes by here until the journal has it.
                    log.warning("delivery_kept group=%s reason=%s", delivery.group, error)


def _keep_up(broker: "Broker", journal: "GroupJournal", delivery: Delivery) -> None:
    # These import the broker, which imports this.
    from goqueue.broker.dead_letters import start_moves
    from goqueue.broker.delivery import advance

    if delivery.topic_id not in broker.metadata.names:
        journal.note(DeliveryDropped(delivery.number))
        return
    advance(broker, journal, delivery)
    if delivery.moves:
        start_moves(broker, journal, delivery)
