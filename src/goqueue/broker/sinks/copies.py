"""Stages of several nodes: each is kept by the sink's coordinator and by replicas of its journal.

One of these coordinates the sink when the first is gone, and has the stage then, or asks the others for it.
The journal has the checksum of what was staged last under a name: a copy that differs is an old one, and
counts as none. A stage that is lost all the same costs a run of its epoch and nothing else, since nothing of
it is in the log.
"""

import asyncio
import logging
from collections.abc import Awaitable, Iterable
from typing import NamedTuple, TypeVar

from goqueue.broker.broker import Broker
from goqueue.broker.sinks.stages import Stage, StageName, checksum_of, stage_of
from goqueue.broker.transactions.journal import TransactionJournal
from goqueue.broker.transactions.leaders import calls, journal_record
from goqueue.log.partition_log import storage_error
from goqueue.model.cluster import NodeId
from goqueue.model.errors import Corrupt, EpochInterrupted, GoQueueError, NotEnoughReplicas, StageNotFound
from goqueue.model.sinks import CommitEpoch, DropStages, FetchStage, KeepStage, StageFound

log = logging.getLogger(__name__)
T = TypeVar("T")
COPIES_MIN = 2
"""So many nodes have a stage when it is answered, if so many are in sync; the others get it all the same."""


class Checked(NamedTuple):
    """A stage, and the checksum that its entries must have when they are read."""

    stage: Stage
    checksum: int


async def keep_copies(
    broker: Broker, journal: TransactionJournal, staged: Stage, entries: memoryview
) -> None:
    """Have other nodes keep a stage; returns when enough of them do. Raises NotEnoughReplicas."""
    journal.partition.admit_all()
    in_sync = journal_record(broker, journal.partition.source).isr
    others = [node for node in in_sync if node != broker.config.node_id]
    command = KeepStage(
        sink=staged.name.sink,
        epoch=staged.name.epoch,
        stage_id=staged.name.stage_id,
        created_ms=staged.created_ms,
        entries=entries,
    )
    wanted = min(len(others), COPIES_MIN - 1)
    kept: list[NodeId] = []
    asking = {_begin_asking(broker, node, command, kept) for node in others}
    while asking and len(kept) < wanted:
        _, asking = await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED)
    if len(kept) < wanted:
        raise NotEnoughReplicas(*journal.partition.source)


def _begin_asking(
    broker: Broker, node: NodeId, command: KeepStage | DropStages, answered: list[NodeId]
) -> "asyncio.Task[None]":
    """Ask a node, to the end, also when nobody waits for it any more."""

    async def ask() -> None:
        try:
            await calls(broker).run_at(node, command)
        except GoQueueError as error:
            log.info("not_answered command=%s node=%s reason=%s", type(command).__name__, node, error)
        else:
            answered.append(node)

    task = asyncio.get_running_loop().create_task(ask())
    broker.keep(task)
    return task


async def all_here(broker: Broker, journal: TransactionJournal, command: CommitEpoch) -> list[Checked]:
    """The stages of an epoch, in the order given, on this node's disk and sound.

    Raises StageNotFound when no node has one, and EpochInterrupted when that cannot be told now.
    """
    stages = []
    for stage_id, checksum in journal.sinks.kept(command.sink, command.epoch, command.stage_ids).items():
        name = StageName(command.sink, command.epoch, stage_id)
        stage = await _sound(broker, name, checksum) or await _fetched(broker, journal, name, checksum)
        stages.append(Checked(stage, checksum))
    return stages


async def _sound(broker: Broker, name: StageName, checksum: int) -> Stage | None:
    """A stage that is here and undamaged, and no older one of its name."""
    known = broker.sinks.stages

    def read_checksum(stage: Stage) -> int:
        return checksum_of(known.read(stage))

    for stage in known.existing(name.sink, name.epoch, [name.stage_id]):
        try:
            found = await _on_disk(broker.threads.run(read_checksum, stage), name)
        except Corrupt as error:
            log.error("stage_damaged path=%s reason=%s", name.path, error)
            known.forget([stage])
            continue
        if found == checksum:
            return stage
    return None


async def _fetched(broker: Broker, journal: TransactionJournal, name: StageName, checksum: int) -> Stage:
    """A stage that another node has, kept here too from now on."""
    replicas = journal_record(broker, journal.partition.source).replicas
    asked = FetchStage(sink=name.sink, epoch=name.epoch, stage_id=name.stage_id, checksum=checksum)
    silent = set(replicas) - broker.metadata.nodes.keys()
    for node in broker.metadata.nodes.keys() - {NodeId(broker.config.node_id)}:
        try:
            found = await calls(broker).run_at(node, asked)
        except GoQueueError as error:
            log.info("stage_not_fetched node=%s path=%s reason=%s", node, name.path, error)
            silent.add(node)
            continue
        if isinstance(found, StageFound):
            return await keep(broker, name, found.created_ms, found.entries)
    if silent:
        raise EpochInterrupted(name.sink, name.epoch, f"{', '.join(sorted(silent))} may have a stage of it")
    raise StageNotFound(*name)


async def keep(broker: Broker, name: StageName, created_ms: int, entries: memoryview) -> Stage:
    """Write a stage to this node's disk."""
    staged = stage_of(name, created_ms, entries)
    stages = broker.sinks.stages

    def write() -> None:
        stages.publish(stages.draft(staged, entries), staged)

    await _on_disk(broker.threads.run(write), name)
    stages.note(staged)
    return staged


async def keep_stage(broker: Broker, command: KeepStage) -> None:
    """At the others: keep a copy; returns when the disk has it."""
    name = StageName(command.sink, command.epoch, command.stage_id)
    await keep(broker, name, command.created_ms, command.entries)


async def fetch_stage(broker: Broker, command: FetchStage) -> StageFound | None:
    """At the others: a copy, if there is a sound one."""
    stage = await _sound(broker, StageName(command.sink, command.epoch, command.stage_id), command.checksum)
    if stage is None:
        return None
    entries = await _on_disk(broker.threads.run(broker.sinks.stages.read, stage), stage.name)
    return StageFound(stage.created_ms, entries)


async def drop_stages(broker: Broker, command: DropStages) -> None:
    """Here or at the others: remove what is of no use any more."""
    stages = broker.sinks.stages
    named = stages.existing(command.sink, command.epoch, command.stage_ids)
    old = [stage for stage in stages.of_sink(command.sink) if stage.name.epoch <= command.until_epoch]
    await drop(broker, [*named, *old])


async def drop_everywhere(broker: Broker, command: DropStages) -> None:
    """The same here, and at all other nodes, which nobody waits for: what they keep expires by itself."""
    await drop_stages(broker, command)
    for node in broker.metadata.nodes.keys() - {NodeId(broker.config.node_id)}:
        _begin_asking(broker, node, command, [])


async def drop(broker: Broker, stages: Iterable[Stage]) -> None:
    """Remove stages. What the disk does not let go of now, the next start removes."""
    stages = list(stages)
    if not stages:
        return
    broker.sinks.stages.forget(stages)
    try:
        await broker.threads.run(broker.sinks.stages.remove, [stage.name for stage in stages])
    except OSError as error:
        log.warning("stages_not_removed count=%d reason=%s", len(stages), error)


async def _on_disk(work: Awaitable[T], name: StageName) -> T:
    try:
        return await work
    except OSError as error:
        raise storage_error(error, name.path) from error
