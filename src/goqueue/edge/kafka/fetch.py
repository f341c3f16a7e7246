"""Fetch: batches from given offsets on, unopened, with a long poll.

The reply is a list of buffers: a few bytes packed here around the batches as the log handed them over.
A request may name very many partitions: it is read, and its reply packed, in shares with pauses in between.
There are no fetch sessions. That is said honestly: every reply carries session id 0, at which clients
name all their partitions in each request, and a session id from elsewhere is refused.
"""

from collections.abc import Awaitable, Coroutine, Sequence
from struct import Struct
from typing import Any, NamedTuple

from kio.schema.errors import ErrorCode

from goqueue.broker.read.read import read
from goqueue.broker.slices import Slices
from goqueue.broker.tenants.quotas import consume_wait_ms, within_rates
from goqueue.core.cluster.numbers import node_number
from goqueue.edge.kafka.context import Context
from goqueue.edge.kafka.errors import kafka_code
from goqueue.edge.kafka.leaders import CurrentLeader, endpoint_tags, leader_now, leader_tags
from goqueue.edge.kafka.metering import charge, held_of, metered, wait_ms
from goqueue.edge.kafka.topic_ids import TopicReference, read_topic
from goqueue.edge.kafka.wire import INT32, NO_TAGS, Reader, count, varint
from goqueue.model.access import Operation
from goqueue.model.commands import BatchesRead, PartitionRead, PartitionReadFailed, Read
from goqueue.model.errors import NotLeader
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.ports import Buffer
from goqueue.model.tenant_commands import ConsumeWait, LimitReads
from goqueue.model.transactions import Isolation

FIRST_FLEXIBLE = 12
_SHARE_COUNT = 250
"""So many partitions are read or packed before others may have their turn: about half a millisecond."""
_WITH_START_OFFSET = 5
_WITH_SESSION = 7
_WITH_LEADER_EPOCH = 9
_WITH_RACK = 11
_WITH_TOPIC_ID = 13
_WITHOUT_REPLICA_ID = 15
_WITH_ENDPOINTS = 16
_LEADER_TAG = 1

_LIMITS = Struct(">iiib")
_SESSION = Struct(">ii")
_NO_SESSION = 0
_FORGOTTEN_MAX = 1_000
"""Topics that a session is to forget: without sessions there are none, and very many are not read over."""
_READ_COMMITTED = 1

_REPLY_START = Struct(">i")
_REPLY_START_WITH_SESSION = Struct(">ihi")
_PARTITION = Struct(">ihqq")
_PARTITION_WITH_START = Struct(">ihqqq")
_ABORTED = Struct(">qq")
_NO_REPLICA = INT32.pack(-1)


class PartitionLayout(NamedTuple):
    """Where the fields of one partition stand in the request, by version."""

    fields: Struct
    leader_epoch: int | None
    offset: int
    max_bytes: int


_LAYOUT_4 = PartitionLayout(Struct(">iqi"), None, 1, 2)
_LAYOUT_5 = PartitionLayout(Struct(">iqqi"), None, 1, 3)
_LAYOUT_9 = PartitionLayout(Struct(">iiqqi"), 1, 2, 4)
_LAYOUT_12 = PartitionLayout(Struct(">iiqiqi"), 1, 2, 5)


class TopicFetch(NamedTuple):
    topic: TopicReference
    partitions: list[PartitionRead]


class FetchRequest(NamedTuple):
    wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation: int
    session_id: int
    topics: list[TopicFetch]
    rack: str = ""
    """Where the client is, if it says and there is more than one place to be."""


async def read_fetch(context: Context, version: int, reader: Reader) -> FetchRequest:
    """The whole request, up to what it says of sessions: there are none."""
    flexible = version >= FIRST_FLEXIBLE
    if version < _WITHOUT_REPLICA_ID:
        reader.int32()
    wait_ms, min_bytes, max_bytes, isolation = reader.unpack(_LIMITS)
    session_id, _session_epoch = reader.unpack(_SESSION) if version >= _WITH_SESSION else (_NO_SESSION, 0)
    layout = _partition_layout(version)
    by_id = version >= _WITH_TOPIC_ID
    topics = []
    slices = Slices(context.broker.clock)
    read_count = 0
    for _ in range(reader.count(flexible=flexible)):
        topic = read_topic(context, reader, by_id=by_id, flexible=flexible)
        partitions: list[PartitionRead] = []
        for share in _shares(reader.count(flexible=flexible)):
            partitions += [_read_partition(topic, layout, reader) for _ in share]
            read_count += len(share) + 1
            if read_count >= _SHARE_COUNT:
                read_count = 0
                await slices.pause()
        if flexible:
            reader.skip_tags()
        topics.append(TopicFetch(topic, partitions))
    rack = _read_rack(version, reader) if version >= _WITH_RACK and context.broker.is_one_of_several else ""
    return FetchRequest(wait_ms, min_bytes, max_bytes, isolation, session_id, topics, rack)


def _read_rack(version: int, reader: Reader) -> str:
    """The client's rack, behind what a session is to forget."""
    flexible = version >= FIRST_FLEXIBLE
    forgotten_count = reader.count(flexible=flexible)
    if forgotten_count > _FORGOTTEN_MAX:
        return ""
    for _ in range(forgotten_count):
        if version >= _WITH_TOPIC_ID:
            reader.uuid()
        else:
            reader.string(flexible=flexible)
        reader.take(4 * reader.count(flexible=flexible))
        if flexible:
            reader.skip_tags()
    return reader.string_or_null(flexible=flexible) or ""


def _shares(total: int) -> Sequence[range]:
    """So many things, a share at a time."""
    if total <= _SHARE_COUNT:
        return (range(total),)
    return [range(first, min(first + _SHARE_COUNT, total)) for first in range(0, total, _SHARE_COUNT)]


def _partition_layout(version: int) -> PartitionLayout:
    if version >= FIRST_FLEXIBLE:
        return _LAYOUT_12
    if version >= _WITH_LEADER_EPOCH:
        return _LAYOUT_9
    return _LAYOUT_5 if version >= _WITH_START_OFFSET else _LAYOUT_4


def _read_partition(topic: TopicReference, layout: PartitionLayout, reader: Reader) -> PartitionRead:
    values = reader.unpack(layout.fields)
    if layout is _LAYOUT_12:
        reader.skip_tags()
    return PartitionRead(
        TopicPartition(topic.name or TopicName(""), values[0]),
        values[layout.offset],
        values[layout.max_bytes],
        -1 if layout.leader_epoch is None else values[layout.leader_epoch],
    )


def fetch(context: Context, version: int, reader: Reader) -> Awaitable[list[Buffer]]:
    """The body of the reply, as buffers to be written one behind the other."""
    work = _fetch(context, version, reader)
    return _metered(context, work) if context.broker.client_quotas.entries else work


async def _metered(context: Context, work: Coroutine[Any, Any, list[Buffer]]) -> list[Buffer]:
    """The same, counted against the client. Its first number says how long it is not served."""
    first, *others = await metered(context, work)
    told = bytearray(first)
    _REPLY_START.pack_into(told, 0, context.throttle.hold_ms)
    return [bytes(told), *others]


async def _fetch(context: Context, version: int, reader: Reader) -> list[Buffer]:
    """The body of the reply, as buffers to be written one behind the other."""
    request = await read_fetch(context, version, reader)
    if request.session_id != _NO_SESSION:
        return [_encode_start(version, ErrorCode.fetch_session_id_not_found, topic_count=0), *_end(version)]
    wanted = [wanted for topic, partitions in request.topics if topic.name for wanted in partitions]
    throttle_ms = 0
    if context.broker.tenants.accounts:
        wanted, throttle_ms = within_rates(context.broker, LimitReads(wanted))
    held = held_of(context)
    max_bytes = context.config.fetch_bytes_max
    if held is not None and held.consumed is not None:
        now_ns = context.broker.clock.monotonic_ns()
        throttle_ms = max(throttle_ms, in_debt_ms := wait_ms(held.consumed, now_ns))
        max_bytes = min(max_bytes, max(held.consumed.left(now_ns=now_ns), 1))
        if in_debt_ms:
            wanted = [part._replace(max_bytes=0) for part in wanted]
        context.throttle.ask(throttle_ms)
    denied = context.broker.warden.denied(Operation.READ, (topic.name for topic, _ in request.topics))
    allowed = [one for one in wanted if one.source.topic not in denied] if denied else wanted
    # An error is told at once: the client has to refresh its metadata before it can go on.
    may_wait = all(topic.name for topic, _ in request.topics) and not throttle_ms and not denied
    replies = await read(
        context.broker,
        Read(
            partitions=allowed,
            min_bytes=request.min_bytes if may_wait else 0,
            max_bytes=min(max(request.max_bytes, 1), max_bytes),
            wait_ms=min(max(request.wait_ms, 0), context.config.fetch_wait_ms_max) if may_wait else 0,
            isolation=Isolation.COMMITTED if request.isolation == _READ_COMMITTED else Isolation.UNCOMMITTED,
            reader=context.client_id,
            rack=request.rack,
        ),
    )
    if denied:
        of_allowed = iter(replies)
        replies = [
            next(of_allowed) if refused is None else PartitionReadFailed(refused)
            for refused in (denied.get(one.source.topic) for one in wanted)
        ]
    if context.broker.tenants.accounts:
        topics = [topic.name for topic, _ in request.topics if topic.name]
        throttle_ms = max(throttle_ms, consume_wait_ms(context.broker, ConsumeWait(topics)))
        context.throttle.ask(throttle_ms)
    if held is not None:
        size = sum(reply.size for reply in replies if isinstance(reply, BatchesRead))
        charge(context, held.consumed, size)
    return await encode_fetched(context, version, request, replies, throttle_ms)


async def encode_fetched(
    context: Context,
    version: int,
    request: FetchRequest,
    replies: Sequence[BatchesRead | PartitionReadFailed],
    throttle_ms: int = 0,
) -> list[Buffer]:
    """Small packed parts around the batches of the log."""
    flexible = version >= FIRST_FLEXIBLE
    encode = _PartitionEncoder(version, read_committed=request.isolation == _READ_COMMITTED)
    leaders: list[CurrentLeader] = []
    reply_of_next = iter(replies)
    buffers: list[Buffer] = []
    slices = Slices(context.broker.clock)
    packed_count = 0
    topic_count = len(request.topics)
    packed = [_encode_start(version, ErrorCode.none, topic_count=topic_count, throttle_ms=throttle_ms)]
    for topic, partitions in request.topics:
        packed += (topic.given, count(len(partitions), flexible=flexible))
        for wanted in partitions:
            reply = next(reply_of_next) if topic.name else None
            packed.append(encode.start(wanted.source.partition, reply))
            if isinstance(reply, BatchesRead) and reply.size:
                buffers += (b"".join(packed), *reply.batches)
                packed.clear()
            leader = None
            if flexible and isinstance(reply, PartitionReadFailed) and isinstance(reply.error, NotLeader):
                leader = leader_now(context, wanted.source)
            if leader is None:
                packed += encode.end
            else:
                packed.append(leader_tags(_LEADER_TAG, leader))
                leaders.append(leader)
            packed_count += 1
            if packed_count >= _SHARE_COUNT:
                packed_count = 0
                await slices.pause()
        if flexible:
            packed.append(NO_TAGS)
    packed += [endpoint_tags(leaders)] if leaders and version >= _WITH_ENDPOINTS else _end(version)
    buffers.append(b"".join(packed))
    return buffers


class _PartitionEncoder:
    """Packs what stands before and behind a partition's batches, in one version's layout."""

    def __init__(self, version: int, *, read_committed: bool) -> None:
        self._flexible = version >= FIRST_FLEXIBLE
        self._has_start_offset = version >= _WITH_START_OFFSET
        # Kafka lists aborted transactions for those who read committed only, and has no list for others.
        self._none_aborted = count(0 if read_committed else -1, flexible=self._flexible)
        self._nobody = _NO_REPLICA if version >= _WITH_RACK else b""
        self.end = (NO_TAGS,) if self._flexible else ()

    def start(self, partition: int, reply: BatchesRead | PartitionReadFailed | None) -> bytes:
        """None: no topic has the id that was asked for."""
        size = 0
        code = ErrorCode.none
        high_watermark = stable_offset = start_offset = -1
        aborted, replica = self._none_aborted, self._nobody
        if reply is None:
            code = ErrorCode.unknown_topic_id
        else:
            high_watermark, start_offset = reply.high_watermark, reply.start_offset
            if isinstance(reply, BatchesRead):
                size = reply.size
                stable_offset = reply.last_stable_offset
                if reply.aborted:
                    aborted = self._list(reply.aborted)
                if reply.nearer is not None:
                    replica = INT32.pack(node_number(reply.nearer))
            else:
                code = kafka_code(reply.error)
        if self._has_start_offset:
            fixed = _PARTITION_WITH_START.pack(partition, code, high_watermark, stable_offset, start_offset)
        else:
            fixed = _PARTITION.pack(partition, code, high_watermark, stable_offset)
        records = varint(size + 1) if self._flexible else INT32.pack(size)
        return fixed + aborted + replica + records

    def _list(self, aborted: Sequence[tuple[int, int]]) -> bytes:
        tags = NO_TAGS if self._flexible else b""
        entries = [_ABORTED.pack(*entry) + tags for entry in aborted]
        return count(len(entries), flexible=self._flexible) + b"".join(entries)


def _encode_start(version: int, code: ErrorCode, *, topic_count: int, throttle_ms: int = 0) -> bytes:
    if version >= _WITH_SESSION:
        start = _REPLY_START_WITH_SESSION.pack(throttle_ms, code, _NO_SESSION)
    else:
        start = _REPLY_START.pack(throttle_ms)
    return start + count(topic_count, flexible=version >= FIRST_FLEXIBLE)


def _end(version: int) -> list[bytes]:
    return [NO_TAGS] if version >= FIRST_FLEXIBLE else []
