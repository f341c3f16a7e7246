"""Producers that want their batches stored exactly once: InitProducerId."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kio.schema.errors import ErrorCode

from goqueue.broker.producers import init_producer
from goqueue.edge.kafka.context import Context
from goqueue.edge.kafka.errors import kafka_code
from goqueue.edge.kafka.schemas import Reply
from goqueue.model.errors import GoQueueError, NotSupported
from goqueue.model.ids import NO_PRODUCER

if TYPE_CHECKING:
    from kio.schema.init_producer_id.v5.request import InitProducerIdRequest

_FIRST_EPOCH = 0
_NO_EPOCH = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class InitProducerIdReply(Reply):
    producer_id: int
    producer_epoch: int
    error_code: ErrorCode = ErrorCode.none


async def init_producer_id(context: Context, request: "InitProducerIdRequest") -> InitProducerIdReply:
    """A new producer id. One that carries on under its old id is a transactional one."""
    try:
        if request.transactional_id is not None:
            raise NotSupported("transactions are not served")
        producer_id = await init_producer(context.broker)
    except GoQueueError as error:
        return InitProducerIdReply(
            producer_id=NO_PRODUCER, producer_epoch=_NO_EPOCH, error_code=kafka_code(error)
        )
    return InitProducerIdReply(producer_id=producer_id, producer_epoch=_FIRST_EPOCH)
