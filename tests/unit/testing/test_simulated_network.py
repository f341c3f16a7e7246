"""The simulated network does what every network between nodes must, and breaks as one does."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from random import Random

import pytest

from goqueue.model.cluster import Incarnation, NodeId
from goqueue.model.errors import AnswerLost
from goqueue.model.peers import Loss, Neighbour, Peer
from goqueue.model.ports import Peers
from goqueue.testing.world.clock import SimulatedClock
from goqueue.testing.world.loop import SimulatedLoop
from goqueue.testing.world.network import SimulatedNetwork
from goqueue.testing.world.peers import SimulatedPeers
from tests.unit.edge_peer.peers_conformance import (
    COMMAND,
    NODES,
    A,
    B,
    C,
    End,
    PeersConformance,
    User,
    World,
    follow,
    followed,
    frames,
    never,
    until,
)

SEEDS = range(5)


class SimulatedWorld:
    def __init__(self, seed: int) -> None:
        self.network = SimulatedNetwork(Random(seed))
        self.simulated = {node: SimulatedPeers(self.network) for node in NODES}
        self.peers: Mapping[NodeId, Peers] = dict(self.simulated)
        self.users: Mapping[NodeId, User] = {node: User() for node in NODES}
        self.neighbours = {node: Neighbour(Incarnation(10 + n), "", 0) for n, node in enumerate(NODES)}
        for node, peers in self.peers.items():
            peers.meet(self.neighbours)
            peers.serve(Peer(node, self.neighbours[node].incarnation), self.users[node])

    def sever(self, one: NodeId, other: NodeId) -> None:
        self.network.reset(one, other)

    def stop_reading(self, node: NodeId) -> None:
        for other in NODES:
            self.network.clog(other, node)

    def read_on(self, node: NodeId) -> None:
        for other in NODES:
            self.network.unclog(other, node)


def simulated(seed: int, work: Callable[[SimulatedWorld], Awaitable[None]]) -> None:
    async def walk() -> None:
        await work(SimulatedWorld(seed))

    loop = SimulatedLoop(SimulatedClock())
    try:
        loop.run(walk())
        assert loop.unhandled == []
    finally:
        loop.abandon()


class TestSimulatedNetwork(PeersConformance):
    def walk(self, work: Callable[[World], Awaitable[None]]) -> None:
        for seed in SEEDS:
            simulated(seed, work)


def test_the_same_seed_takes_the_same_steps() -> None:
    def story(seed: int) -> list[object]:
        told: list[object] = []

        async def work(world: SimulatedWorld) -> None:
            pair = await followed(world)
            for offset in range(50):
                pair.leader.send(frames(1, offset), [b"x"])
                await asyncio.sleep(0.0003)
            world.network.reset(A, B)
            await until(lambda: pair.mine.ended_count and pair.theirs.ended_count)
            told.extend((len(pair.mine.messages), asyncio.get_running_loop().time()))

        simulated(seed, work)
        return told

    assert story(3) == story(3)
    assert len({str(story(seed)) for seed in range(10)}) > 5


def test_a_reset_loses_a_tail_and_the_rest_may_arrive_after_a_new_connection_is_up() -> None:
    lost, late = set(), 0

    async def work(world: SimulatedWorld) -> None:
        nonlocal late
        pair = await followed(world)
        for offset in range(20):
            pair.leader.send(frames(1, offset), [b"x"])
        world.network.reset(A, B)
        await until(lambda: pair.theirs.ended_count or pair.mine.ended_count)
        if not pair.theirs.ended_count:
            again = await world.peers[A].link(B, pair.link.pace)
            late += not again.is_lost and not pair.theirs.ended_count
        await until(lambda: pair.theirs.ended_count and pair.mine.ended_count)
        assert pair.mine.messages == [frames(1, offset) for offset in range(len(pair.mine.messages))]
        lost.add(20 - len(pair.mine.messages))

    for seed in range(40):
        simulated(seed, work)
    assert len(lost) > 5
    assert late > 0


@pytest.mark.parametrize("seed", SEEDS)
def test_a_cut_that_lasts_ends_connections_and_a_short_one_only_delays(seed: int) -> None:
    async def work(world: SimulatedWorld) -> None:
        pair = await followed(world)
        world.network.cut(B, A)
        pair.leader.send(frames(1, 0), [b"x"])
        await asyncio.sleep(1)
        assert pair.mine.messages == []
        world.network.heal(B, A)
        await until(lambda: pair.mine.messages)
        world.network.cut(B, A)
        await until(lambda: pair.mine.ended_count and pair.theirs.ended_count)
        assert (B, Loss.SILENT) in world.users[A].losses
        call = asyncio.ensure_future(world.peers[A].call(B, COMMAND, wait_ms=100))
        await asyncio.wait({call})
        assert call.exception() is not None
        world.network.heal_all()
        await followed(world, 2)
        assert (await world.peers[A].call(C, COMMAND, wait_ms=5_000)).reply == "done"

    simulated(seed, work)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("is_power_cut", [False, True])
def test_a_node_that_dies_hears_nothing_and_its_neighbours_learn_of_it(seed: int, is_power_cut: bool) -> None:
    async def work(world: SimulatedWorld) -> None:
        pair = await followed(world)
        world.users[B].answers = never
        call = asyncio.ensure_future(world.peers[A].call(B, COMMAND, wait_ms=60_000))
        await until(lambda: world.users[B].asked)
        died_s = asyncio.get_running_loop().time()
        world.network.crash(B, is_power_cut=is_power_cut)
        with pytest.raises(AnswerLost):
            await call
        assert (asyncio.get_running_loop().time() - died_s > 1.9) is is_power_cut
        assert (pair.mine.ended_count, pair.theirs.ended_count) == (1, 0)
        await until(lambda: (B, Loss.REFUSED) in world.users[A].losses)
        reborn, user = SimulatedPeers(world.network), User()
        later = world.neighbours[B]._replace(incarnation=Incarnation(99))
        world.neighbours[B] = later
        reborn.meet(world.neighbours)
        reborn.serve(Peer(B, Incarnation(99)), user)
        for node in (A, C):
            world.peers[node].meet(world.neighbours)
        link = await world.peers[A].link(B, pair.link.pace)
        link.follow(follow(2), End())
        await until(lambda: user.follows)
        assert world.users[B].follows == [follow(1)]

    simulated(seed, work)


def test_both_ends_learn_of_a_loss_also_when_the_way_between_them_is_cut_just_then() -> None:
    async def work(world: SimulatedWorld) -> None:
        pair = await followed(world)
        world.network.cut(A, B)
        await asyncio.sleep(1.5)
        world.network.cut(B, A)
        await until(lambda: pair.theirs.ended_count)
        world.network.heal_all()

        await until(lambda: pair.mine.ended_count)

    simulated(1, work)
