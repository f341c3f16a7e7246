"""The Python client: `GoQueue` for plain calls, `AsyncGoQueue` to be awaited; both speak to the HTTP door.

Names are loaded when they are first asked for, so that who needs a part does not pay for all of it.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from goqueue.client.addresses import Address as Address
    from goqueue.client.aio import AsyncGoQueue as AsyncGoQueue
    from goqueue.client.aio_consumer import AsyncConsumer as AsyncConsumer
    from goqueue.client.aio_consumer import AsyncDelivered as AsyncDelivered
    from goqueue.client.aio_producer import AsyncProducer as AsyncProducer
    from goqueue.client.consumer import Consumer as Consumer
    from goqueue.client.consumer import Delivered as Delivered
    from goqueue.client.errors import Conflict as Conflict
    from goqueue.client.errors import Refused as Refused
    from goqueue.client.messages import Message as Message
    from goqueue.client.messages import Outgoing as Outgoing
    from goqueue.client.messages import Page as Page
    from goqueue.client.messages import Placed as Placed
    from goqueue.client.producer import Producer as Producer
    from goqueue.client.sync import GoQueue as GoQueue
    from goqueue.client.transaction import AsyncTransaction as AsyncTransaction
    from goqueue.client.transaction import Transaction as Transaction
    from goqueue.model.errors import Busy as Busy
    from goqueue.model.errors import Corrupt as Corrupt
    from goqueue.model.errors import Denied as Denied
    from goqueue.model.errors import Fenced as Fenced
    from goqueue.model.errors import GoQueueError as GoQueueError
    from goqueue.model.errors import Invalid as Invalid
    from goqueue.model.errors import NotFound as NotFound
    from goqueue.model.errors import Unavailable as Unavailable

_HOME_OF = {
    "Address": "goqueue.client.addresses",
    "AsyncConsumer": "goqueue.client.aio_consumer",
    "AsyncDelivered": "goqueue.client.aio_consumer",
    "AsyncGoQueue": "goqueue.client.aio",
    "AsyncProducer": "goqueue.client.aio_producer",
    "AsyncTransaction": "goqueue.client.transaction",
    "Busy": "goqueue.model.errors",
    "Conflict": "goqueue.client.errors",
    "Consumer": "goqueue.client.consumer",
    "Corrupt": "goqueue.model.errors",
    "Delivered": "goqueue.client.consumer",
    "Denied": "goqueue.model.errors",
    "Fenced": "goqueue.model.errors",
    "GoQueue": "goqueue.client.sync",
    "GoQueueError": "goqueue.model.errors",
    "Invalid": "goqueue.model.errors",
    "Message": "goqueue.client.messages",
    "NotFound": "goqueue.model.errors",
    "Outgoing": "goqueue.client.messages",
    "Page": "goqueue.client.messages",
    "Placed": "goqueue.client.messages",
    "Producer": "goqueue.client.producer",
    "Refused": "goqueue.client.errors",
    "Transaction": "goqueue.client.transaction",
    "Unavailable": "goqueue.model.errors",
}


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return sorted(_HOME_OF)
