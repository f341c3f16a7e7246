"""Messages against their topic's schemas, on their way in. Topics that ask for nothing never come here.

Most batches are checked at once, without letting go of the loop. What may take longer, because of the schema
or of the data, raises `Unchecked`; then it is looked at in slices, and what nobody can foresee is asked of a
helper process (`broker/schemas/questions.py`).
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from goqueue.broker.broker import Broker
from goqueue.broker.schemas.quarantine import (
    aside_runs,
    keep_aside,
    open_quarantine,
    quarantine_of,
    quarantine_partition,
    store_aside,
)
from goqueue.broker.schemas.questions import answer, make_ready, tell_late
from goqueue.broker.slices import Slices
from goqueue.broker.storage.partition import Partition
from goqueue.core.schemas.checking import Apart, MessageCheck, NotReady, Question
from goqueue.core.schemas.limits import CHECK_NS_MAX
from goqueue.log.partition_log import CheckedBatch
from goqueue.model.commands import AsideRun, KeepAside
from goqueue.model.errors import SchemaMismatch
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.messages import Message, StoredMessage
from goqueue.model.schemas import OnInvalid
from goqueue.model.settings import TopicSettings
from goqueue.records.batch import leave_out, open_batch
from goqueue.records.layout import CODEC_MASK, read_header

_LATE_MS = 20
"""Nobody may hold the loop for longer."""
_NS_PER_MS = 1_000_000
Messages = Sequence[Message | StoredMessage]


class Unchecked(Exception):
    """Checking may take a while: it must be waited for."""


class Looked(NamedTuple):
    """Batches that were opened and held against the topic's schemas."""

    batches: Sequence[CheckedBatch]
    opened: Sequence[Sequence[StoredMessage]]
    problems: Mapping[int, str]
    """What is wrong with the messages that do not fit, by their indexes over all batches."""
    is_set_aside: bool = False
    """With several nodes: these are in quarantine by now."""


def quarantine_for(broker: Broker, topic: str, settings: TopicSettings) -> TopicName | None:
    """Where a topic keeps messages that do not fit; None: it refuses them."""
    if settings.schema_on_invalid is not OnInvalid.QUARANTINE:
        return None
    return quarantine_of(topic)


async def misfits(broker: Broker, topic: str, settings: TopicSettings, messages: Messages) -> dict[int, str]:
    """What is wrong with the messages that do not fit, by their indexes."""
    try:
        return _misfits_now(broker, topic, settings, messages, _size_bytes(messages))
    except Unchecked:
        return await _misfits_later(broker, topic, settings, messages)


def look(broker: Broker, topic: str, settings: TopicSettings, batches: Sequence[CheckedBatch]) -> Looked:
    """What is wrong with the messages of some batches. Raises Unchecked."""
    opened = [open_batch(batch.body, batch.lane) for batch in batches]
    messages = opened[0] if len(opened) == 1 else list(chain.from_iterable(opened))
    if any(batch.header.attributes & CODEC_MASK for batch in batches):
        size_bytes = _size_bytes(messages)
    else:
        size_bytes = sum([len(batch.body) for batch in batches])
    return Looked(batches, opened, _misfits_now(broker, topic, settings, messages, size_bytes))


async def look_long(
    broker: Broker, topic: str, settings: TopicSettings, batches: Sequence[CheckedBatch]
) -> Looked:
    """The same, however long it takes."""
    opened = [open_batch(batch.body, batch.lane) for batch in batches]
    messages = list(chain.from_iterable(opened))
    return Looked(batches, opened, await _misfits_later(broker, topic, settings, messages))


async def look_now_or_later(
    broker: Broker, topic: str, settings: TopicSettings, batches: Sequence[CheckedBatch]
) -> Looked:
    """At once where that is quick, else however long it takes."""
    try:
        return look(broker, topic, settings, batches)
    except Unchecked:
        return await look_long(broker, topic, settings, batches)


def keep_misfits(broker: Broker, partition: Partition, looked: Looked) -> Partition:
    """Put the messages that do not fit into quarantine, if they are not there; where, if they may be kept.

    It must be safe too before the batches are said to be.
    """
    target = quarantine_for(broker, partition.source.topic, partition.log.settings)
    if target is None:
        raise SchemaMismatch(looked.problems)
    quarantine = quarantine_partition(broker, partition.source, target)
    now_ms = broker.clock.wall_ms()
    store_aside(quarantine, _aside(partition.source, looked, now_ms), now_ms=now_ms)
    return quarantine


class Unset(Unchecked):
    """Messages that do not fit must be in quarantine, which another node may lead, before the others come."""

    def __init__(self, source: TopicPartition, target: TopicName, looked: Looked) -> None:
        super().__init__()
        self.source = source
        self.target = target
        self.looked = looked


async def set_aside(broker: Broker, unset: Unset) -> None:
    """Have messages that do not fit in quarantine, wherever that is; returns when they are committed."""
    source, target = unset.source, unset.target
    await open_quarantine(broker, source.topic, target)
    runs = list(_aside(source, unset.looked, broker.clock.wall_ms()))
    command = KeepAside(target=TopicPartition(target, source.partition), runs=runs)
    assert broker.forwarding is not None, "one node alone has its quarantine at hand"
    await broker.forwarding.run(keep_aside, command)


def _aside(source: TopicPartition, looked: Looked, now_ms: int) -> Iterator[AsideRun]:
    for batch, messages, wrong in _with_misfits(looked):
        if wrong:
            yield from aside_runs(source, batch.header, messages, wrong, now_ms=now_ms)


def without_misfits(looked: Looked) -> list[CheckedBatch]:
    """Batches without the messages that do not fit.

    Offsets and sequence numbers are as if everything were stored: where a message is missing, an offset is.
    """
    left = []
    for batch, messages, wrong in _with_misfits(looked):
        if wrong:
            body = leave_out(messages, batch.header, wrong)
            batch = CheckedBatch(read_header(body), body, batch.lane)
        left.append(batch)
    return left


def _with_misfits(
    looked: Looked,
) -> Iterator[tuple[CheckedBatch, Sequence[StoredMessage], dict[int, str]]]:
    """Each batch with its messages, and what is wrong with some of them by their indexes in it."""
    first = 0
    for batch, messages in zip(looked.batches, looked.opened, strict=True):
        numbers = range(first, first + len(messages))
        yield batch, messages, {n - first: looked.problems[n] for n in numbers if n in looked.problems}
        first = numbers.stop


def _size_bytes(messages: Messages) -> int:
    return sum([len(message.value or b"") + len(message.key or b"") for message in messages])


def _misfits_now(
    broker: Broker, topic: str, settings: TopicSettings, messages: Messages, size_bytes: int
) -> dict[int, str]:
    checkers = broker.schemas.checkers
    if size_bytes * checkers.ns_a_byte_max > CHECK_NS_MAX:
        raise Unchecked
    check = MessageCheck(broker.schemas.registry, checkers, topic, settings)
    begun_ns, begun_cpu_ns = broker.clock.monotonic_ns(), broker.clock.cpu_ns()
    try:
        problems = check.problems(messages)
    except (NotReady, Apart):
        raise Unchecked from None
    if problems and broker.schemas.sharing is not None:
        raise Unchecked  # what they need may have been registered at another node just now
    took_ns = broker.clock.monotonic_ns() - begun_ns
    broker.counters.topic(topic).checked(len(messages), len(problems), took_ns / 1e9)
    took_ms = took_ns // _NS_PER_MS
    if took_ms > _LATE_MS:
        # By CPU time: on a busy machine everything takes longer by the clock, and no schema is to blame.
        took_ms = (broker.clock.cpu_ns() - begun_cpu_ns) // _NS_PER_MS
    if took_ms > _LATE_MS:
        tell_late(broker, topic, check.used, took_ms)
    else:
        checkers.was_in_time()
    return problems


async def _misfits_later(
    broker: Broker, topic: str, settings: TopicSettings, messages: Messages
) -> dict[int, str]:
    begun_ns = broker.clock.monotonic_ns()
    waiting = dict(enumerate(messages))
    problems = await _problems_of(broker, topic, settings, waiting)
    sharing = broker.schemas.sharing
    if problems and sharing is not None and await sharing.catch_up():
        waiting = {index: messages[index] for index in problems}
        problems = await _problems_of(broker, topic, settings, waiting)
    seconds = (broker.clock.monotonic_ns() - begun_ns) / 1e9
    broker.counters.topic(topic).checked(len(messages), len(problems), seconds)
    return dict(sorted(problems.items()))


async def _problems_of(
    broker: Broker, topic: str, settings: TopicSettings, waiting: dict[int, Message | StoredMessage]
) -> dict[int, str]:
    """What is wrong with messages by the registry as it is here."""
    check = MessageCheck(broker.schemas.registry, broker.schemas.checkers, topic, settings)
    slices = Slices(broker.clock)
    problems: dict[int, str] = {}
    while waiting:
        not_ready: set[int] = set()
        questions: dict[Question, None] = {}
        for index, message in tuple(waiting.items()):
            await slices.pause()
            try:
                problem = check.problem(message.value, message.key, message.headers)
            except NotReady as missing:
                not_ready.add(missing.schema_id)
            except Apart as apart:
                questions[apart.question] = None
            else:
                del waiting[index]
                if problem is not None:
                    problems[index] = problem
        for schema_id in not_ready:
            check.know(schema_id, await make_ready(broker, topic, schema_id))
        check.answers.update(await answer(broker, topic, questions))
    return problems
