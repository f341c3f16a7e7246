"""Messages against their topic's schemas, on their way in. Topics that ask for nothing never come here."""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple

from goqueue.broker.broker import Broker
from goqueue.broker.partition import Partition
from goqueue.broker.quarantine import keep_aside, quarantine_of, quarantine_partition
from goqueue.core.schemas.checking import MessageCheck
from goqueue.log.partition_log import CheckedBatch
from goqueue.model.errors import SchemaMismatch
from goqueue.model.ids import TopicName
from goqueue.model.messages import Lane, Message, StoredMessage
from goqueue.model.schemas import OnInvalid
from goqueue.model.settings import TopicSettings
from goqueue.records.batch import leave_out, open_batch
from goqueue.records.layout import read_header


class Screened(NamedTuple):
    """What of some batches is to be stored, and where the rest is."""

    batches: Sequence[CheckedBatch]
    quarantine: Partition | None
    """Must be safe too before the batches are said to be; None: all messages fit."""


def misfits(
    broker: Broker, topic: str, settings: TopicSettings, messages: Iterable[Message | StoredMessage]
) -> dict[int, str]:
    """What is wrong with the messages that do not fit, by their indexes."""
    check = MessageCheck(broker.registry, topic, settings)
    begun_ns = broker.clock.monotonic_ns()
    checked = [check.problem(message.value, message.key, message.headers) for message in messages]
    problems = {index: problem for index, problem in enumerate(checked) if problem is not None}
    seconds = (broker.clock.monotonic_ns() - begun_ns) / 1e9
    broker.counters.topic(topic).checked(len(checked), len(problems), seconds)
    return problems


def quarantine_for(topic: str, settings: TopicSettings) -> TopicName | None:
    """Where a topic keeps messages that do not fit; None: it refuses them."""
    return quarantine_of(topic) if settings.schema_on_invalid is OnInvalid.QUARANTINE else None


def refuse_misfits(broker: Broker, topic: str, settings: TopicSettings, bodies: Iterable[memoryview]) -> None:
    """Refuse batches with a message that does not fit, also of topics that keep such ones aside.

    For messages that have no place in the log of which it could be told that they are missing.
    """
    opened = chain.from_iterable(open_batch(body, Lane.NORMAL) for body in bodies)
    if problems := misfits(broker, topic, settings, opened):
        raise SchemaMismatch(problems)


def screen(broker: Broker, partition: Partition, batches: Sequence[CheckedBatch]) -> Screened:
    """Batches without the messages that do not fit, which are in quarantine by then; or all are refused.

    Offsets and sequence numbers are as if everything were stored: where a message is missing, an offset is.
    """
    source, settings = partition.source, partition.log.settings
    opened = [open_batch(batch.body, batch.lane) for batch in batches]
    problems = misfits(broker, source.topic, settings, chain.from_iterable(opened))
    if not problems:
        return Screened(batches, None)
    target = quarantine_for(source.topic, settings)
    if target is None:
        raise SchemaMismatch(problems)
    quarantine = quarantine_partition(broker, source, target)
    left = []
    first = 0
    for batch, messages in zip(batches, opened, strict=True):
        numbers = range(first, first + len(messages))
        wrong = {number - first: problems[number] for number in numbers if number in problems}
        if wrong:
            keep_aside(broker, source, quarantine, batch.header, messages, wrong)
            body = leave_out(messages, batch.header, wrong)
            left.append(CheckedBatch(read_header(body), body, batch.lane))
        else:
            left.append(batch)
        first = numbers.stop
    return Screened(left, quarantine)
