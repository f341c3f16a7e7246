"""How an epoch gets into the logs of several nodes: as one transaction of the sink.

Its stages are copied to the leaders as batches of the transaction, which nobody sees. One event decides the
transaction and notes the epoch; markers show it then, as with any transaction. Before that event nothing has
happened: whoever coordinates the sink next aborts what was copied, and a commit that comes again begins
anew, under the next epoch of the sink's producer, so that nothing of the try before gets in.
"""

import asyncio
from collections.abc import Sequence

from goqueue.broker.broker import Broker
from goqueue.broker.sinks.copies import Checked, all_here, drop_everywhere
from goqueue.broker.sinks.homes import journal_of
from goqueue.broker.sinks.promised import append_staged, stamp
from goqueue.broker.sinks.stages import Stage, checksum_of
from goqueue.broker.transactions.ends import undo_in_time
from goqueue.broker.transactions.journal import TransactionJournal
from goqueue.broker.transactions.leaders import calls, journal_record
from goqueue.broker.transactions.verbs import add_partitions, commit_with, take_over_id
from goqueue.core.transactions.sinks import EpochCommitted
from goqueue.log.partition_log import storage_error
from goqueue.model.errors import (
    Busy,
    EpochInterrupted,
    Fenced,
    GoQueueError,
    NoLeader,
    SinkFenced,
    Unavailable,
)
from goqueue.model.ids import TopicPartition
from goqueue.model.names import transactional_id_of_sink
from goqueue.model.settings import MiB
from goqueue.model.sinks import AppendStaged, CommitEpoch, DropStages, EpochEnded
from goqueue.model.transaction_commands import AddPartitionsToTransaction, InitProducer
from goqueue.model.transactions import ProducerEpoch
from goqueue.records.entries import pieces_of, read_entries

APPEND_MS = 30_000
"""So long leaders that do not answer are asked again before an epoch is given up, and begun anew later."""
PIECE_BYTES = 8 * MiB
"""So much is sent at a time, about what a task of Spark stages: a call is written in one turn of the loop."""
_PAUSE_S = 0.1


async def commit_transacted(broker: Broker, command: CommitEpoch) -> EpochEnded:
    """Bring an epoch into the log, once. Hold the sink's lock."""
    name, epoch = command.sink, command.epoch
    journal = journal_of(broker, name)
    await journal.submit()  # what was noted a moment ago may yet be lost
    if epoch <= journal.sinks.held_by(name, command.generation).last_epoch:
        await drop_everywhere(broker, DropStages(sink=name, epoch=epoch, stage_ids=command.stage_ids))
        return EpochEnded(is_duplicate=True, messages=0)
    stages = await all_here(broker, journal, command)
    if stages:
        await _commit(broker, journal, command, stages)
    else:
        await journal.submit(_noted(broker, journal, command))
    await drop_everywhere(broker, DropStages(sink=name, until_epoch=epoch))
    return EpochEnded(is_duplicate=False, messages=sum(one.stage.messages for one in stages))


async def _commit(
    broker: Broker, journal: TransactionJournal, command: CommitEpoch, stages: Sequence[Checked]
) -> None:
    transactional_id = transactional_id_of_sink(command.sink)
    timeout_ms = broker.config.transactions.timeout_ms_max
    targets = list(dict.fromkeys(target for one in stages for target in one.stage.counts))
    for target in targets:
        broker.partition(target)
    producer = None
    try:
        _refuse_unled(broker, targets)
        init = InitProducer(transactional_id=transactional_id, timeout_ms=timeout_ms)
        producer = await take_over_id(broker, init)
        await add_partitions(
            broker,
            AddPartitionsToTransaction(transactional_id=transactional_id, producer=producer, targets=targets),
        )
        await _copy(broker, journal, stages, transactional_id, producer)
        await commit_with(
            broker, transactional_id, producer, lambda current: _noted(broker, current, command)
        )
    except GoQueueError as error:
        if producer is not None:
            undo_in_time(broker, transactional_id, producer)
        journal.admit()  # unless it is this node that was replaced
        if isinstance(error, SinkFenced) or not isinstance(error, Busy | Fenced | Unavailable):
            raise
        raise EpochInterrupted(command.sink, command.epoch, str(error)) from error


def _refuse_unled(broker: Broker, targets: Sequence[TopicPartition]) -> None:
    """A partition that nobody leads would hold up readers of all others until it is led: nothing is begun."""
    for target in targets:
        if journal_record(broker, target).leader is None:
            raise NoLeader(*target)


def _noted(broker: Broker, journal: TransactionJournal, command: CommitEpoch) -> EpochCommitted:
    """What is written with the decision. The journal may have been another node's since this began."""
    sink = journal.sinks.held_by(command.sink, command.generation)
    if command.epoch <= sink.last_epoch:
        raise EpochInterrupted(command.sink, command.epoch, "another node has committed it meanwhile")
    return journal.sinks.note_epoch(command.sink, command.epoch, now_ms=broker.clock.wall_ms())


async def _copy(
    broker: Broker,
    journal: TransactionJournal,
    stages: Sequence[Checked],
    transactional_id: str,
    producer: ProducerEpoch,
) -> None:
    """Have leaders take all that was staged, a stage at a time; returns when it is committed."""
    next_sequences: dict[TopicPartition, int] = {}

    def read(stage: Stage, checksum: int) -> list[memoryview]:
        entries = broker.sinks.stages.read(stage)
        if checksum_of(entries) != checksum:
            raise EpochInterrupted(stage.name.sink, stage.name.epoch, f"{stage.name.path} has changed")
        stamp(read_entries(entries), producer, next_sequences, is_transactional=True)
        return pieces_of(entries, PIECE_BYTES)

    for stage, checksum in stages:
        try:
            pieces = await broker.threads.run(read, stage, checksum)
        except OSError as error:
            raise storage_error(error, f"read of {stage.name.path}") from error
        for piece in pieces:
            await _append(broker, journal, AppendStaged(transactional_id=transactional_id, entries=piece))


async def _append(broker: Broker, journal: TransactionJournal, command: AppendStaged) -> None:
    """Ask as often as it takes: what a leader has taken already it knows by its numbers."""
    until_ns = broker.clock.monotonic_ns() + APPEND_MS * 1_000_000
    while True:
        journal.admit()
        try:
            await calls(broker).run(append_staged, command)
            return
        except Unavailable:
            if broker.clock.monotonic_ns() >= until_ns:
                raise
        await asyncio.sleep(_PAUSE_S)
