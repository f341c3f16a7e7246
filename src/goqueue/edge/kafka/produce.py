"""Produce: record batches, already built by the client, into their partitions.

Offsets are fixed when the request is read; what remains is to wait until the batches are as safe as the
client asked. That wait is handed to the connection, so that requests sent one behind the other share
one fsync.
"""

import asyncio
from collections.abc import Awaitable, Sequence
from functools import partial
from itertools import islice
from struct import Struct
from typing import NamedTuple

from kio.schema.errors import ErrorCode

from goqueue.broker.schemas.check import Unchecked
from goqueue.broker.slices import Slices
from goqueue.broker.tenants.quotas import publish_wait_ms
from goqueue.broker.write.append import append, append_when_checked
from goqueue.edge.kafka.context import Context
from goqueue.edge.kafka.errors import kafka_code, kafka_text
from goqueue.edge.kafka.later import Wait
from goqueue.edge.kafka.leaders import CurrentLeader, endpoint_tags, leader_now, leader_tags
from goqueue.edge.kafka.topic_ids import TopicReference, read_topic
from goqueue.edge.kafka.wire import INT32, NO_TAGS, REQUEST_ITEMS_MAX, Reader, TooManyItems, count, string
from goqueue.model.commands import NO_APPEND_TIME, Append, Appended
from goqueue.model.errors import (
    GoQueueError,
    InvalidBatch,
    InvalidRecord,
    InvalidTimestamp,
    NotLeader,
    NotSupported,
    SchemaMismatch,
    ShuttingDown,
    TopicNotFound,
)
from goqueue.model.ids import TopicPartition
from goqueue.model.messages import Acks
from goqueue.model.tenant_commands import PublishWait

FIRST_FLEXIBLE = 9
_WITH_THROTTLE_TIME = 1
_WITH_APPEND_TIME = 2
_WITH_TRANSACTIONAL_ID = 3
_WITH_START_OFFSET = 5
_WITH_RECORD_ERRORS = 8
_WITH_LEADER = 10
_LEADER_TAG = 0
_WITH_JOINING = 12
"""From here on a batch makes its partition part of the transaction: version 2 of that protocol."""
_WITH_TOPIC_ID = 13

_ACKS_AND_TIMEOUT = Struct(">hi")
_ACKS = {0: Acks.NONE, 1: Acks.LEADER, -1: Acks.ALL}

_OUTCOME = Struct(">ihq")
_OUTCOME_WITH_TIME = Struct(">ihqq")
_OUTCOME_WITH_START = Struct(">ihqqq")
_AT_ONCE_ITEMS_MAX = 250
"""Topics and partitions of a request that is served in one piece: so many appends take some 10 ms."""
_RECORD_ERRORS_MAX = 1_000
"""A client that sends more bad records than this at once hears of the first."""


class PartitionBatches(NamedTuple):
    partition: int
    batches: memoryview | None


class TopicBatches(NamedTuple):
    topic: TopicReference
    partitions: list[PartitionBatches]


class ProduceRequest(NamedTuple):
    transactional_id: str | None
    acks: int
    topics: list[TopicBatches]


class PartitionOutcome:
    """What became of one partition's batches."""

    __slots__ = (
        "append_time_ms",
        "base_offset",
        "code",
        "leader",
        "partition",
        "record_errors",
        "start_offset",
        "text",
    )

    def __init__(self, partition: int) -> None:
        self.partition = partition
        self.code = ErrorCode.none
        self.base_offset = -1
        self.start_offset = -1
        self.append_time_ms = NO_APPEND_TIME
        self.text: str | None = None
        self.record_errors: Sequence[tuple[int, str]] = ()
        self.leader: CurrentLeader | None = None
        """Who leads instead, if it is known."""

    def fail(self, error: GoQueueError, code: ErrorCode | None = None) -> None:
        """Refuse the batches, by the code that stands in the table unless told otherwise."""
        self.code = kafka_code(error) if code is None else code
        self.text = kafka_text(error)
        self.base_offset = self.start_offset = self.append_time_ms = -1
        if isinstance(error, SchemaMismatch | InvalidTimestamp):
            self.record_errors = list(islice(error.problems.items(), _RECORD_ERRORS_MAX))
        elif isinstance(error, InvalidRecord):
            self.record_errors = [(error.record_index, self.text)]


class Produced(NamedTuple):
    """A request whose batches are in the log. All `waits` must be over before the reply may leave."""

    version: int
    topics: list[tuple[TopicReference, list[PartitionOutcome]]]
    waits: list[Wait]
    wants_reply: bool
    throttle_ms: int = 0
    body: bytes | None = None
    """The reply, where it was too long to be written on the loop."""

    def first_failure(self) -> PartitionOutcome | None:
        return next(
            (o for _, outcomes in self.topics for o in outcomes if o.code is not ErrorCode.none), None
        )


Commands = list[tuple[Append, PartitionOutcome]]


def read_produce(context: Context, version: int, reader: Reader) -> ProduceRequest:
    """The whole request before any of it is acted upon: a malformed one must leave no trace."""
    flexible = version >= FIRST_FLEXIBLE
    transactional_id = None
    if version >= _WITH_TRANSACTIONAL_ID:
        transactional_id = reader.string_or_null(flexible=flexible)
    acks, _timeout_ms = reader.unpack(_ACKS_AND_TIMEOUT)
    topics = []
    for _ in range(reader.count(flexible=flexible)):
        topic = read_topic(context, reader, by_id=version >= _WITH_TOPIC_ID, flexible=flexible)
        partitions = []
        for _ in range(reader.count(flexible=flexible)):
            partitions.append(PartitionBatches(reader.int32(), reader.bytes_or_null(flexible=flexible)))
            if flexible:
                reader.skip_tags()
        if flexible:
            reader.skip_tags()
        topics.append(TopicBatches(topic, partitions))
    return ProduceRequest(transactional_id, acks, topics)


def produce(context: Context, version: int, reader: Reader) -> Produced | Awaitable[Produced]:
    """Append everything in one request; what cannot be appended is refused a partition at a time.

    At once, unless the messages take time to be checked or the partitions are too many to hold the loop for.
    Nothing of the connection may be begun until it is done.
    """
    start = reader.position
    reader.items_left = _AT_ONCE_ITEMS_MAX
    try:
        produced, commands = _planned(context, version, reader)
    except TooManyItems:
        reader.position, reader.items_left = start, REQUEST_ITEMS_MAX
        return _produce_many(context, version, reader)
    for done, (command, outcome) in enumerate(commands):
        if not _append(context, command, outcome, produced.waits):
            # What comes behind a batch that must wait stays behind it.
            return _finish(context, produced, commands[done:])
    return _throttled(context, produced)


def _planned(context: Context, version: int, reader: Reader) -> tuple[Produced, Commands]:
    """What is to be appended, and the places for what becomes of it. Changes nothing yet."""
    request = read_produce(context, version, reader)
    may_join = version >= _WITH_JOINING and request.transactional_id is not None
    commands: Commands = []
    topics = []
    for topic, partitions in request.topics:
        outcomes = []
        for partition, batches in partitions:
            outcome = PartitionOutcome(partition)
            outcomes.append(outcome)
            if topic.name is None:
                outcome.fail(TopicNotFound(topic.given.hex()), ErrorCode.unknown_topic_id)
            elif request.acks not in _ACKS:
                outcome.fail(
                    NotSupported(f"acks must be 0, 1 or -1, not {request.acks}"),
                    ErrorCode.invalid_required_acks,
                )
            elif batches is None:
                outcome.fail(InvalidBatch("a publish needs at least one record batch"))
            else:
                target = TopicPartition(topic.name, partition)
                command = Append(target, batches, _ACKS[request.acks], may_join, request.transactional_id)
                commands.append((command, outcome))
        topics.append((topic, outcomes))
    return Produced(version, topics, [], wants_reply=request.acks != 0), commands


async def _produce_many(context: Context, version: int, reader: Reader) -> Produced:
    """Read and written beside the loop, appended in slices; done when the disk has it, too."""
    threads = context.broker.threads
    produced, commands = await threads.run(partial(_planned, context, version, reader))
    produced = await _finish(context, produced, commands)
    slices = Slices(context.broker.clock)
    for outcome, committed in produced.waits:
        commit = asyncio.ensure_future(committed)
        if not commit.done():
            await asyncio.wait([commit])
        error = ShuttingDown() if commit.cancelled() else commit.exception()
        if isinstance(error, GoQueueError):
            outcome.fail(error)
        elif error is not None:
            raise error
        await slices.pause()
    produced.waits.clear()
    if not produced.wants_reply:
        return produced
    return produced._replace(body=await threads.run(partial(encode_produced, produced)))


async def _finish(context: Context, produced: Produced, commands: Commands) -> Produced:
    """Append what takes time to be checked, or is too much for one piece."""
    slices = Slices(context.broker.clock)
    for command, outcome in commands:
        try:
            context.broker.warden.admit(command)
            appended = await append_when_checked(context.broker, command)
        except GoQueueError as error:
            _refuse(context, command, outcome, error)
        else:
            _note(appended, outcome, produced.waits)
        await slices.pause()
    return _throttled(context, produced)


def _throttled(context: Context, produced: Produced) -> Produced:
    if not produced.topics or not context.broker.tenants.accounts:
        return produced
    throttle_ms = publish_wait_ms(
        context.broker, PublishWait({topic.name or "" for topic, _ in produced.topics})
    )
    context.throttle.ask(throttle_ms)
    return produced._replace(throttle_ms=throttle_ms)


def _append(context: Context, command: Append, outcome: PartitionOutcome, waits: list[Wait]) -> bool:
    """Whether it is decided what becomes of the batches; if not they must be checked first."""
    try:
        context.broker.warden.admit(command)
        appended = append(context.broker, command)
    except Unchecked:
        return False
    except GoQueueError as error:
        _refuse(context, command, outcome, error)
    else:
        _note(appended, outcome, waits)
    return True


def _note(appended: Appended, outcome: PartitionOutcome, waits: list[Wait]) -> None:
    outcome.base_offset = appended.base_offset
    outcome.start_offset = appended.start_offset
    outcome.append_time_ms = appended.append_time_ms
    if appended.committed is not None:
        waits.append(Wait(outcome, appended.committed))


def _refuse(context: Context, command: Append, outcome: PartitionOutcome, error: GoQueueError) -> None:
    outcome.fail(error)
    broker = context.broker
    if isinstance(error, NotLeader):
        outcome.leader = leader_now(context, command.target)
    broker.telemetry.refused(command.target.topic, error.code, str(error), time_us=broker.clock.wall_us())


def encode_produced(produced: Produced) -> bytes:
    """The body of the reply."""
    if produced.body is not None:
        return produced.body
    version = produced.version
    flexible = version >= FIRST_FLEXIBLE
    parts = [count(len(produced.topics), flexible=flexible)]
    for topic, outcomes in produced.topics:
        parts += (topic.given, count(len(outcomes), flexible=flexible))
        parts += (_encode_outcome(outcome, version, flexible=flexible) for outcome in outcomes)
        if flexible:
            parts.append(NO_TAGS)
    if version >= _WITH_THROTTLE_TIME:
        parts.append(INT32.pack(produced.throttle_ms))
    if flexible:
        parts.append(_end(produced) if version >= _WITH_LEADER else NO_TAGS)
    return b"".join(parts)


def _end(produced: Produced) -> bytes:
    """Where the leaders are that partitions name; nearly always there are none."""
    leaders = [one.leader for _, outcomes in produced.topics for one in outcomes if one.leader is not None]
    return endpoint_tags(leaders) if leaders else NO_TAGS


def _encode_outcome(outcome: PartitionOutcome, version: int, *, flexible: bool) -> bytes:
    partition, code, base_offset = outcome.partition, outcome.code, outcome.base_offset
    if version < _WITH_APPEND_TIME:
        return _OUTCOME.pack(partition, code, base_offset)
    if version < _WITH_START_OFFSET:
        return _OUTCOME_WITH_TIME.pack(partition, code, base_offset, outcome.append_time_ms)
    fixed = _OUTCOME_WITH_START.pack(
        partition, code, base_offset, outcome.append_time_ms, outcome.start_offset
    )
    if version < _WITH_RECORD_ERRORS:
        return fixed
    tags = NO_TAGS if flexible else b""
    records = count(len(outcome.record_errors), flexible=flexible)
    for index, text in outcome.record_errors:
        records += INT32.pack(index) + string(text, flexible=flexible) + tags
    if outcome.leader is not None and version >= _WITH_LEADER:
        tags = leader_tags(_LEADER_TAG, outcome.leader)
    return fixed + records + string(outcome.text, flexible=flexible) + tags
