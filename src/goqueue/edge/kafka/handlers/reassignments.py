"""Where partitions are and who leads them: Alter- and ListPartitionReassignments, ElectLeaders."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from kio.schema.errors import ErrorCode

from goqueue.broker.forwarding.at_home import here
from goqueue.broker.moving.electing import elect_leaders
from goqueue.broker.moving.reassigning import cancel_move, list_moving, reassign
from goqueue.core.cluster.numbers import node_number
from goqueue.edge.kafka.context import Context
from goqueue.edge.kafka.errors import kafka_code, kafka_text
from goqueue.edge.kafka.once import done_to_each
from goqueue.edge.kafka.schemas import Reply
from goqueue.model.cluster import NodeId
from goqueue.model.errors import GoQueueError, NotSupported
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.moving import UNTHROTTLED, CancelMove, ElectLeaders, ListMoving, Reassign, WantedMove

if TYPE_CHECKING:
    from kio.schema.alter_partition_reassignments.v1.request import AlterPartitionReassignmentsRequest
    from kio.schema.elect_leaders.v2.request import ElectLeadersRequest
    from kio.schema.list_partition_reassignments.v0.request import ListPartitionReassignmentsRequest

_UNCLEAN = 1
_WAIT_MS_MAX = 30_000
T = TypeVar("T")


class _Wanted(NamedTuple):
    source: TopicPartition
    replicas: tuple[int, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReassignedPartition:
    partition_index: int
    error_code: ErrorCode = ErrorCode.none
    error_message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReassignedTopic:
    name: str
    partitions: tuple[ReassignedPartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterReassignmentsReply(Reply):
    responses: tuple[ReassignedTopic, ...]
    allow_replication_factor_change: bool = True
    error_code: ErrorCode = ErrorCode.none
    error_message: str | None = None


async def alter_partition_reassignments(
    context: Context, request: "AlterPartitionReassignmentsRequest"
) -> AlterReassignmentsReply:
    """Move partitions, each by itself, or call them back; what is on its way is moved elsewhere."""
    may_change: bool = getattr(request, "allow_replication_factor_change", True)
    wanted = [
        _Wanted(TopicPartition(TopicName(topic.name), int(one.partition_index)), _plain(one.replicas))
        for topic in request.topics
        for one in topic.partitions
    ]
    moves = [_move(context, one) for one in wanted if one.replicas is not None]
    try:
        # One order for all of them, so that people see one. Where any is refused, each is tried by itself.
        await _order(context, moves, may_change=may_change) if moves else None
    except GoQueueError:
        is_ordered = False
    else:
        is_ordered = True

    async def alter(one: _Wanted) -> ReassignedPartition:
        if is_ordered and one.replicas is not None:
            return ReassignedPartition(partition_index=one.source.partition)
        return await _alter(context, one, may_change=may_change)

    outcomes = await done_to_each(context, wanted, alter)
    done = list(zip((one.source for one in wanted), outcomes, strict=True))
    return AlterReassignmentsReply(
        responses=tuple(ReassignedTopic(name=name, partitions=shown) for name, shown in _by_topic(done)),
        allow_replication_factor_change=may_change,
    )


def _move(context: Context, wanted: _Wanted) -> WantedMove:
    return WantedMove(
        wanted.source, tuple(node_known_as(context, number) for number in wanted.replicas or ())
    )


async def _order(context: Context, moves: list[WantedMove], *, may_change: bool) -> None:
    command = Reassign(
        moves=moves,
        throttle_bytes_per_s=UNTHROTTLED,
        timeout_ms=0,
        replaces=True,
        keeps_copies=not may_change,
    )
    await here(context.broker, reassign, command)


async def _alter(context: Context, wanted: _Wanted, *, may_change: bool) -> ReassignedPartition:
    source = wanted.source
    try:
        if wanted.replicas is None:
            await here(context.broker, cancel_move, CancelMove(source=source))
        else:
            await _order(context, [_move(context, wanted)], may_change=may_change)
    except GoQueueError as error:
        return ReassignedPartition(
            partition_index=source.partition, error_code=kafka_code(error), error_message=kafka_text(error)
        )
    return ReassignedPartition(partition_index=source.partition)


@dataclass(frozen=True, slots=True, kw_only=True)
class MovingPartition:
    partition_index: int
    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    removing_replicas: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MovingTopic:
    name: str
    partitions: tuple[MovingPartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListReassignmentsReply(Reply):
    topics: tuple[MovingTopic, ...]
    error_code: ErrorCode = ErrorCode.none
    error_message: str | None = None


async def list_partition_reassignments(
    context: Context, request: "ListPartitionReassignmentsRequest"
) -> ListReassignmentsReply:
    """Partitions that are being moved, or wait for it."""
    sources = None
    if request.topics is not None:
        sources = [
            TopicPartition(TopicName(topic.name), int(number))
            for topic in request.topics
            for number in topic.partition_indexes
        ]
    try:
        moving = await here(context.broker, list_moving, ListMoving(sources=sources))
    except GoQueueError as error:
        return ListReassignmentsReply(
            topics=(), error_code=kafka_code(error), error_message=kafka_text(error)
        )
    shown = [
        (
            one.source,
            MovingPartition(
                partition_index=one.source.partition,
                replicas=_numbers(one.replicas),
                adding_replicas=_numbers(one.adding),
                removing_replicas=_numbers(one.removing),
            ),
        )
        for one in moving
    ]
    return ListReassignmentsReply(
        topics=tuple(MovingTopic(name=name, partitions=partitions) for name, partitions in _by_topic(shown))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectedPartition:
    partition_id: int
    error_code: ErrorCode = ErrorCode.none
    error_message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectedTopic:
    topic: str
    partition_result: tuple[ElectedPartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectLeadersReply(Reply):
    replica_election_results: tuple[ElectedTopic, ...]
    error_code: ErrorCode = ErrorCode.none


async def elect_leaders_of(context: Context, request: "ElectLeadersRequest") -> ElectLeadersReply:
    """Let the preferred replicas lead, or, where nobody does, any that is alive."""
    sources = None
    if request.topic_partitions is not None:
        sources = [
            TopicPartition(TopicName(named.topic), int(number))
            for named in request.topic_partitions
            for number in named.partitions
        ]
    wait_ms = min(int(request.timeout.total_seconds() * 1000), _WAIT_MS_MAX)
    is_unclean = getattr(request, "election_type", 0) == _UNCLEAN
    try:
        command = ElectLeaders(sources=sources, is_unclean=is_unclean, wait_ms=wait_ms)
        elections = await here(context.broker, elect_leaders, command)
    except NotSupported:
        # One node leads everything, as it should.
        elections_of_one = [(source, _not_needed(source)) for source in sources or ()]
        return ElectLeadersReply(replica_election_results=_elected(elections_of_one))
    except GoQueueError as error:
        return ElectLeadersReply(replica_election_results=(), error_code=kafka_code(error))
    shown = [
        (
            source,
            ElectedPartition(partition_id=source.partition)
            if error is None
            else ElectedPartition(
                partition_id=source.partition, error_code=kafka_code(error), error_message=kafka_text(error)
            ),
        )
        for source, error in elections
    ]
    return ElectLeadersReply(replica_election_results=_elected(shown))


def _not_needed(source: TopicPartition) -> ElectedPartition:
    return ElectedPartition(
        partition_id=source.partition,
        error_code=ErrorCode.election_not_needed,
        error_message="there is one node, which leads everything",
    )


def _elected(shown: Iterable[tuple[TopicPartition, ElectedPartition]]) -> tuple[ElectedTopic, ...]:
    return tuple(ElectedTopic(topic=name, partition_result=results) for name, results in _by_topic(shown))


def _by_topic(shown: Iterable[tuple[TopicPartition, T]]) -> list[tuple[str, tuple[T, ...]]]:
    found: dict[str, list[T]] = {}
    for source, one in shown:
        found.setdefault(source.topic, []).append(one)
    return [(name, tuple(ones)) for name, ones in found.items()]


def _plain(numbers: Iterable[int] | None) -> tuple[int, ...] | None:
    return None if numbers is None else tuple(map(int, numbers))


def _numbers(nodes: Iterable[NodeId]) -> tuple[int, ...]:
    return tuple(map(node_number, nodes))


def node_known_as(context: Context, number: int) -> NodeId:
    """The node that Kafka's clients know by a number; one that nobody has is refused by its number."""
    image = context.broker.metadata
    for node in sorted({*image.members, *image.nodes}):
        if node_number(node) == number:
            return node
    return NodeId(str(number))
