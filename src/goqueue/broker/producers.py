"""init_producer: an id for an idempotent producer, never given twice."""

from goqueue.broker.broker import Broker
from goqueue.core.cluster.metadata import PRODUCER_IDS_RESERVED
from goqueue.model.errors import ShuttingDown
from goqueue.model.ids import ProducerId


async def init_producer(broker: Broker) -> ProducerId:
    """The next id; a block of them is journalled before the first of it is given out."""
    if not broker.is_open:
        raise ShuttingDown
    while not broker.producer_ids:
        event = broker.metadata.reserve_producer_ids()
        await broker.journal.commit(event)
        # Several callers may have waited here, each with a block of its own: all of them are fresh.
        broker.producer_ids = range(event.end - PRODUCER_IDS_RESERVED, event.end)
    producer_id = broker.producer_ids[0]
    broker.producer_ids = broker.producer_ids[1:]
    return ProducerId(producer_id)
