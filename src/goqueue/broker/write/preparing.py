"""What some topics ask of batches beyond that they are sound: times in bounds, a compression of their own.

A batch that must be opened for it may come to many times its size, so that is done beside the loop: where it
is not quick, `prepare_now` raises Unchecked, and `prepare` is waited for.
"""

from collections.abc import Sequence
from functools import partial

from goqueue.broker.broker import Broker
from goqueue.broker.schemas.check import Unchecked
from goqueue.broker.write.incoming import Incoming
from goqueue.log.partition_log import CheckedBatch
from goqueue.model.errors import GoQueueError
from goqueue.model.settings import TopicSettings
from goqueue.records.large_batch import is_large
from goqueue.records.layout import read_header
from goqueue.records.recoding import is_otherwise, recode
from goqueue.records.record_times import require_times


def prepare_now(broker: Broker, incoming: Incoming, settings: TopicSettings) -> Incoming:
    """Batches as the topic wants them, for a topic that asks for something. Raises Unchecked."""
    if is_otherwise(incoming.headers, settings) or any(map(is_large, incoming.bodies)):
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
    return _recoded(incoming, settings)


def _recoded(incoming: Incoming, settings: TopicSettings) -> Incoming:
    if not is_otherwise(incoming.headers, settings):
        return incoming
    pairs = zip(incoming.bodies, incoming.headers, strict=True)
    bodies = [recode(body, header, settings) for body, header in pairs]
    # What messages wish for was seen before they were compressed, and is heeded behind that.
    inspects = incoming.inspect_compressed or incoming.has_wishes
    return incoming._replace(headers=[*map(read_header, bodies)], bodies=bodies, inspect_compressed=inspects)


def recoded_promised(incoming: Incoming, settings: TopicSettings) -> Incoming:
    """In the topic's compression, or as it is: it was promised that it would be stored. For threads."""
    try:
        return _recoded(incoming, settings)
    except GoQueueError:
        return incoming


async def recode_built(
    broker: Broker, batches: Sequence[CheckedBatch], settings: TopicSettings
) -> Sequence[CheckedBatch]:
    """Batches that were built here in the topic's compression. Something may be waited for."""
    if not is_otherwise([batch.header for batch in batches], settings):
        return batches
    return await broker.threads.run(partial(_recode_all, batches, settings))


def _recode_all(batches: Sequence[CheckedBatch], settings: TopicSettings) -> Sequence[CheckedBatch]:
    bodies = [recode(body, header, settings) for header, body, _ in batches]
    return [
        CheckedBatch(read_header(body), body, batch.lane) for body, batch in zip(bodies, batches, strict=True)
    ]
