"""Sinks of several nodes: an epoch is a transaction, and stages outlive whoever took them in."""

import asyncio
from collections.abc import Sequence

import pytest

from goqueue.broker.read.read import read_messages
from goqueue.broker.sinks import transacted
from goqueue.broker.sinks.copies import drop_stages, keep
from goqueue.broker.sinks.stages import StageName
from goqueue.broker.sinks.verbs import (
    abort_stages,
    commit_epoch,
    describe_sink,
    forget_sink,
    list_sinks,
    stage,
    take_generation,
)
from goqueue.broker.storage.journal_set import journal_number
from goqueue.broker.transactions.journal import TRANSACTIONS_TOPIC
from goqueue.broker.transactions.verbs import init_transactional
from goqueue.model.cluster import NodeId
from goqueue.model.commands import ReadMessages
from goqueue.model.errors import EpochInterrupted, InvalidName, SinkFenced, SinkNotFound, StageNotFound
from goqueue.model.ids import TopicPartition
from goqueue.model.messages import Lane, Message
from goqueue.model.names import transactional_id_of_sink
from goqueue.model.sinks import (
    AbortStages,
    CommitEpoch,
    DescribeSink,
    DropStages,
    EpochEnded,
    ForgetSink,
    ListSinks,
    StageBatches,
    TakeGeneration,
)
from goqueue.model.transaction_commands import InitProducer
from goqueue.records.batch import encode
from goqueue.records.entries import encode_entry
from tests.unit.broker.remote.several import ORDERS, Several, several

SINK = "copy"
ID = transactional_id_of_sink(SINK)
PARTITIONS = 3


class Driver:
    """One run of a job that writes to the sink; it asks whichever node it is told to."""

    def __init__(self, world: Several) -> None:
        self.world = world
        self.generation = 0

    async def begin(self, at: NodeId | None = None) -> "Driver":
        taken = await self.world.run(at or self.any_node(), take_generation, TakeGeneration(sink=SINK))
        self.generation = taken.generation
        return self

    def any_node(self) -> NodeId:
        return next(iter(self.world.nodes))

    async def stage(self, stage_id: str, *rows: str, epoch: int = 0, at: NodeId | None = None) -> None:
        command = StageBatches(
            sink=SINK,
            generation=self.generation,
            epoch=epoch,
            stage_id=stage_id,
            entries=entries_of(*rows),
        )
        await self.world.run(at or self.any_node(), stage, command)

    async def commit(self, *stages: str, epoch: int = 0, at: NodeId | None = None) -> EpochEnded:
        command = CommitEpoch(sink=SINK, generation=self.generation, epoch=epoch, stage_ids=stages)
        return await self.world.run(at or self.any_node(), commit_epoch, command)


def entries_of(*rows: str) -> memoryview:
    pieces = []
    for number, row in enumerate(rows):
        [(batch, _)] = encode([Message(row.encode())], now_ms=1)
        pieces.append(encode_entry(TopicPartition(ORDERS, number % PARTITIONS), Lane.NORMAL, batch))
    return memoryview(bytearray(b"".join(pieces)))


def coordinator(world: Several) -> NodeId:
    leader = world.leader(TRANSACTIONS_TOPIC, journal_number(ID))
    assert leader is not None
    return leader


async def replaced(world: Several, former: NodeId) -> NodeId:
    """Who coordinates the sink when that node is gone."""
    world.kill(former)
    await world.until(lambda: world.leader(TRANSACTIONS_TOPIC, journal_number(ID)) not in (former, None))
    return coordinator(world)


async def rows(world: Several) -> list[str]:
    """All that readers of committed messages see."""
    found: list[str] = []
    for number in range(PARTITIONS):
        command = ReadMessages(source=TopicPartition(ORDERS, number))
        read = await world.run(next(iter(world.nodes)), read_messages, command)
        found += [(message.value or b"").decode() for message in read.messages]
    return sorted(found)


def holders(world: Several) -> Sequence[NodeId]:
    return [name for name, node in world.nodes.items() if node.broker.sinks.stages.of_sink(SINK)]


def test_what_is_staged_at_any_nodes_is_committed_at_any_other_once() -> None:
    async def story(world: Several) -> None:
        await world.create(partitions=PARTITIONS, copies=3)
        first, second, third = world.nodes
        driver = await Driver(world).begin(first)
        await driver.stage("a", "1", "2", "3", at=second)
        await driver.stage("b", "4", at=third)
        await driver.stage("b-failed", "4", at=third)
        assert await rows(world) == []
        await world.until(lambda: len(holders(world)) == 3)

        assert await driver.commit("a", "b", at=second) == EpochEnded(is_duplicate=False, messages=4)

        assert await rows(world) == ["1", "2", "3", "4"]
        await world.until(lambda: not holders(world))
        assert await driver.commit("a", "b", at=third) == EpochEnded(is_duplicate=True, messages=0)
        await driver.stage("a", "5", epoch=1, at=first)
        await driver.commit("a", epoch=1, at=first)
        assert await rows(world) == ["1", "2", "3", "4", "5"]
        for name in world.nodes:
            assert await world.run(name, list_sinks_here, ListSinks()) == [SINK]
            assert (await world.run(name, describe_sink, DescribeSink(sink=SINK))).last_epoch == 1

    several(story)


async def list_sinks_here(*given: object) -> list[str]:
    """As a door has it: a verb that waits for nothing."""
    return list_sinks(*given)  # type: ignore[arg-type]


def test_an_epoch_without_rows_is_an_epoch() -> None:
    async def story(world: Several) -> None:
        await world.create(partitions=PARTITIONS)
        driver = await Driver(world).begin()
        assert not (await driver.commit()).is_duplicate
        assert (await driver.commit()).is_duplicate

    several(story)


def test_stages_outlive_the_coordinator_that_took_them_in() -> None:
    async def story(world: Several) -> None:
        await world.create(partitions=PARTITIONS, copies=3)
        driver = await Driver(world).begin()
        await driver.stage("a", "1", "2", "3")
        await replaced(world, coordinator(world))

        await driver.commit("a")

        assert await rows(world) == ["1", "2", "3"]

    several(story)


def test_a_stage_that_the_coordinator_lacks_is_fetched_from_whoever_has_it() -> None:
    async def story(world: Several) -> None:
        await world.create(partitions=PARTITIONS, copies=3)
        driver = await Driver(world).begin()
        await driver.stage("a", "1", "2")
        await world.until(lambda: len(holders(world)) == 3)
        broker = world.nodes[coordinator(world)].broker
        dropped = DropStages(sink=SINK, epoch=0, stage_ids=["a"])
        await world.begin(coordinator(world), drop_stages(broker, dropped))

        await driver.commit("a")

        assert await rows(world) == ["1", "2"]

    several(story)


def test_a_stage_that_is_damaged_here_is_fetched_as_well() -> None:
    async def story(world: Several) -> None:
        await world.create(partitions=PARTITIONS, copies=3)
        driver = await Driver(world).begin()
        await driver.stage("a", "1", "2")
        await world.until(lambda: len(holders(world)) == 3)
        name = coordinator(world)
        [kept] = world.nodes[name].broker.sinks.stages.of_sink(SINK)
        file = world.nodes[name].disk.open_existing(kept.name.path)
        file.truncate(file.size() - 1)

        await driver.commit("a")

        assert await rows(world) == ["1", "2"]

    several(story)


def test_a_copy_of_what_was_replaced_since_counts_as_none() -> None:
    async def story(world: Several) -> None:
        await world.create(partitions=PARTITIONS, copies=3)
        driver = await Driver(world).begin()
        await driver.stage("a", "new")
        await world.until(lambda: len(holders(world)) == 3)
        heir = await replaced(world, coordinator(world))
        broker = world.nodes[heir].broker
        await world.begin(heir, keep(broker, StageName(SINK, 0, "a"), 1, entries_of("old")))

        await driver.commit("a")

        assert await rows(world) == ["new"]

    several(story)


def test_a_stage_that_nobody_has_refuses_the_commit_and_nothing_is_seen() -> None:
    async def story(world: Several) -> None:
        await world.create(partitions=PARTITIONS)
        driver = await Driver(world).begin()
        await driver.stage("a", "1")
        with pytest.raises(StageNotFound):
            await driver.commit("a", "never")
        assert await rows(world) == []
        command = AbortStages(sink=SINK, generation=driver.generation, epoch=0, stage_ids=["a"])
        assert await world.run(driver.any_node(), abort_stages, command) == 1
        await world.until(lambda: not holders(world))
        with pytest.raises(StageNotFound):
            await driver.commit("a")

    several(story)


def test_a_run_that_another_has_followed_is_refused_by_the_next_coordinator_too() -> None:
    async def story(world: Several) -> None:
        await world.create(partitions=PARTITIONS, copies=3)
        former = await Driver(world).begin()
        await former.stage("a", "1")
        driver = await Driver(world).begin()
        await replaced(world, coordinator(world))
        with pytest.raises(SinkFenced):
            await former.commit("a")
        await driver.stage("b", "2")
        await driver.commit("b")
        assert await rows(world) == ["2"]

    several(story)


def test_what_a_coordinator_has_copied_when_it_dies_is_undone_and_the_epoch_comes_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    copied: list[str] = []

    async def never(*given: object) -> None:
        copied.append("all")
        await asyncio.Event().wait()

    async def story(world: Several) -> None:
        await world.create(partitions=PARTITIONS, copies=3)
        driver = await Driver(world).begin()
        await driver.stage("a", "1", "2", "3")
        former = coordinator(world)
        monkeypatch.setattr(transacted, "commit_with", never)
        command = CommitEpoch(sink=SINK, generation=driver.generation, epoch=0, stage_ids=["a"])
        world.begin(former, commit_epoch(world.nodes[former].broker, command))
        await world.until(lambda: bool(copied))
        monkeypatch.undo()
        await replaced(world, former)

        def is_undone() -> bool:
            leaders = [world.leader(ORDERS, number) for number in range(PARTITIONS)]
            return all(
                leader in world.nodes
                and not world.nodes[leader].broker.topics[ORDERS].partitions[number].transactions
                for number, leader in enumerate(leaders)
            )

        await world.until(is_undone)
        assert await rows(world) == []
        await world.put("beside")
        assert await rows(world) == ["beside"], "nobody waits behind what was undone"
        await driver.commit("a")
        assert await rows(world) == ["1", "2", "3", "beside"]

    several(story)


def test_nothing_is_copied_while_a_partition_has_no_leader() -> None:
    async def story(world: Several) -> None:
        await world.create(partitions=PARTITIONS)
        driver = await Driver(world).begin()
        await driver.stage("a", "1", "2", "3")
        lost = next(
            name
            for number in range(PARTITIONS)
            if (name := world.leader(ORDERS, number)) not in (None, coordinator(world))
        )
        assert lost is not None
        world.kill(lost)
        await world.until(lambda: None in {world.leader(ORDERS, number) for number in range(PARTITIONS)})
        with pytest.raises(EpochInterrupted):
            await driver.commit("a")
        for node in world.nodes.values():
            here = [one for one in node.broker.topics[ORDERS].partitions if one.is_here]
            assert [one.log.end_offset for one in here] == [0] * len(here)
        world.start(lost)
        await world.until(lambda: None not in {world.leader(ORDERS, number) for number in range(PARTITIONS)})
        await driver.commit("a")
        assert await rows(world) == ["1", "2", "3"]

    several(story)


def test_a_sink_is_forgotten_everywhere_and_another_begins_behind_its_generations() -> None:
    async def story(world: Several) -> None:
        await world.create(partitions=PARTITIONS)
        driver = await Driver(world).begin()
        await driver.stage("a", "1")
        await driver.commit("a")
        await driver.stage("b", "2", epoch=1)

        await world.run(driver.any_node(), forget_sink, ForgetSink(sink=SINK))

        await world.until(lambda: not holders(world))
        assert world.nodes[coordinator(world)].broker.transactions.get(ID) is None
        with pytest.raises(SinkNotFound):
            await world.run(driver.any_node(), describe_sink, DescribeSink(sink=SINK))
        assert (await Driver(world).begin()).generation > driver.generation

    several(story)


def test_no_client_takes_over_the_transactions_of_a_sink() -> None:
    async def story(world: Several) -> None:
        command = InitProducer(transactional_id=ID, timeout_ms=1_000)
        with pytest.raises(InvalidName):
            await world.run(next(iter(world.nodes)), init_transactional, command)

    several(story)
