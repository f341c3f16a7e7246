"""A coordinator hands out messages of partitions that other nodes hold."""

import asyncio
from dataclasses import replace

import pytest

from goqueue.broker.groups.lag import group_lag
from goqueue.broker.queue.stats import lane_stats
from goqueue.broker.remote.remotes import Remotes
from goqueue.broker.topics.verbs import add_partitions, delete_topic
from goqueue.model.delivery import Action, DescribeLanes
from goqueue.model.errors import NoLeader, Unavailable
from goqueue.model.group_commands import DescribeLag
from goqueue.model.ids import TopicPartition
from goqueue.model.topics import AddPartitions, DeleteTopic
from tests.unit.broker.remote.several import GROUP, ORDERS, Member, Several, several, values


def test_messages_that_others_hold_are_polled_and_acknowledged_once() -> None:
    async def story(world: Several) -> None:
        await world.create()
        group = world.group_apart()
        member = await Member(world, world.coordinator(group), group).join()
        await world.put("a", "b", "c")
        taken = await member.take(2)
        assert values(taken) == ["a", "b"]
        await member.settle(Action.ACK, taken)
        assert values(await member.take()) == ["c"]
        assert values(await member.take()) == []

    several(story)


def test_a_poll_that_waits_is_woken_within_moments_of_a_publish_elsewhere() -> None:
    async def story(world: Several) -> None:
        await world.create()
        group = world.group_apart()
        member = await Member(world, world.coordinator(group), group).join()
        loop = asyncio.get_running_loop()
        for number in range(3):
            waits = asyncio.ensure_future(member.take(wait_ms=30_000))
            remote = world.remote(world.coordinator(group))
            await world.until(lambda remote=remote: bool(remote.readers))  # type: ignore[misc]
            begun_s = loop.time()
            await world.put(f"v{number}")
            taken = await waits
            assert values(taken) == [f"v{number}"]
            assert loop.time() - begun_s < 0.1
            await member.settle(Action.ACK, taken)

    several(story)


def test_who_polls_without_waiting_sees_what_was_acknowledged_before() -> None:
    async def story(world: Several) -> None:
        await world.create()
        group = world.group_apart()
        member = await Member(world, world.coordinator(group), group).join()
        for number in range(10):
            await world.put(f"v{number}")
            taken = await member.take()
            assert values(taken) == [f"v{number}"]
            await member.settle(Action.ACK, taken)

    several(story)


def test_lag_is_told_of_what_others_hold() -> None:
    async def story(world: Several) -> None:
        await world.create(partitions=3)
        group = world.group_apart()
        name = world.coordinator(group)
        await Member(world, name, group).join()
        for number in range(3):
            await world.put("a", "b", number=number)
        lag = await world.run(name, group_lag, DescribeLag(group=group))
        assert [(one.end_offset, one.lag) for one in lag.partitions] == [(2, 2)] * 3
        assert all(one.lag_ms >= 0 for one in lag.partitions)

    several(story)


def test_a_leader_that_dies_costs_a_moment_and_no_message() -> None:
    async def story(world: Several) -> None:
        await world.create(copies=2)
        group = world.group_apart()
        member = await Member(world, world.coordinator(group), group).join()
        await world.put("a", "b")
        taken = await member.take(1)
        await member.settle(Action.ACK, taken)
        waits = asyncio.ensure_future(member.take(wait_ms=60_000))
        assert values(await waits) == ["b"]
        leader = world.leader()
        assert leader is not None
        world.kill(leader)
        waits = asyncio.ensure_future(member.take(wait_ms=60_000))
        await world.until(lambda: world.leader() not in (None, leader))
        await world.put("c")
        assert values(await waits) == ["c"]

    several(story, count=4)


def test_a_leader_that_is_cut_off_holds_up_nobody_for_long() -> None:
    async def story(world: Several) -> None:
        await world.create()
        group = world.group_apart()
        name, leader = world.coordinator(group), world.leader()
        assert leader is not None
        member = await Member(world, name, group).join()
        await world.put("a", "b")
        assert values(await member.take(1)) == ["a"]
        world.network.cut(leader, name)
        loop = asyncio.get_running_loop()
        begun_s = loop.time()
        # What was looked at lies here. What was not cannot be had, and that is told in time.
        assert values(await member.take(1)) == ["b"]
        with pytest.raises(Unavailable):
            world.remote(name).marks = None
            await member.take(1)
        assert loop.time() - begun_s < 30, "10 s until it is not in sync any more, and 5 s of patience"
        world.network.heal_all()
        await world.put("c")
        assert values(await member.take(wait_ms=20_000)) == ["c"]

    several(story)


def test_what_was_carried_over_is_not_carried_over_again() -> None:
    async def story(world: Several) -> None:
        await world.create()
        group = world.group_apart()
        member = await Member(world, world.coordinator(group), group).join()
        for number in range(50):
            await world.put(f"v{number}")
        leader = world.leader()
        assert leader is not None
        reads: list[object] = []
        counted = world.nodes[leader].broker.counters.topic("orders")
        await member.take(1)
        before = counted.served_bytes
        for _ in range(49):
            reads += await member.take(1)
        assert len(reads) == 49
        assert counted.served_bytes == before

    several(story)


def test_a_copy_that_is_not_in_sync_is_not_read_but_its_leader_is() -> None:
    async def story(world: Several) -> None:
        await world.create(partitions=6, copies=3)
        follower = world.coordinator()
        image = world.nodes[follower].broker.metadata
        records = [image.record(image.topic(ORDERS), number) for number in range(6)]
        number, record = next(
            (number, record)
            for number, record in enumerate(records)
            if follower in record.replicas and follower != record.leader
        )
        member = await Member(world, follower, GROUP).join()
        await world.put("a", number=number)
        assert values(await member.take()) == ["a"]
        broker = world.nodes[follower].broker
        source = TopicPartition(ORDERS, number)
        assert broker.readable(source) is broker.partition(source)
        waits = asyncio.ensure_future(member.take(wait_ms=30_000))
        await world.until(lambda: bool(broker.partition(source).readers))

        # Somebody else's word of it: it has left those in sync, and hears nothing from its leader.
        topic = broker.metadata.topic(ORDERS)
        assert record.leader is not None
        broker.metadata.records[topic.topic_id, number] = replace(record, isr=(record.leader,))
        for listener in broker.agreement.listeners:
            listener()
        await world.until(lambda: broker.readable(source) is not broker.partition(source))
        await world.until(lambda: bool(world.remote(follower, number).readers))
        await world.put("b", number=number)
        assert values(await waits) == ["b"]

    several(story)


def test_what_retention_has_taken_elsewhere_is_passed_by() -> None:
    async def story(world: Several) -> None:
        await world.create()
        group = world.group_apart()
        name, leader = world.coordinator(group), world.leader()
        assert leader is not None
        member = await Member(world, name, group).join()
        await world.put("a")
        await world.put("b")
        assert values(await member.take(1)) == ["a"]
        world.nodes[leader].broker.partition(TopicPartition(ORDERS, 0)).move_start(2)
        world.remote(name).let_go()  # what was carried over is gone here, too
        await world.put("c")
        assert values(await member.take(wait_ms=1_000)) == ["c"]

    several(story)


def test_a_topic_that_is_deleted_and_made_anew_while_it_is_polled_is_another_one() -> None:
    async def story(world: Several) -> None:
        await world.create()
        group = world.group_apart()
        name = world.coordinator(group)
        member = await Member(world, name, group).join()
        await world.put("old")
        assert values(await member.take()) == ["old"]
        waits = asyncio.ensure_future(member.take(wait_ms=5_000))
        await world.until(lambda: bool(world.remote(name).readers))
        await world.run(name, delete_topic, DeleteTopic(name=ORDERS))
        assert values(await waits) == []
        await world.until(lambda: all(ORDERS not in node.broker.topics for node in world.nodes.values()))
        await world.create()
        await world.put("new")
        assert values(await member.take(wait_ms=10_000)) == ["new"]

    several(story)


def test_partitions_that_come_later_are_polled_as_well() -> None:
    async def story(world: Several) -> None:
        await world.create()
        group = world.group_apart()
        member = await Member(world, world.coordinator(group), group).join()
        waits = asyncio.ensure_future(member.take(wait_ms=30_000))
        await asyncio.sleep(0.1)
        await world.run(member.name, add_partitions, AddPartitions(name=ORDERS, total=6))
        for number in range(6):
            await world.put(f"v{number}", number=number)
        taken = values(await waits)
        while len(taken) < 6:
            taken += values(await member.take(wait_ms=10_000))
        assert sorted(taken) == [f"v{number}" for number in range(6)]

    several(story)


def test_more_partitions_than_fit_into_a_call_are_watched_and_few_calls_wait() -> None:
    async def story(world: Several) -> None:
        await world.create(partitions=200)
        name = world.coordinator()
        member = await Member(world, name, GROUP).join()
        waits = asyncio.ensure_future(member.take(wait_ms=60_000))
        far = [number for number in range(200) if world.leader(ORDERS, number) != name]
        await world.until(lambda: all(world.remote(name, number).readers for number in far))
        remotes = world.nodes[name].broker.remotes
        assert isinstance(remotes, Remotes)
        await asyncio.sleep(1)
        assert remotes.watch_count <= len(far) // 30
        await world.put("a", number=far[-1])
        assert values(await waits) == ["a"]

    several(story)


def test_statistics_are_told_also_when_a_leader_cannot_be_asked() -> None:
    async def story(world: Several) -> None:
        await world.create()
        group = world.group_apart()
        name = world.coordinator(group)
        member = await Member(world, name, group).join()
        await world.put("a", "b")
        assert values(await member.take(1)) == ["a"]
        world.remote(name).marks = None
        world.remote(name).trouble = NoLeader(ORDERS, 0)
        broker = world.nodes[name].broker
        stats = await world.begin(name, lane_stats(broker, DescribeLanes()))
        assert sum(stats.partitions[TopicPartition(ORDERS, 0)].in_flight) == 1

    several(story)
