"""Producers and transactions over HTTP: what they do, and what people see of them."""

from typing import Annotated

import msgspec
from litestar import get, post
from litestar.di import NamedDependency
from litestar.params import PathParameter, QueryParameter, RawBody

from goqueue.broker.broker import Broker
from goqueue.broker.forwarding.at_home import at_home, here
from goqueue.broker.producers import init_producer
from goqueue.broker.transactions.joining import demand_producer
from goqueue.broker.transactions.verbs import (
    abort_transaction,
    add_group,
    add_partitions,
    add_receipts,
    begin_transaction,
    end_transaction,
    hear_producer,
    init_transactional,
    pend_offsets,
)
from goqueue.broker.transactions.views import list_transactions, transaction_stats
from goqueue.broker.write.publish_once import publish_once
from goqueue.edge.http.groups.offsets import offsets_in
from goqueue.edge.http.messages.publishing import message_of
from goqueue.edge.http.parts.decoding import decode, decode_if_any
from goqueue.edge.http.parts.openapi import errors, takes
from goqueue.edge.http.parts.paging import ALL, After, Limit, names_in_page, shown_in_slices
from goqueue.edge.http.parts.times import ZERO_TIME, format_average, format_time
from goqueue.edge.http.transactions.bodies import (
    AddOffsetsBody,
    AddPartitionBody,
    BeatReply,
    BeginReply,
    InitProducerBody,
    JournalStatsBody,
    ListedStates,
    ProducerBeat,
    ProducerReply,
    ProducerStatsBody,
    PublishedOnceReply,
    PublishOnceBody,
    StateWord,
    StatusReply,
    TouchedPartition,
    TransactionBody,
    TransactionList,
    TransactionRow,
    TransactionStatsReply,
)
from goqueue.model.errors import Invalid, ProducerNotFound
from goqueue.model.groups import NO_GENERATION, Membership, OffsetRow, TopicCommit
from goqueue.model.ids import ProducerId, TopicName, TopicPartition
from goqueue.model.transaction_commands import (
    AbortTransaction,
    AddGroupToTransaction,
    AddPartitionsToTransaction,
    AddReceiptsToTransaction,
    BeginTransaction,
    CountTransactions,
    DemandProducer,
    EndTransaction,
    HearProducer,
    InitProducer,
    ListTransactions,
    PendOffsets,
    PublishOnce,
    TakeProducerId,
)
from goqueue.model.transactions import Marker, ProducerEpoch, TransactionState, TransactionView

_init_decoder = msgspec.json.Decoder(InitProducerBody)
_beat_decoder = msgspec.json.Decoder(ProducerBeat)
_transaction_decoder = msgspec.json.Decoder(TransactionBody)
_publish_decoder = msgspec.json.Decoder(PublishOnceBody)
_partition_decoder = msgspec.json.Decoder(AddPartitionBody)
_offsets_decoder = msgspec.json.Decoder(AddOffsetsBody)
_TAGS = ["transactions"]
_ERRORS = errors(400, 403, 404, 409, 413, 429, 503, 507)
_WORD_OF_STATE: dict[TransactionState, StateWord] = {
    TransactionState.EMPTY: "empty",
    TransactionState.ONGOING: "ongoing",
    TransactionState.PREPARE_COMMIT: "preparing_commit",
    TransactionState.PREPARE_ABORT: "preparing_abort",
    TransactionState.COMPLETE_COMMIT: "completed_commit",
    TransactionState.COMPLETE_ABORT: "completed_abort",
    TransactionState.DEAD: "dead",
}
_UNFINISHED = frozenset(
    {TransactionState.ONGOING, TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT}
)
_NUMBER_OF_STATE = {state: str(number) for number, state in enumerate(TransactionState)}


@post(
    "/producers/init",
    status_code=200,
    operation_id="initProducer",
    summary="A producer id; for a transactional id its next epoch, which fences all before it",
    tags=_TAGS,
    operation_class=takes(InitProducerBody, is_required=False),
    responses=_ERRORS,
)
async def init_producer_route(broker: NamedDependency[Broker], body: RawBody) -> ProducerReply:
    given = decode_if_any(_init_decoder, body)
    if not given.transactional_id:
        return ProducerReply(await here(broker, init_producer, TakeProducerId()), 0)
    command = InitProducer(
        transactional_id=given.transactional_id,
        timeout_ms=given.transaction_timeout_ms or broker.config.transactions.timeout_ms,
    )
    producer_id, epoch = await at_home(broker, init_transactional, command)
    return ProducerReply(producer_id, epoch, given.transactional_id)


@post(
    "/producers/{producer:int}/heartbeat",
    status_code=200,
    operation_id="beatProducer",
    summary="Whether a producer may still write: a fenced one is told so",
    tags=_TAGS,
    operation_class=takes(ProducerBeat),
    responses=_ERRORS,
)
async def producer_heartbeat_route(
    broker: NamedDependency[Broker],
    producer: Annotated[int, PathParameter(description="The producer's id.")],
    body: RawBody,
) -> BeatReply:
    given = decode(_beat_decoder, body)
    beating = ProducerEpoch(ProducerId(producer), given.epoch)
    try:
        await at_home(
            broker,
            hear_producer,
            HearProducer(producer=beating, transactional_id=given.transactional_id or "", is_heartbeat=True),
        )
    except ProducerNotFound:
        # One without transactions: that its id was given out is all there is to know.
        if given.transactional_id is not None or not 0 < producer < broker.metadata.producer_ids_end:
            raise
    return BeatReply()


@get(
    "/transactions",
    operation_id="listTransactions",
    summary="Transactions that are open: who holds them, since when, what they have touched",
    tags=_TAGS,
    responses=errors(400, 503),
)
async def list_transactions_route(
    broker: NamedDependency[Broker],
    listed: Annotated[
        ListedStates,
        QueryParameter(
            name="state", description="all: every transactional id and how its last one ended, too."
        ),
    ] = "open",
    limit: Limit = ALL,
    after: After = None,
) -> TransactionList:
    now_ms = broker.clock.wall_ms()
    views = {
        view.transactional_id: view
        for view in await at_home(broker, list_transactions, ListTransactions())
        if listed == "all" or view.state in _UNFINISHED
    }
    page = names_in_page(list(views), limit, after)
    rows = await shown_in_slices(broker, page.rows, lambda name: _row(views[name], now_ms))
    return TransactionList(rows, len(rows), page.next)


@get(
    "/transactions/stats",
    operation_id="transactionStats",
    summary="How many transactions there are and how they ended, and which are open the longest",
    tags=_TAGS,
    responses=errors(503),
)
async def transaction_stats_route(broker: NamedDependency[Broker]) -> TransactionStatsReply[str]:
    stats = await at_home(broker, transaction_stats, CountTransactions())
    now_ms = broker.clock.wall_ms()
    open_count = stats.by_state.get(TransactionState.ONGOING, 0)
    ids = sum(stats.by_state.values())
    return TransactionStatsReply(
        active=open_count,
        by_state={_NUMBER_OF_STATE[state]: count for state, count in stats.by_state.items()},
        producers=ProducerStatsBody(
            active=ids,
            sequence_states=stats.sequence_states,
            next_producer_id=stats.next_producer_id,
            by_state={state.value: count for state, count in stats.by_state.items()},
        ),
        journal=JournalStatsBody(
            size_bytes=stats.journal_bytes,
            records=stats.journal_events,
            last_sync_time=format_time(now_ms) if stats.is_synced else None,
            has_snapshot=stats.journal_bytes > 0,
            is_enabled=True,
        ),
        active_transactions=open_count,
        committed_total=stats.committed,
        aborted_total=stats.aborted,
        avg_duration=format_average(stats.average_ms),
        longest_open=[_row(view, now_ms) for view in stats.longest_open[:100]],
    )


@post(
    "/transactions/begin",
    status_code=200,
    operation_id="beginTransaction",
    summary="Open a transaction",
    tags=_TAGS,
    operation_class=takes(TransactionBody),
    responses=_ERRORS,
)
async def begin_route(broker: NamedDependency[Broker], body: RawBody) -> BeginReply:
    transactional_id, producer = await _speaker(broker, decode(_transaction_decoder, body))
    return BeginReply(
        await at_home(
            broker, begin_transaction, BeginTransaction(transactional_id=transactional_id, producer=producer)
        )
    )


@post(
    "/transactions/publish",
    status_code=200,
    operation_id="publishOnce",
    summary="Publish a message once, within the producer's transaction while one is open",
    tags=_TAGS,
    operation_class=takes(PublishOnceBody),
    responses=_ERRORS,
)
async def publish_once_route(broker: NamedDependency[Broker], body: RawBody) -> PublishedOnceReply:
    given = decode(_publish_decoder, body)
    if given.partition is not None and given.partition < 0:
        given.partition = None
    sequence = given.sequence
    producer = ProducerEpoch(ProducerId(given.producer_id), given.epoch)
    command = PublishOnce(
        topic=TopicName(given.topic),
        message=message_of(given, False, broker.clock.wall_ms()),
        producer=producer,
        sequence=None if sequence == -1 else sequence,
        names_time=given.delay is not None or given.deliver_at is not None,
    )
    await here(broker, demand_producer, DemandProducer(topic=command.topic, producer=producer))
    published = await at_home(broker, publish_once, command)
    due_ms = published.due_ms
    return PublishedOnceReply(
        partition=published.partition,
        offset=published.offset,
        duplicate=published.is_duplicate,
        quarantined=published.is_quarantined,
        delayed=due_ms is not None,
        deliver_at=None if due_ms is None else format_time(due_ms),
    )


@post(
    "/transactions/add-partition",
    status_code=200,
    operation_id="addPartition",
    summary="Make a partition part of the transaction; publishing to it does so too",
    tags=_TAGS,
    operation_class=takes(AddPartitionBody),
    responses=_ERRORS,
)
async def add_partition_route(broker: NamedDependency[Broker], body: RawBody) -> StatusReply:
    given = decode(_partition_decoder, body)
    transactional_id, producer = await _speaker(broker, given)
    target = TopicPartition(TopicName(given.topic), given.partition)
    await at_home(
        broker,
        add_partitions,
        AddPartitionsToTransaction(transactional_id=transactional_id, producer=producer, targets=[target]),
    )
    return StatusReply("added")


@post(
    "/transactions/add-offsets",
    status_code=200,
    operation_id="addOffsets",
    summary="What was consumed counts with the commit: offsets of a stream group, receipts of a queue group",
    tags=_TAGS,
    operation_class=takes(AddOffsetsBody),
    responses=_ERRORS,
)
async def add_offsets_route(broker: NamedDependency[Broker], body: RawBody) -> StatusReply:
    given = decode(_offsets_decoder, body)
    transactional_id, producer = await _speaker(broker, given)
    if given.offsets is None and given.receipt_handles is None:
        raise Invalid("nothing to add: give offsets of a group, or receipt_handles")
    if given.receipt_handles:
        await at_home(
            broker,
            add_receipts,
            AddReceiptsToTransaction(
                transactional_id=transactional_id, producer=producer, receipts=given.receipt_handles
            ),
        )
    if given.offsets is not None:
        if not given.group:
            raise Invalid("offsets belong to a group: say which")
        await at_home(
            broker,
            add_group,
            AddGroupToTransaction(transactional_id=transactional_id, producer=producer, group=given.group),
        )
        generation = NO_GENERATION if given.generation is None else given.generation
        who = Membership(given.group, given.member_id or "", generation)
        commits = _commits_of(offsets_in(given.offsets))
        refusals = await at_home(
            broker,
            pend_offsets,
            PendOffsets(transactional_id=transactional_id, producer=producer, who=who, commits=commits),
        )
        for error in refusals.values():
            raise error
    return StatusReply("added")


@post(
    "/transactions/commit",
    status_code=200,
    operation_id="commitTransaction",
    summary="Make all that the transaction has done count, at once",
    tags=_TAGS,
    operation_class=takes(TransactionBody),
    responses=_ERRORS,
)
async def commit_transaction_route(broker: NamedDependency[Broker], body: RawBody) -> StatusReply:
    transactional_id, producer = await _speaker(broker, decode(_transaction_decoder, body))
    await at_home(
        broker,
        end_transaction,
        EndTransaction(
            transactional_id=transactional_id, producer=producer, marker=Marker.COMMIT, until_complete=True
        ),
    )
    return StatusReply("committed")


@post(
    "/transactions/abort",
    status_code=200,
    operation_id="abortTransaction",
    summary="Undo all that the transaction has done",
    tags=_TAGS,
    operation_class=takes(TransactionBody),
    responses=_ERRORS,
)
async def abort_transaction_route(broker: NamedDependency[Broker], body: RawBody) -> StatusReply:
    transactional_id, producer = await _speaker(broker, decode(_transaction_decoder, body))
    await at_home(
        broker,
        end_transaction,
        EndTransaction(
            transactional_id=transactional_id, producer=producer, marker=Marker.ABORT, until_complete=True
        ),
    )
    return StatusReply("aborted")


@post(
    "/transactions/{transaction:str}/abort",
    status_code=200,
    operation_id="abortOpenTransaction",
    summary="For operators: abort an open transaction and fence its producer",
    tags=_TAGS,
    responses=errors(404, 409, 503, 507),
)
async def abort_open_route(
    broker: NamedDependency[Broker],
    transaction: Annotated[str, PathParameter(description="Its transaction id, or its transactional id.")],
) -> TransactionRow[str]:
    return _row(
        await at_home(broker, abort_transaction, AbortTransaction(name=transaction)), broker.clock.wall_ms()
    )


ROUTES = [
    init_producer_route,
    producer_heartbeat_route,
    list_transactions_route,
    transaction_stats_route,
    begin_route,
    publish_once_route,
    add_partition_route,
    add_offsets_route,
    commit_transaction_route,
    abort_transaction_route,
    abort_open_route,
]


async def _speaker(broker: Broker, given: TransactionBody) -> tuple[str, ProducerEpoch]:
    """The transactional id that a producer speaks for, if it may."""
    producer = ProducerEpoch(ProducerId(given.producer_id), given.epoch)
    command = HearProducer(producer=producer, transactional_id=given.transactional_id or "")
    return await at_home(broker, hear_producer, command), producer


def _commits_of(offsets: dict[TopicPartition, int]) -> list[TopicCommit]:
    rows: dict[TopicName, list[OffsetRow]] = {}
    for (topic, partition), offset in offsets.items():
        rows.setdefault(topic, []).append((partition, offset, -1, ""))
    return [TopicCommit(*entry) for entry in rows.items()]


def _row(view: TransactionView, now_ms: int) -> TransactionRow[str]:
    started = ZERO_TIME if view.started_ms < 0 else format_time(view.started_ms)
    is_open = view.state is TransactionState.ONGOING
    return TransactionRow(
        transaction_id=view.transaction_id,
        transactional_id=view.transactional_id,
        producer_id=view.producer.producer_id,
        epoch=view.producer.epoch,
        state=_WORD_OF_STATE[view.state],
        start_time=started,
        started_at=started,
        timeout_ms=view.timeout_ms,
        open_ms=now_ms - view.started_ms if is_open else 0,
        partitions=[TouchedPartition(*source) for source in view.partitions],
        groups=list(view.groups),
        receipts=view.receipt_count,
    )
