"""What some topics ask of batches beyond that they are sound: times within their bounds.

A batch that must be opened for it may come to many times its size, so that is done beside the loop: where it
is not quick, `prepare_now` raises Unchecked, and `prepare` is waited for.
"""

from functools import partial

from goqueue.broker.broker import Broker
from goqueue.broker.schemas.check import Unchecked
from goqueue.broker.write.incoming import Incoming
from goqueue.model.settings import TopicSettings
from goqueue.records.large_batch import is_large
from goqueue.records.record_times import require_times


def prepare_now(broker: Broker, incoming: Incoming, settings: TopicSettings) -> Incoming:
    """Batches as the topic wants them, for a topic that asks for something. Raises Unchecked."""
    if any(map(is_large, incoming.bodies)):
        raise Unchecked
    return _prepared(incoming, settings, broker.clock.wall_ms())


async def prepare(broker: Broker, incoming: Incoming, settings: TopicSettings) -> Incoming:
    """The same, however long it takes."""
    try:
        return prepare_now(broker, incoming, settings)
    except Unchecked:
        now_ms = broker.clock.wall_ms()
        return await broker.threads.run(partial(_prepared, incoming, settings, now_ms))


def _prepared(incoming: Incoming, settings: TopicSettings, now_ms: int) -> Incoming:
    if settings.bounds_times:
        require_times([*zip(incoming.headers, incoming.bodies, strict=True)], settings, now_ms=now_ms)
    return incoming
