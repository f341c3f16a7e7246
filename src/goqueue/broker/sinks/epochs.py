"""How a prepared epoch gets into the log of one node, once, whatever crashes; and the upkeep of sinks.

An epoch is prepared in the journal, its batches are appended as those of the sink's own producer, and
when the disk has them all it is committed in the journal. A restart, or a disk that recovers, goes
through the same steps again: batches that are there already are told by their sequence numbers. Several nodes
do it by a transaction (`transacted`).
"""

import asyncio
import logging
import sys
from collections.abc import Iterable

from goqueue.broker.appending import OwnWrites
from goqueue.broker.broker import Broker
from goqueue.broker.sinks.copies import drop, drop_everywhere
from goqueue.broker.sinks.homes import coordinated, journal_of
from goqueue.broker.sinks.promised import YIELD_BYTES, promised, stamp, take_in_promised
from goqueue.broker.sinks.stages import Stage, StageName
from goqueue.broker.storage.partition import Partition
from goqueue.broker.write.incoming import Incoming
from goqueue.core.transactions.journalled import Event
from goqueue.core.transactions.sinks import EpochPrepared, SequenceRun, Sinks
from goqueue.log.partition_log import storage_error
from goqueue.model.errors import (
    Corrupt,
    GoQueueError,
    OutOfSequence,
    ShuttingDown,
    StageNotFound,
    StorageFailed,
)
from goqueue.model.ids import ProducerId, TopicPartition
from goqueue.model.messages import Acks
from goqueue.model.names import transactional_id_of_sink
from goqueue.model.settings import TopicSettings
from goqueue.model.sinks import DropStages
from goqueue.model.transactions import ProducerEpoch
from goqueue.records.entries import read_entries

log = logging.getLogger(__name__)

_PRODUCER_EPOCH = 0


async def recover_sinks(broker: Broker) -> None:
    """After a start: finish what was prepared, drop what can never be committed."""
    damaged = await broker.threads.run(broker.sinks.stages.open)
    for name in damaged:
        log.error("stage_damaged path=%s", name.path)
    if broker.is_one_of_several:
        await broker.threads.run(broker.sinks.stages.remove, damaged)
        return  # nothing is prepared, and who coordinates a sink is not known yet
    for sink in list(_machine(broker).sinks):
        is_finished = await _try_to_finish(broker, sink)
        if not is_finished and any(partition.is_failed for partition in broker.all_partitions()):
            # Before the broker is open nobody opens a partition anew: better to begin the start again.
            raise StorageFailed(f"the disk failed while an epoch of sink {sink} was being finished")
        await drop_decided(broker, sink)
    await broker.threads.run(broker.sinks.stages.remove, [n for n in damaged if not _is_prepared(broker, n)])
    for sink in await broker.threads.run(broker.sinks.stages.sinks_on_disk):
        if sink not in _machine(broker).sinks:
            broker.sinks.stages.forget(broker.sinks.stages.of_sink(sink))
            await broker.threads.run(broker.sinks.stages.remove_sink, sink)


async def finish_epoch(broker: Broker, name: str) -> None:
    """Bring the prepared epoch of a sink, if there is one, into the log. Hold the sink's lock."""
    sink = _machine(broker).sink(name)
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
    committed = _machine(broker).commit(name, now_ms=broker.clock.wall_ms())
    await broker.transactions.of_sinks.submit(committed)
    await drop_decided(broker, name)


async def drop_decided(broker: Broker, name: str) -> None:
    """Remove the stages of epochs that are committed, those of failed attempts among them."""
    last_epoch = _machine(broker).sink(name).last_epoch
    await drop(broker, [s for s in broker.sinks.stages.of_sink(name) if s.name.epoch <= last_epoch])


async def keep_up_sinks(broker: Broker) -> None:
    """Finish what a failing disk has held up, drop stages and sinks that nobody comes back for."""
    now_ms = broker.clock.wall_ms()
    if not broker.is_one_of_several:
        prepared = [sink.name for sink in _machine(broker).sinks.values() if sink.prepared is not None]
        for name in prepared:
            await broker.carry_out(_try_to_finish(broker, name), broker.sinks.lock(name))
    for name in broker.sinks.stages.created_before(now_ms - broker.config.stage_expiry_ms):
        await broker.carry_out(_expire_stages(broker, name, now_ms), broker.sinks.lock(name))
    for journal, name in coordinated(broker):
        if name in journal.sinks.unused_since(now_ms - broker.config.sink_expiry_ms):
            await broker.carry_out(_forget_unused(broker, name, now_ms), broker.sinks.lock(name))
    if not broker.is_one_of_several:
        await broker.transactions.of_sinks.shorten()


async def forget(broker: Broker, name: str) -> None:
    """A sink and its stages are gone. Hold the sink's lock."""
    journal = journal_of(broker, name)
    transactional_id = transactional_id_of_sink(name)
    known = journal.transactions.get(transactional_id)
    events: list[Event] = [journal.sinks.forget(name)]
    if known is not None and journal.transactions.is_at_rest(transactional_id):
        events.append(journal.transactions.forget(transactional_id))
    await journal.submit(*events)
    if broker.is_one_of_several:
        await drop_everywhere(broker, DropStages(sink=name, until_epoch=sys.maxsize))
    broker.sinks.stages.forget(broker.sinks.stages.of_sink(name))
    try:
        await broker.threads.run(broker.sinks.stages.remove_sink, name)
    except OSError as error:
        log.warning("stages_not_removed sink=%s reason=%s", name, error)


async def _expire_stages(broker: Broker, name: str, now_ms: int) -> None:
    old = broker.sinks.stages.created_before(now_ms - broker.config.stage_expiry_ms).get(name, [])
    if not broker.is_one_of_several and (sink := _machine(broker).sinks.get(name)) is not None:
        # A decided epoch is either on its way into the log, or its stages are dropped when it is there.
        old = [stage for stage in old if not sink.is_decided(stage.name.epoch)]
    if old:
        log.info("stages_expired sink=%s count=%d", name, len(old))
        await drop(broker, old)


def _is_prepared(broker: Broker, name: StageName) -> bool:
    sink = _machine(broker).sinks.get(name.sink)
    return sink is not None and sink.prepared is not None and sink.prepared.epoch == name.epoch


async def _forget_unused(broker: Broker, name: str, now_ms: int) -> None:
    if name in journal_of(broker, name).sinks.unused_since(now_ms - broker.config.sink_expiry_ms):
        log.info("sink_expired sink=%s", name)
        await forget(broker, name)


def _machine(broker: Broker) -> Sinks:
    return broker.transactions.of_sinks.sinks


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
    settings = {target: _settings_of(broker, target) for target in next_sequences}

    def read() -> list[tuple[TopicPartition, Incoming]]:
        entries = read_entries(broker.sinks.stages.read(stage))
        stamp(entries, ProducerEpoch(producer_id, _PRODUCER_EPOCH), next_sequences)
        return [(entry.target, promised(entry, settings[entry.target])) for entry in entries]

    try:
        return await broker.threads.run(read)
    except OSError as error:
        raise storage_error(error, f"read of {stage.name.path}") from error


def _settings_of(broker: Broker, target: TopicPartition) -> TopicSettings | None:
    topic = broker.metadata.topics.get(target.topic)
    return None if topic is None else topic.settings


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
            take_in_promised(broker, partition, incoming, Acks.LEADER)
        except OutOfSequence as error:
            # The partition was opened anew meanwhile, without the batches before this one.
            raise StorageFailed(f"{partition.source} has lost part of an epoch: commit it again") from error
        size += len(incoming.bodies[0])
