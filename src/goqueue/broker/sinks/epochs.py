"""How a prepared epoch gets into the log, once, whatever crashes.

An epoch is one transaction of the sink's own producer. What it holds is prepared in the journal, and nothing
can call that back; its batches are copied from the stages; then one decision and its markers show all of it
to readers of committed messages. A restart, or a disk that recovers, goes through the same steps again:
batches that are there already are told by their sequence numbers.
"""

import asyncio
import logging
from collections.abc import Iterable

from goqueue.broker.appending import OwnWrites
from goqueue.broker.broker import Broker
from goqueue.broker.sinks.stages import Stage
from goqueue.broker.storage.partition import Partition
from goqueue.broker.transactions.deciding import end
from goqueue.broker.transactions.ends import fence, finish
from goqueue.broker.write.incoming import Incoming
from goqueue.broker.write.take_in import take_in
from goqueue.core.transactions.sinks import EpochPrepared, SequenceRun, Sink
from goqueue.core.transactions.transactions import Transaction
from goqueue.log.partition_log import storage_error
from goqueue.model.errors import (
    Corrupt,
    DuplicateSequence,
    InvalidRecord,
    OutOfSequence,
    ProducerFenced,
    ShuttingDown,
    StageNotFound,
    StorageFailed,
)
from goqueue.model.ids import ProducerId, TopicPartition
from goqueue.model.messages import Acks
from goqueue.model.names import transactional_id_of_sink
from goqueue.model.settings import MiB
from goqueue.model.transactions import Marker, ProducerEpoch, TransactionalPartition, TransactionState
from goqueue.records.batch import has_wishes
from goqueue.records.entries import Entry
from goqueue.records.layout import SEQUENCE_MASK, read_header, stamp_producer

log = logging.getLogger(__name__)

YIELD_BYTES = 4 * MiB
"""So much is appended at a time before others get their turn on the loop."""
_PRODUCER_EPOCH = 0


async def finish_epoch(broker: Broker, name: str) -> None:
    """Bring the prepared epoch of a sink, if there is one, into the log. Hold the sink's lock."""
    sink = broker.sinks.machine.sink(name)
    prepared = sink.prepared
    if prepared is None:
        return
    journal = broker.transactions.of_sinks
    transactional_id = transactional_id_of_sink(name)
    async with broker.transactions.lock(transactional_id):
        known = journal.transactions.get(transactional_id)
        if known is None:
            # Of a version that used none: what it has copied is seen already, the rest is part of this one.
            known = opened(broker, sink.producer_id, prepared)
            await journal.submit(known)
        if known.state is TransactionState.ONGOING:
            await _copy(broker, sink, prepared)
            await end(broker, transactional_id, known.producer, Marker.COMMIT)
        await finish(broker, transactional_id)
        committed = broker.sinks.machine.commit(name, now_ms=broker.clock.wall_ms())
        # Nobody waits for it: a start that does not find it finds the decision, and needs no stages any more.
        journal.submit(committed, journal.transactions.forget(transactional_id))
    await drop_decided(broker, name)


def opened(broker: Broker, producer_id: ProducerId, prepared: EpochPrepared) -> Transaction:
    """The transaction of an epoch, before anything is written. It answers for what a crash leaves of it."""
    transactional_id = transactional_id_of_sink(prepared.sink)
    return broker.transactions.of_sinks.transactions.open_own(
        transactional_id,
        ProducerEpoch(producer_id, _PRODUCER_EPOCH),
        [TransactionalPartition(run.topic, run.topic_id, run.partition) for run in prepared.runs],
        transaction_id=f"{transactional_id}/{prepared.epoch}",
        now_ms=broker.clock.wall_ms(),
    )


async def _copy(broker: Broker, sink: Sink, prepared: EpochPrepared) -> None:
    """Append all batches of an epoch, open as yet; returns when the disk has them."""
    name = sink.name
    try:
        stages = broker.sinks.stages.named(name, prepared.epoch, prepared.stages)
    except StageNotFound as error:
        raise Corrupt(f"epoch {prepared.epoch} of sink {name} cannot be finished: {error}") from error
    partitions = _partitions_of(broker, prepared)
    written = OwnWrites(partitions.values())
    next_sequences = {TopicPartition(run.topic, run.partition): run.base_sequence for run in prepared.runs}
    for stage in stages:
        if broker.is_closed:
            raise ShuttingDown  # the next start goes on with it
        batches = await _read_stage(broker, stage, sink.producer_id, next_sequences)
        await _take_in(broker, partitions, batches)
    await written.durable()


async def drop_decided(broker: Broker, name: str) -> None:
    """Remove the stages of epochs that are committed, those of failed attempts among them."""
    last_epoch = broker.sinks.machine.sink(name).last_epoch
    await drop(broker, [s for s in broker.sinks.stages.of_sink(name) if s.name.epoch <= last_epoch])


async def drop(broker: Broker, stages: list[Stage]) -> None:
    """Remove stages. What the disk does not let go of now, the next start removes."""
    if not stages:
        return
    broker.sinks.stages.forget(stages)
    try:
        await broker.threads.run(broker.sinks.stages.remove, [stage.name for stage in stages])
    except OSError as error:
        log.warning("stages_not_removed count=%d reason=%s", len(stages), error)


async def forget(broker: Broker, name: str) -> None:
    """A sink and its stages are gone. Hold the sink's lock.

    Of an epoch that can never be finished nobody has seen anything, and nobody will. It is aborted when the
    sink is gone: in a sink that is still there it would look as if it had ended well.
    """
    await broker.transactions.of_sinks.submit(broker.sinks.machine.forget(name))
    await abandon(broker, name)
    broker.sinks.stages.forget(broker.sinks.stages.of_sink(name))
    try:
        await broker.threads.run(broker.sinks.stages.remove_sink, name)
    except OSError as error:
        log.warning("stages_not_removed sink=%s reason=%s", name, error)


async def abandon(broker: Broker, name: str) -> None:
    """Abort what is left of a transaction for which no epoch of its sink answers. Hold the sink's lock."""
    journal = broker.transactions.of_sinks
    transactional_id = transactional_id_of_sink(name)
    async with broker.transactions.lock(transactional_id):
        if journal.transactions.get(transactional_id) is not None:
            await fence(broker, transactional_id)
            await journal.submit(journal.transactions.forget(transactional_id))


def _partitions_of(broker: Broker, prepared: EpochPrepared) -> dict[TopicPartition, Partition]:
    """Where an epoch goes, without the topics that are gone.

    Refuses when one of them is damaged: what is copied to the others would hold their readers back meanwhile.
    """
    partitions = {}
    for run in prepared.runs:
        target = TopicPartition(run.topic, run.partition)
        if _is_there(broker, run):
            partitions[target] = broker.partition(target)
            partitions[target].admit_write()
        else:
            log.warning(
                "epoch_skips_deleted_topic sink=%s epoch=%d partition=%s messages=%d",
                prepared.sink,
                prepared.epoch,
                target,
                run.message_count,
            )
    return partitions


def _is_there(broker: Broker, run: SequenceRun) -> bool:
    topic = broker.metadata.topics.get(run.topic)
    return topic is not None and topic.topic_id == run.topic_id and run.topic in broker.topics


async def _read_stage(
    broker: Broker, stage: Stage, producer_id: ProducerId, next_sequences: dict[TopicPartition, int]
) -> list[tuple[TopicPartition, Incoming]]:
    opening = {target: _opens_compressed(broker, target) for target in next_sequences}

    def read() -> list[tuple[TopicPartition, Incoming]]:
        return _stamp(broker.sinks.stages.read(stage), producer_id, next_sequences, opening)

    try:
        return await broker.threads.run(read)
    except OSError as error:
        raise storage_error(error, f"read of {stage.name.path}") from error


def _opens_compressed(broker: Broker, target: TopicPartition) -> bool:
    topic = broker.metadata.topics.get(target.topic)
    return topic is not None and topic.settings.inspect_compressed


def _stamp(
    entries: Iterable[Entry],
    producer_id: ProducerId,
    next_sequences: dict[TopicPartition, int],
    opening: dict[TopicPartition, bool],
) -> list[tuple[TopicPartition, Incoming]]:
    """Make batches those of the sink's transaction, numbered on from `next_sequences`.

    `opening`: where compressed batches are opened for what their messages wish for.
    """
    batches = []
    for target, lane, body in entries:
        sequence = next_sequences[target]
        stamp_producer(
            body,
            producer_id=producer_id,
            producer_epoch=_PRODUCER_EPOCH,
            base_sequence=sequence,
            is_transactional=True,
        )
        header = read_header(body)
        next_sequences[target] = (sequence + header.record_count) & SEQUENCE_MASK
        wishes = has_wishes(body, [header], inspect_compressed=opening[target])
        batches.append((target, Incoming([header], [body], lane, wishes, opening[target], is_promised=True)))
    return batches


async def _take_in(
    broker: Broker,
    partitions: dict[TopicPartition, Partition],
    batches: Iterable[tuple[TopicPartition, Incoming]],
) -> None:
    size = 0
    for target, incoming in batches:
        partition = partitions.get(target)
        if partition is None:
            continue
        if size >= YIELD_BYTES:
            await asyncio.sleep(0)
            size = 0
        try:
            take_in(broker, partition, incoming, Acks.LEADER)
        except InvalidRecord:
            # A wish in a compressed batch, which the topic did not open when this was staged.
            take_in(broker, partition, incoming._replace(has_wishes=False), Acks.LEADER)
        except DuplicateSequence:
            pass  # it is there, so long ago that nobody knows where
        except ProducerFenced as error:
            # Batches were aborted for which no epoch answered: a repaired journal had lost what was prepared.
            raise Corrupt(
                f"{partition.source} has heard of an epoch that is lost: forget the sink"
            ) from error
        except OutOfSequence as error:
            # The partition was opened anew meanwhile, without the batches before this one.
            raise StorageFailed(f"{partition.source} has lost part of an epoch: commit it again") from error
        size += len(incoming.bodies[0])
