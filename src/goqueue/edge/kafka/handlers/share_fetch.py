"""ShareFetch and ShareAcknowledge: a share consumer takes messages with a lease, and settles them by offset.

Whole batches are handed out as they were stored; what of them the consumer has acquired is said beside
them. Acknowledgements ride on the next fetch or come alone.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from kio.schema.errors import ErrorCode

from goqueue.broker.forwarding.at_home import at_home
from goqueue.broker.queue.share_groups import (
    acquire,
    batches_of,
    know_member,
    release_all,
    runs_by_count,
    settle_runs,
)
from goqueue.core.cluster.numbers import NOBODY, node_number
from goqueue.core.delivery.runs import LAST_OFFSET_MAX, Run
from goqueue.edge.kafka.context import Context
from goqueue.edge.kafka.errors import kafka_code, kafka_text
from goqueue.edge.kafka.schemas import Reply
from goqueue.edge.kafka.share_sessions import CLOSE, OPEN, Source
from goqueue.model.delivery import (
    Acquire,
    AcquiredPart,
    Action,
    KnowMember,
    Poll,
    ReadBatches,
    ReleaseAll,
    SettleRuns,
)
from goqueue.model.errors import (
    GoQueueError,
    Invalid,
    NotLeader,
    RateExceeded,
    ShareSessionStale,
    UnknownMember,
)
from goqueue.model.groups import NO_GENERATION, Membership
from goqueue.model.ids import TopicPartition

if TYPE_CHECKING:
    from kio.schema.share_acknowledge.v2.request import AcknowledgementBatch as AloneBatch
    from kio.schema.share_acknowledge.v2.request import AcknowledgeTopic, ShareAcknowledgeRequest
    from kio.schema.share_fetch.v2.request import AcknowledgementBatch as RidingBatch
    from kio.schema.share_fetch.v2.request import FetchTopic, ShareFetchRequest

    Batches = Sequence[RidingBatch | AloneBatch]

_MILLISECOND = timedelta(milliseconds=1)
_GONE = "the partition is not there any more"
_ACTION_OF = {
    0: Action.ACK,  # a gap: there is no message at the offset, and nothing to wait for
    1: Action.ACK,
    2: Action.NACK,
    3: Action.REJECT,
    4: Action.EXTEND,
}


class _Outcome(NamedTuple):
    """What came of the acknowledgements for a partition."""

    code: ErrorCode
    text: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Leader:
    leader_id: int
    leader_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Acquired:
    first_offset: int
    last_offset: int
    delivery_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedPartition:
    partition_index: int
    current_leader: Leader
    error_code: ErrorCode = ErrorCode.none
    error_message: str | None = None
    acknowledge_error_code: int = 0
    acknowledge_error_message: str | None = None
    records: bytes = b""
    acquired_records: tuple[Acquired, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedTopic:
    topic_id: UUID
    partitions: tuple[FetchedPartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchReply(Reply):
    acquisition_lock_timeout: timedelta
    responses: tuple[FetchedTopic, ...] = ()
    node_endpoints: tuple[object, ...] = ()
    error_code: ErrorCode = ErrorCode.none
    error_message: str | None = None
    throttle_time: timedelta = timedelta(0)


async def share_fetch(context: Context, request: "ShareFetchRequest") -> FetchReply:
    """Settle what is acknowledged, then take more, waiting for it."""
    group, member_id = request.group_id or "", request.member_id or ""
    lock = _lock(context, group, ())
    who = Membership(group, member_id, NO_GENERATION)
    throttle_ms = 0
    try:
        await at_home(context.broker, know_member, KnowMember(who))
        session = context.share_sessions.enter(group, member_id, request.share_session_epoch)
        named = _named(request.topics)
        forgotten = [
            (entry.topic_id, partition)
            for entry in request.forgotten_topics_data
            if entry.topic_id is not None
            for partition in entry.partitions
        ]
        if request.share_session_epoch != CLOSE:
            context.share_sessions.change(session, named, forgotten)
        outcomes = await _acknowledge(context, who, named)
        parts: list[AcquiredPart] = []
        known, gone = _found(context, session.sources)
        led, others = _led_here(context, known)
        if request.share_session_epoch == CLOSE:
            await at_home(context.broker, release_all, ReleaseAll(who, tuple(known)))
        elif request.max_bytes > 0 and request.max_records > 0 and led:
            wanted = Poll(
                group=group,
                member_id=member_id,
                limit=request.max_records,
                max_bytes=request.max_bytes,
                # What became of acknowledgements, who leads instead, what is gone: worth telling at once.
                wait_ms=0 if outcomes or others or gone else _wait_ms(context, request.max_wait),
                sources=led,
            )
            try:
                parts = await at_home(context.broker, acquire, Acquire(wanted))
            except RateExceeded as error:
                throttle_ms = error.retry_after_ms
                context.throttle.ask(throttle_ms)
            except UnknownMember:
                # It was a member when it asked, and has left since: whoever closes wants to hear no error.
                parts = []
        fetched = [
            (source, await _fetched(context, part, outcomes.pop(source, None)))
            for part in parts
            if (source := known[part.source])
        ]
    except GoQueueError as error:
        return FetchReply(
            acquisition_lock_timeout=lock, error_code=kafka_code(error), error_message=kafka_text(error)
        )
    for place in others:
        source = known[place]
        fetched.append((source, _led_elsewhere(context, place, outcomes.pop(source, None))))
    # It is told once: the client learns from a heartbeat what there is instead.
    context.share_sessions.change(session, (), gone)
    fetched += [
        (source, _not_there(source, code, outcomes.pop(source, None))) for source, code in gone.items()
    ]
    fetched += [(source, _settled(context, source, outcome)) for source, outcome in outcomes.items()]
    return FetchReply(
        acquisition_lock_timeout=_lock(context, group, known),
        responses=_by_topic(fetched),
        throttle_time=throttle_ms * _MILLISECOND,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AcknowledgedPartition:
    partition_index: int
    current_leader: Leader
    error_code: ErrorCode
    error_message: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AcknowledgedTopic:
    topic_id: UUID
    partitions: tuple[AcknowledgedPartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AcknowledgeReply(Reply):
    acquisition_lock_timeout: timedelta
    responses: tuple[AcknowledgedTopic, ...] = ()
    node_endpoints: tuple[object, ...] = ()
    error_code: ErrorCode = ErrorCode.none
    error_message: str | None = None


async def share_acknowledge(context: Context, request: "ShareAcknowledgeRequest") -> AcknowledgeReply:
    """Settle what is acknowledged, without taking more."""
    group, member_id = request.group_id or "", request.member_id or ""
    lock = _lock(context, group, ())
    who = Membership(group, member_id, NO_GENERATION)
    try:
        if request.share_session_epoch == OPEN:
            raise ShareSessionStale("a share session is opened by a fetch")
        await at_home(context.broker, know_member, KnowMember(who))
        session = context.share_sessions.enter(group, member_id, request.share_session_epoch)
        outcomes = await _acknowledge(context, who, _named(request.topics))
        known, _ = _found(context, session.sources)
        if request.share_session_epoch == CLOSE:
            await at_home(context.broker, release_all, ReleaseAll(who, tuple(known)))
    except GoQueueError as error:
        return AcknowledgeReply(
            acquisition_lock_timeout=lock, error_code=kafka_code(error), error_message=kafka_text(error)
        )
    topics: dict[UUID, list[AcknowledgedPartition]] = {}
    for source, outcome in outcomes.items():
        topic_id, partition = source
        topics.setdefault(topic_id, []).append(
            AcknowledgedPartition(
                partition_index=partition,
                current_leader=_leader_of(context, source),
                error_code=outcome.code,
                error_message=outcome.text,
            )
        )
    return AcknowledgeReply(
        acquisition_lock_timeout=_lock(context, group, known),
        responses=tuple(
            AcknowledgedTopic(topic_id=topic_id, partitions=tuple(parts))
            for topic_id, parts in topics.items()
        ),
    )


def _named(topics: Iterable["FetchTopic | AcknowledgeTopic"]) -> "dict[Source, Batches]":
    """The partitions of a request with their acknowledgements, be they there or not."""
    return {
        (topic.topic_id, partition.partition_index): partition.acknowledgement_batches
        for topic in topics
        if topic.topic_id is not None
        for partition in topic.partitions
    }


def _found(
    context: Context, sources: Iterable[Source]
) -> tuple[dict[TopicPartition, Source], dict[Source, ErrorCode]]:
    """Those of some partitions that are there, by their names, and why the others are not."""
    known: dict[TopicPartition, Source] = {}
    gone: dict[Source, ErrorCode] = {}
    for source in sources:
        found = _find(context, source)
        if isinstance(found, TopicPartition):
            known[found] = source
        else:
            gone[source] = found
    return known, gone


def _find(context: Context, source: Source) -> TopicPartition | ErrorCode:
    """A partition by its name, or what to say of one that is not there."""
    topic_id, partition = source
    name = context.broker.metadata.names.get(topic_id)
    if name is None:
        return ErrorCode.unknown_topic_id
    if not 0 <= partition < context.broker.topic_counts.get(name, 0):
        return ErrorCode.unknown_topic_or_partition
    return TopicPartition(name, partition)


async def _acknowledge(
    context: Context, who: Membership, named: "dict[Source, Batches]"
) -> dict[Source, _Outcome]:
    outcomes: dict[Source, _Outcome] = {}
    for source, batches in named.items():
        if not batches:
            continue
        place = _find(context, source)
        if not isinstance(place, TopicPartition):
            outcomes[source] = _Outcome(place, _GONE)
            continue
        try:
            for action, runs in _by_action(batches).items():
                await at_home(context.broker, settle_runs, SettleRuns(who, place, runs, action))
            outcomes[source] = _Outcome(ErrorCode.none, None)
        except GoQueueError as error:
            outcomes[source] = _Outcome(kafka_code(error), kafka_text(error))
    return outcomes


def _by_action(batches: "Batches") -> dict[Action, list[Run]]:
    """Runs of offsets, rising, by what is to become of them. However long a run is, it stays one."""
    found: dict[Action, list[Run]] = {}
    end = 0
    for batch in batches:
        count = batch.last_offset - batch.first_offset + 1
        types = batch.acknowledge_types
        is_in_order = end <= batch.first_offset <= batch.last_offset < LAST_OFFSET_MAX
        if not is_in_order or len(types) not in (1, count):
            raise Invalid("acknowledgements name offsets that rise, with one type for all or for each")
        if not _ACTION_OF.keys() >= set(types):
            raise Invalid(f"acknowledgements are of types {min(_ACTION_OF)} to {max(_ACTION_OF)}")
        end = batch.last_offset + 1
        if len(types) == 1:
            found.setdefault(_ACTION_OF[types[0]], []).append((batch.first_offset, end))
        else:
            for action, run in _runs_of_types(batch.first_offset, types):
                found.setdefault(action, []).append(run)
    return found


def _runs_of_types(first: int, types: Sequence[int]) -> Iterator[tuple[Action, Run]]:
    for action, alike in groupby(map(_ACTION_OF.__getitem__, types)):
        end = first + sum(1 for _ in alike)
        yield action, (first, end)
        first = end


async def _fetched(context: Context, part: AcquiredPart, outcome: _Outcome | None) -> FetchedPartition:
    acquired = tuple(
        Acquired(first_offset=first, last_offset=end - 1, delivery_count=count)
        for (first, end), count in runs_by_count(part.delivery_counts, part.offsets)
    )
    return FetchedPartition(
        partition_index=part.source.partition,
        current_leader=_leader(context, part.source),
        acknowledge_error_code=ErrorCode.none if outcome is None else outcome.code,
        acknowledge_error_message=None if outcome is None else outcome.text,
        records=b"".join(await batches_of(context.broker, ReadBatches(part.source, part.offsets))),
        acquired_records=acquired,
    )


def _led_here(
    context: Context, sources: Collection[TopicPartition]
) -> tuple[Collection[TopicPartition], list[TopicPartition]]:
    """Of some partitions those whose bytes are handed out here, and those that others lead."""
    if not context.broker.is_one_of_several:
        return sources, []
    me = context.broker.node_number
    led = [source for source in sources if _leader(context, source).leader_id == me]
    others = set(sources).difference(led)
    return led, [source for source in sources if source in others]


def _led_elsewhere(context: Context, source: TopicPartition, outcome: _Outcome | None) -> FetchedPartition:
    error = NotLeader(*source)
    return FetchedPartition(
        partition_index=source.partition,
        current_leader=_leader(context, source),
        error_code=kafka_code(error),
        error_message=kafka_text(error),
        acknowledge_error_code=ErrorCode.none if outcome is None else outcome.code,
        acknowledge_error_message=None if outcome is None else outcome.text,
    )


def _not_there(source: Source, code: ErrorCode, outcome: _Outcome | None) -> FetchedPartition:
    return FetchedPartition(
        partition_index=source[1],
        current_leader=_NO_LEADER,
        error_code=code,
        error_message=_GONE,
        acknowledge_error_code=ErrorCode.none if outcome is None else outcome.code,
        acknowledge_error_message=None if outcome is None else outcome.text,
    )


def _settled(context: Context, source: Source, outcome: _Outcome) -> FetchedPartition:
    return FetchedPartition(
        partition_index=source[1],
        current_leader=_leader_of(context, source),
        acknowledge_error_code=outcome.code,
        acknowledge_error_message=outcome.text,
    )


def _by_topic(fetched: Iterable[tuple[Source, FetchedPartition]]) -> tuple[FetchedTopic, ...]:
    topics: dict[UUID, list[FetchedPartition]] = {}
    for (topic_id, _), part in fetched:
        topics.setdefault(topic_id, []).append(part)
    return tuple(FetchedTopic(topic_id=i, partitions=tuple(parts)) for i, parts in topics.items())


_NO_LEADER = Leader(leader_id=-1, leader_epoch=-1)


def _leader_of(context: Context, source: Source) -> Leader:
    place = _find(context, source)
    return _leader(context, place) if isinstance(place, TopicPartition) else _NO_LEADER


def _leader(context: Context, source: TopicPartition) -> Leader:
    """Who leads a partition, if it is there: what was asked of one that is not is answered with an error."""
    broker = context.broker
    topic = broker.metadata.topics.get(source.topic)
    if topic is None or not 0 <= source.partition < broker.topic_counts.get(source.topic, 0):
        return _NO_LEADER
    leader_epoch = broker.metadata.epoch(topic, source.partition)
    leader = broker.metadata.record(topic, source.partition).leader
    return Leader(leader_id=NOBODY if leader is None else node_number(leader), leader_epoch=leader_epoch)


def _lock(context: Context, group: str, sources: Iterable[TopicPartition]) -> timedelta:
    """How long what is acquired is kept from others: of several topics the shortest time, which all keep."""
    if (lock_ms := context.broker.group_settings.of(group).share_lock_ms) is not None:
        return lock_ms * _MILLISECOND
    topics = context.broker.metadata.topics
    times_ms = (
        topics[name].settings.visibility_ms for name in {topic for topic, _ in sources} if name in topics
    )
    default_ms = context.broker.config.topic_defaults.visibility_ms
    return min(times_ms, default=default_ms) * _MILLISECOND


def _wait_ms(context: Context, wait: timedelta) -> int:
    return min(max(wait // _MILLISECOND, 0), context.config.fetch_wait_ms_max)
