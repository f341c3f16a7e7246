"""How a prepared epoch gets into the log, once, whatever crashes; and the upkeep of sinks.

An epoch is prepared in the journal, its batches are appended as those of the sink's own producer, and
when the disk has them all it is committed in the journal. A restart, or a disk that recovers, goes
through the same steps again: batches that are there already are told by their sequence numbers.
"""

import asyncio
import logging
from collections.abc import Iterable

from goqueue.broker.appending import OwnWrites
from goqueue.broker.broker import Broker
from goqueue.broker.sinks.stages import Stage, StageName
from goqueue.broker.storage.partition import Partition
from goqueue.broker.write.incoming import Incoming
from goqueue.broker.write.take_in import take_in
from goqueue.core.transactions.sinks import EpochPrepared, SequenceRun
from goqueue.log.partition_log import storage_error
from goqueue.model.errors import (
    Corrupt,
    DuplicateSequence,
    GoQueueError,
    InvalidRecord,
    OutOfSequence,
    ShuttingDown,
    StageNotFound,
    StorageFailed,
)
from goqueue.model.ids import ProducerId, TopicPartition
from goqueue.model.messages import Acks
from goqueue.model.settings import MiB
from goqueue.records.batch import has_wishes
from goqueue.records.entries import Entry
from goqueue.records.layout import SEQUENCE_MASK, read_header, stamp_producer

log = logging.getLogger(__name__)

YIELD_BYTES = 4 * MiB
"""So much is appended at a time before others get their turn on the loop."""
_PRODUCER_EPOCH = 0


async def recover_sinks(broker: Broker) -> None:
    """After a start: finish what was prepared, drop what can never be committed."""
    damaged = await broker.threads.run(broker.sinks.stages.open)
    for name in damaged:
        log.error("stage_damaged path=%s", name.path)
    for sink in list(broker.sinks.machine.sinks):
        is_finished = await _try_to_finish(broker, sink)
        if not is_finished and any(partition.is_failed for partition in broker.all_partitions()):
            # Before the broker is open nobody opens a partition anew: better to begin the start again.
            raise StorageFailed(f"the disk failed while an epoch of sink {sink} was being finished")
        await drop_decided(broker, sink)
    await broker.threads.run(broker.sinks.stages.remove, [n for n in damaged if not _is_prepared(broker, n)])
    for sink in await broker.threads.run(broker.sinks.stages.sinks_on_disk):
        if sink not in broker.sinks.machine.sinks:
            broker.sinks.stages.forget(broker.sinks.stages.of_sink(sink))
            await broker.threads.run(broker.sinks.stages.remove_sink, sink)


async def finish_epoch(broker: Broker, name: str) -> None:
    """Bring the prepared epoch of a sink, if there is one, into the log. Hold the sink's lock."""
    sink = broker.sinks.machine.sink(name)
    prepared = sink.prepared
    if prepared is None:
        return
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
    committed = broker.sinks.machine.commit(name, now_ms=broker.clock.wall_ms())
    await broker.transactions.of_sinks.submit(committed)
    await drop_decided(broker, name)


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


async def keep_up_sinks(broker: Broker) -> None:
    """Finish what a failing disk has held up, drop stages and sinks that nobody comes back for."""
    if broker.is_one_of_several:
        return  # which keeps none
    now_ms = broker.clock.wall_ms()
    for name in [sink.name for sink in broker.sinks.machine.sinks.values() if sink.prepared is not None]:
        await broker.carry_out(_try_to_finish(broker, name), broker.sinks.lock(name))
    for name in broker.sinks.stages.created_before(now_ms - broker.config.stage_expiry_ms):
        await broker.carry_out(_expire_stages(broker, name, now_ms), broker.sinks.lock(name))
    for name in broker.sinks.machine.unused_since(now_ms - broker.config.sink_expiry_ms):
        await broker.carry_out(_forget_unused(broker, name, now_ms), broker.sinks.lock(name))
    await broker.transactions.of_sinks.shorten()


async def forget(broker: Broker, name: str) -> None:
    """A sink and its stages are gone. Hold the sink's lock."""
    await broker.transactions.of_sinks.submit(broker.sinks.machine.forget(name))
    broker.sinks.stages.forget(broker.sinks.stages.of_sink(name))
    try:
        await broker.threads.run(broker.sinks.stages.remove_sink, name)
    except OSError as error:
        log.warning("stages_not_removed sink=%s reason=%s", name, error)


async def _expire_stages(broker: Broker, name: str, now_ms: int) -> None:
    sink = broker.sinks.machine.sinks.get(name)
    old = broker.sinks.stages.created_before(now_ms - broker.config.stage_expiry_ms).get(name, [])
    # A decided epoch is either on its way into the log, or its stages are dropped when it is there.
    expired = [stage for stage in old if sink is None or not sink.is_decided(stage.name.epoch)]
    if expired:
        log.info("stages_expired sink=%s count=%d", name, len(expired))
        await drop(broker, expired)


def _is_prepared(broker: Broker, name: StageName) -> bool:
    sink = broker.sinks.machine.sinks.get(name.sink)
    return sink is not None and sink.prepared is not None and sink.prepared.epoch == name.epoch


async def _forget_unused(broker: Broker, name: str, now_ms: int) -> None:
    if name in broker.sinks.machine.unused_since(now_ms - broker.config.sink_expiry_ms):
        log.info("sink_expired sink=%s", name)
        await forget(broker, name)


async def _try_to_finish(broker: Broker, name: str) -> bool:
    try:
        await finish_epoch(broker, name)
    except GoQueueError as error:
        log.error("epoch_unfinished sink=%s reason=%s", name, error)
        return False
    return True


def _partitions_of(broker: Broker, prepared: EpochPrepared) -> dict[TopicPartition, Partition]:
    """Where an epoch goes, without the topics that are gone."""
    partitions = {}
    for run in prepared.runs:
        target = TopicPartition(run.topic, run.partition)
        if _is_there(broker, run):
            partitions[target] = broker.partition(target)
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
    """Make batches those of the sink's producer, numbered on from `next_sequences`.

    `opening`: where compressed batches are opened for what their messages wish for.
    """
    batches = []
    for target, lane, body in entries:
        sequence = next_sequences[target]
        stamp_producer(body, producer_id=producer_id, producer_epoch=_PRODUCER_EPOCH, base_sequence=sequence)
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
        except OutOfSequence as error:
            # The partition was opened anew meanwhile, without the batches before this one.
            raise StorageFailed(f"{partition.source} has lost part of an epoch: commit it again") from error
        size += len(incoming.bodies[0])
