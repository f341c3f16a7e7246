"""Producers: an id for each, never given twice; and who has written to a partition."""

import asyncio
import logging

from goqueue.broker.broker import Broker
from goqueue.core.cluster.metadata import PRODUCER_IDS_RESERVED
from goqueue.model.errors import GoQueueError, ShuttingDown
from goqueue.model.ids import ProducerId
from goqueue.model.transaction_commands import DescribeProducers, TakeProducerId
from goqueue.model.transactions import ActiveProducer

log = logging.getLogger(__name__)


async def init_producer(broker: Broker, command: TakeProducerId) -> ProducerId:
    """The next id; a block of them is journalled before the first of it is given out."""
    if not broker.is_open:
        raise ShuttingDown
    while not broker.producer_ids:
        # Several callers may have waited here, each with a block of its own: all of them are fresh.
        broker.producer_ids, broker.spare_producer_ids = broker.spare_producer_ids, range(0)
        if not broker.producer_ids:
            broker.producer_ids = await _reserve(broker)
    producer_id = broker.producer_ids[0]
    broker.producer_ids = broker.producer_ids[1:]
    if broker.is_one_of_several and len(broker.producer_ids) == PRODUCER_IDS_RESERVED // 2:
        broker.keep(asyncio.get_running_loop().create_task(_reserve_ahead(broker)))
    return ProducerId(producer_id)


async def _reserve(broker: Broker) -> range:
    taken_by = str(broker.new_id())
    return await broker.agreement.make(lambda: broker.metadata.reserve_producer_ids(taken_by))


async def _reserve_ahead(broker: Broker) -> None:
    """The next block while there is still half of this one: what nodes agree in may be away for a while."""
    try:
        broker.spare_producer_ids = await _reserve(broker)
    except GoQueueError as error:
        log.warning("producer_ids_not_reserved reason=%s", error)


def describe_producers(broker: Broker, command: DescribeProducers) -> list[ActiveProducer]:
    """Who has written to a partition lately, with sequence numbers or within transactions."""
    partition = broker.partition(command.source)
    open_from = {opened.producer_id: opened.first_offset for opened in partition.transactions.all()}
    return [
        ActiveProducer(producer_id, epoch, last_sequence, seen_ms, open_from.get(producer_id, -1))
        for producer_id, epoch, last_sequence, seen_ms in partition.producers.all()
    ]
