"""What one coordinator has said, the next one keeps to."""

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from goqueue.broker.forwarding.forwarding import Forwarding
from goqueue.broker.groups.consumer_heartbeat import consumer_heartbeat
from goqueue.broker.groups.journal import OFFSETS_TOPIC, SKEW_MS
from goqueue.broker.groups.offsets import commit_offsets, fetch_offsets
from goqueue.broker.storage.journal_set import journal_number
from goqueue.model.cluster import NodeId
from goqueue.model.delivery import Action
from goqueue.model.errors import CoordinatorLoading, GoQueueError, NotCoordinator
from goqueue.model.group_commands import CommitOffsets, ConsumerHeartbeat, FetchOffsets
from goqueue.model.groups import NO_GENERATION, Membership, TopicCommit
from goqueue.model.marks import ConfirmEpoch
from tests.unit.broker.remote.several import GROUP, ORDERS, Member, Several, several, values


async def taken_over(world: Several, group: str, before: NodeId) -> NodeId:
    """Who coordinates a group once another does, and serves it."""
    place = OFFSETS_TOPIC, journal_number(group)
    await world.until(lambda: world.leader(*place) not in (None, before))
    name = world.coordinator(group)
    journals = world.nodes[name].broker.coordinator.journals
    await world.until(lambda: any(one.partition.source.partition == place[1] for one in journals))
    return name


def test_who_was_told_to_be_a_member_is_one_at_the_next_coordinator() -> None:
    async def story(world: Several) -> None:
        await world.create(copies=3)
        name = world.coordinator()
        member = await Member(world, name, GROUP).join()
        world.kill(name)
        member.name = await taken_over(world, GROUP, name)
        assert values(await member.take()) == [], "or it would have to join again"

    several(story)


def test_who_was_told_its_epoch_has_it_at_the_next_coordinator() -> None:
    async def story(world: Several) -> None:
        await world.create(copies=3)
        name = world.coordinator()
        joining = ConsumerHeartbeat(
            group=GROUP, member_id="ann", epoch=0, topics=[ORDERS], rebalance_timeout_ms=1_000, owned=()
        )
        broker = world.nodes[name].broker
        told = await world.begin(name, consumer_heartbeat(broker, joining))
        assert told is not None
        world.kill(name)
        broker = world.nodes[await taken_over(world, GROUP, name)].broker
        beating = ConsumerHeartbeat(group=GROUP, member_id="ann", epoch=told.generation)
        again = await world.begin(world.coordinator(), consumer_heartbeat(broker, beating))
        assert again is not None
        assert again.generation == told.generation

    several(story)


def test_a_lease_that_is_taken_over_does_not_end_at_once() -> None:
    async def story(world: Several) -> None:
        await world.create(copies=3, visibility_ms="5000")
        name = world.coordinator()
        member = await Member(world, name, GROUP).join()
        await world.put("a")
        taken = await member.take()
        assert values(taken) == ["a"]
        await asyncio.sleep(3.5)
        world.kill(name)
        member.name = await taken_over(world, GROUP, name)
        begun_s = asyncio.get_running_loop().time()
        assert values(await member.take(wait_ms=30_000)) == ["a"]
        assert asyncio.get_running_loop().time() - begun_s >= (SKEW_MS - 100) / 1_000

    several(story)


def test_a_coordinator_that_nobody_hears_any_more_hands_out_nothing() -> None:
    async def story(world: Several) -> None:
        await world.create(copies=3)
        name = world.coordinator()
        member = await Member(world, name, GROUP).join()
        await world.put("a")
        await world.until(lambda: world.leader() is not None)
        for other in world.nodes:
            if other != name:
                world.network.cut(name, other)
        with pytest.raises((TimeoutError, GoQueueError)):
            async with asyncio.timeout(1.0):
                await member.take()
        world.network.heal_all()
        taken: list[tuple[str, str]] = []
        while not taken:
            taken = await member.take(wait_ms=40_000)
        await member.settle(Action.ACK, taken)
        assert values(taken) == ["a"]

    several(story)


def committing(group: str = GROUP, offset: int = 5) -> CommitOffsets:
    who = Membership(group, "", NO_GENERATION)
    return CommitOffsets(who=who, commits=[TopicCommit(ORDERS, [(0, offset, -1, "")])])


def test_offsets_are_not_told_by_a_coordinator_that_another_has_replaced() -> None:
    async def story(world: Several) -> None:
        await world.create(copies=3)
        name = world.coordinator()
        broker = world.nodes[name].broker
        await world.run(name, commit_offsets, committing(offset=5))
        asking = FetchOffsets(group=GROUP, wanted=None)
        [[_, [row]]] = await world.begin(name, fetch_offsets(broker, asking))
        assert row[:2] == (0, 5)
        for other in world.nodes:
            if other != name:
                world.network.cut(name, other)
                world.network.cut(other, name)
        with pytest.raises((CoordinatorLoading, NotCoordinator)):
            await world.begin(name, fetch_offsets(broker, asking))
        world.network.heal_all()
        deadline_s = asyncio.get_running_loop().time() + 60
        while True:
            with suppress(GoQueueError):
                [[_, [row]]] = await world.run(name, fetch_offsets, asking)
                break
            assert asyncio.get_running_loop().time() < deadline_s
        assert row[:2] == (0, 5)

    several(story)


def test_one_round_serves_all_that_wait_for_it() -> None:
    async def story(world: Several) -> None:
        await world.create(copies=3)
        name = world.coordinator()
        await world.run(name, commit_offsets, committing())
        broker = world.nodes[name].broker
        forwarding = broker.forwarding
        assert isinstance(forwarding, Forwarding)
        rounds: list[object] = []
        run_at = forwarding.run_at

        async def counted(node: NodeId, command: Any, **more: Any) -> object:
            rounds.append(command)
            return await run_at(node, command, **more)

        forwarding.run_at = counted  # type: ignore[method-assign]
        asking = FetchOffsets(group=GROUP, wanted=None)
        asked = [world.begin(name, fetch_offsets(broker, asking)) for _ in range(20)]
        await asyncio.gather(*asked)
        asked_of = sum(isinstance(command, ConfirmEpoch) for command in rounds)
        assert asked_of == 2, "one of each of the two others"

    several(story)
