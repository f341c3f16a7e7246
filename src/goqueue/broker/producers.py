"""Producers: an id for each, never given twice; and who has written to a partition."""

from goqueue.broker.broker import Broker
from goqueue.model.errors import ShuttingDown
from goqueue.model.ids import ProducerId
from goqueue.model.transaction_commands import DescribeProducers, TakeProducerId
from goqueue.model.transactions import ActiveProducer


async def init_producer(broker: Broker, command: TakeProducerId) -> ProducerId:
    """The next id; a block of them is journalled before the first of it is given out."""
    if not broker.is_open:
        raise ShuttingDown
    taken_by = str(broker.new_id())
    while not broker.producer_ids:
        # Several callers may have waited here, each with a block of its own: all of them are fresh.
        broker.producer_ids = await broker.agreement.make(
            lambda: broker.metadata.reserve_producer_ids(taken_by)
        )
    producer_id = broker.producer_ids[0]
    broker.producer_ids = broker.producer_ids[1:]
    return ProducerId(producer_id)


def describe_producers(broker: Broker, command: DescribeProducers) -> list[ActiveProducer]:
    """Who has written to a partition lately, with sequence numbers or within transactions."""
    partition = broker.partition(command.source)
    open_from = {opened.producer_id: opened.first_offset for opened in partition.transactions.all()}
    return [
        ActiveProducer(producer_id, epoch, last_sequence, seen_ms, open_from.get(producer_id, -1))
        for producer_id, epoch, last_sequence, seen_ms in partition.producers.all()
    ]
