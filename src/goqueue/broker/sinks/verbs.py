"""The verbs of exactly-once sinks: take a generation, stage, commit, abort, look, forget.

Tasks stage batches, which nobody sees; one commit brings all stages of an epoch into the log, once.
"""

from contextlib import suppress

from goqueue.broker.broker import Broker
from goqueue.broker.producers import init_producer
from goqueue.broker.sinks.copies import drop, drop_everywhere, keep, keep_copies
from goqueue.broker.sinks.epochs import finish_epoch, forget
from goqueue.broker.sinks.homes import coordinated, journal_of
from goqueue.broker.sinks.stages import Stage, StageName, checksum_of, stage_of
from goqueue.broker.sinks.transacted import commit_transacted
from goqueue.broker.transactions.journal import TransactionJournal
from goqueue.broker.write.append_entries import check_entries
from goqueue.core.transactions.sinks import PartitionCount, StageKept
from goqueue.log.partition_log import storage_error
from goqueue.model.errors import Corrupt, ShuttingDown
from goqueue.model.ids import NO_PRODUCER, TopicPartition
from goqueue.model.names import checked_name, checked_plain_name
from goqueue.model.sinks import (
    AbortStages,
    CommitEpoch,
    DescribeSink,
    DropStages,
    EpochEnded,
    ForgetSink,
    ListSinks,
    SinkView,
    StageBatches,
    Staged,
    StageView,
    TakeGeneration,
)
from goqueue.model.transaction_commands import TakeProducerId


async def take_generation(broker: Broker, command: TakeGeneration) -> SinkView:
    """A new generation of a sink, which fences all before it; the sink comes into being with its first.

    A run that names itself keeps the generation it has, and is refused when another has followed it.
    """
    _admit(broker, command.sink)
    for given, what in ((command.run, "a run of a sink"), (command.writer, "a writer of a sink")):
        if given:
            checked_name(given, what)
    return await broker.carry_out(
        _take_generation(broker, command.sink, command.run, command.writer), broker.sinks.lock(command.sink)
    )


async def _take_generation(broker: Broker, name: str, run: str, writer: str) -> SinkView:
    producer_id = NO_PRODUCER
    journal = journal_of(broker, name)
    if broker.is_one_of_several:
        pass  # each epoch has a producer of its own, that of its transaction
    elif name in journal.sinks.sinks:
        # The answer tells the last epoch, so there must be no epoch of which that is unknown.
        await finish_epoch(broker, name)
    else:
        producer_id = await init_producer(broker, TakeProducerId())
    now_ms = broker.clock.wall_ms()
    taken = journal.sinks.take_generation(
        name, producer_id=producer_id, now_ms=now_ms, run=run, writer=writer
    )
    await journal.submit(taken)
    return _view(broker, journal, name)


async def stage(broker: Broker, command: StageBatches) -> Staged:
    """Keep batches for an epoch, safe on the disk and seen by nobody. The same id again replaces them."""
    _admit(broker, command.sink)
    checked_plain_name(command.stage_id, "a stage")
    journal = journal_of(broker, command.sink)
    journal.sinks.held_by(command.sink, command.generation)
    await check_entries(broker, command.entries, is_staged=True)
    name = StageName(command.sink, command.epoch, command.stage_id)
    staged = stage_of(name, broker.clock.wall_ms(), command.entries)
    if broker.is_one_of_several:
        await keep_copies(broker, journal, staged, command.entries)
        change = _keep_stage(broker, command, name, staged.created_ms)
        await broker.carry_out(change, broker.sinks.lock(command.sink))
        return Staged(staged.messages, staged.size_bytes)
    try:
        draft = await broker.threads.run(broker.sinks.stages.draft, staged, command.entries)
    except OSError as error:
        raise storage_error(error, f"stage of sink {command.sink}") from error
    await broker.carry_out(_note_stage(broker, command, staged, draft), broker.sinks.lock(command.sink))
    return Staged(staged.messages, staged.size_bytes)


async def _keep_stage(broker: Broker, command: StageBatches, name: StageName, created_ms: int) -> None:
    """One of several nodes: keep a stage here, too, and note that it is the last of its name."""
    if (
        journal_of(broker, command.sink)
        .sinks.held_by(command.sink, command.generation)
        .is_decided(command.epoch)
    ):
        return
    await keep(broker, name, created_ms, command.entries)
    checksum = await broker.threads.run(checksum_of, command.entries)
    journal = journal_of(broker, command.sink)
    sink = journal.sinks.held_by(command.sink, command.generation)
    if not sink.is_decided(command.epoch):
        await journal.submit(StageKept(command.sink, command.epoch, command.stage_id, checksum))


async def _note_stage(broker: Broker, command: StageBatches, staged: Stage, draft: str) -> None:
    try:
        sink = journal_of(broker, command.sink).sinks.held_by(command.sink, command.generation)
        is_wanted = not sink.is_decided(command.epoch)
        if is_wanted:
            await broker.threads.run(broker.sinks.stages.publish, draft, staged)
            broker.sinks.stages.note(staged)
            draft = ""
    except OSError as error:
        raise storage_error(error, f"stage of sink {command.sink}") from error
    finally:
        if draft:
            await broker.threads.run(broker.sinks.stages.drop_draft, draft)


async def commit_epoch(broker: Broker, command: CommitEpoch) -> EpochEnded:
    """Bring an epoch into the log: all its stages, once each. An epoch that is not newer is left as it is."""
    _admit(broker, command.sink)
    journal_of(broker, command.sink).sinks.held_by(command.sink, command.generation)
    commit = commit_transacted if broker.is_one_of_several else _commit_epoch
    return await broker.carry_out(commit(broker, command), broker.sinks.lock(command.sink))


async def _commit_epoch(broker: Broker, command: CommitEpoch) -> EpochEnded:
    name, epoch = command.sink, command.epoch
    journal = journal_of(broker, name)
    sink = journal.sinks.held_by(name, command.generation)
    await finish_epoch(broker, name)
    if epoch <= sink.last_epoch:
        await drop(broker, broker.sinks.stages.existing(name, epoch, command.stage_ids))
        return EpochEnded(is_duplicate=True, messages=0)
    stages = broker.sinks.stages.named(name, epoch, command.stage_ids)
    counts = _counts_of(broker, stages)
    try:
        # Once prepared an epoch must be finished: whether its files are good is looked at before.
        await broker.threads.run(broker.sinks.stages.check, stages)
    except OSError as error:
        raise storage_error(error, f"stages of sink {name}") from error
    if not broker.is_open:
        raise ShuttingDown
    prepared = journal.sinks.prepare(
        name, epoch, stages=[stage.name.stage_id for stage in stages], counts=counts
    )
    await journal.submit(prepared)
    await finish_epoch(broker, name)
    return EpochEnded(is_duplicate=False, messages=sum(stage.messages for stage in stages))


async def abort_stages(broker: Broker, command: AbortStages) -> int:
    """Drop stages that are not committed; how many were there. Nothing that is committed is undone."""
    _admit(broker, command.sink)
    journal_of(broker, command.sink).sinks.held_by(command.sink, command.generation)
    return await broker.carry_out(_abort_stages(broker, command), broker.sinks.lock(command.sink))


async def _abort_stages(broker: Broker, command: AbortStages) -> int:
    journal = journal_of(broker, command.sink)
    if journal.sinks.held_by(command.sink, command.generation).is_decided(command.epoch):
        return 0
    if broker.is_one_of_several:
        dropped = journal.sinks.drop(command.sink, command.epoch, command.stage_ids)
        await journal.submit(dropped)
        gone = DropStages(sink=command.sink, epoch=command.epoch, stage_ids=dropped.stages)
        await drop_everywhere(broker, gone)
        return len(dropped.stages)
    stages = broker.sinks.stages.existing(command.sink, command.epoch, command.stage_ids)
    await drop(broker, stages)
    return len(stages)


def list_sinks(broker: Broker, command: ListSinks) -> list[str]:
    """All that this node coordinates."""
    return sorted({name for _, name in coordinated(broker)})


async def describe_sink(broker: Broker, command: DescribeSink) -> SinkView:
    """A sink's newest generation, its last epoch, and the stages that wait for a commit."""
    journal = journal_of(broker, command.sink)
    if broker.rounds is not None:
        await journal.submit()
        await broker.rounds.confirm(journal.partition)
    return _view(broker, journal, command.sink)


def _view(broker: Broker, journal: TransactionJournal, name: str) -> SinkView:
    sink = journal.sinks.sink(name)
    return SinkView(
        name=name,
        generation=sink.generation,
        last_epoch=sink.last_epoch,
        stages=[
            StageView(stage.name.epoch, stage.name.stage_id, stage.messages, stage.size_bytes)
            for stage in broker.sinks.stages.of_sink(name)
        ],
        leaves_markers=broker.is_one_of_several,
    )


async def forget_sink(broker: Broker, command: ForgetSink) -> None:
    """Forget a sink and drop its stages. What it has committed stays in the log."""
    _admit(broker, command.sink)
    journal_of(broker, command.sink).sinks.sink(command.sink)
    await broker.carry_out(_forget_sink(broker, command.sink), broker.sinks.lock(command.sink))


async def _forget_sink(broker: Broker, name: str) -> None:
    if not broker.is_one_of_several:
        with suppress(Corrupt):  # such an epoch can never be finished, and forgetting the sink is the way out
            await finish_epoch(broker, name)
    await forget(broker, name)


def _counts_of(broker: Broker, stages: list[Stage]) -> list[PartitionCount]:
    """How many messages go to each partition; refuses when one of them is gone."""
    totals: dict[TopicPartition, int] = {}
    for staged in stages:
        for target, messages in staged.counts.items():
            totals[target] = totals.get(target, 0) + messages
    for target in totals:
        broker.partition(target)
    return [
        PartitionCount(target.topic, broker.metadata.topic(target.topic).topic_id, target.partition, messages)
        for target, messages in totals.items()
    ]


def _admit(broker: Broker, name: str) -> None:
    checked_plain_name(name, "a sink")
    if not broker.is_open:
        raise ShuttingDown
