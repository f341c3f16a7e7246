"""Who may join a cluster, as whom, and what a node with a new folder gives up first."""

import asyncio
from collections.abc import Coroutine
from itertools import count
from random import Random
from uuid import UUID

import pytest

from goqueue.broker.cluster.identity import NODE_FILE, read_identity
from goqueue.broker.cluster.joining import leave
from goqueue.core.cluster import values
from goqueue.core.cluster.values import encode, member_key, node_key, part_key
from goqueue.model.cluster import Member, NodeId, NodeRecord, NodeState, PartitionRecord
from goqueue.model.errors import CannotJoin, GoQueueError
from goqueue.testing.world.disk import SimulatedDisk
from goqueue.testing.world.store import SimulatedStore, StoreFaults
from tests.unit.broker.cluster.village import Villager, new_disk, until
from tests.unit.broker.storage.store_conformance import held

A, B, C = NodeId("a"), NodeId("b"), NodeId("c")
TOPIC = UUID(int=7)


def run(work: Coroutine[None, None, None]) -> None:
    asyncio.run(work)


class World:
    def __init__(self, faults: StoreFaults | None = None, seed: int = 1) -> None:
        self.store = SimulatedStore(Random(seed), faults)
        self._ids = count(1)

    def node(self, name: str, disk: SimulatedDisk | None = None) -> Villager:
        return Villager(self.store, name, disk or new_disk(), lambda: f"id-{next(self._ids)}")

    async def records(self) -> dict[str, PartitionRecord]:
        keys = await held(self.store, values.PARTS)
        return {key: values.decode_part(value) for key, value in keys.items()}

    async def members(self) -> dict[str, Member]:
        keys = await held(self.store, values.MEMBERS)
        return {key.removeprefix(values.MEMBERS): values.decode_member(value) for key, value in keys.items()}

    async def alive(self) -> dict[str, NodeRecord]:
        keys = await held(self.store, values.NODES)
        return {key.removeprefix(values.NODES): values.decode_node(value) for key, value in keys.items()}


def test_the_first_node_names_the_cluster_and_the_others_find_it() -> None:
    async def walk() -> None:
        world = World()
        joined = await asyncio.gather(*(world.node(name).join() for name in "abc"))
        assert len({me.cluster_id for me in joined}) == 1
        assert len({me.folder_id for me in joined}) == 3
        assert (await world.alive()).keys() == {"a", "b", "c"}

    run(walk())


def test_a_folder_stays_what_it_is() -> None:
    async def walk() -> None:
        world, disk = World(), new_disk()
        first = await world.node("a", disk).join()
        assert read_identity(disk) == first
        assert await world.node("a", disk).join() == first, "and its earlier session was in nobody's way"

    run(walk())


def test_the_record_of_a_node_has_its_incarnation_once_it_is_ready() -> None:
    async def walk() -> None:
        world = World()
        node = world.node("a")
        await node.join()
        assert (await world.alive())["a"].state is NodeState.STARTING
        await node.membership.tell(NodeState.READY)
        record = (await world.alive())["a"]
        assert (record.state, record.incarnation) == (NodeState.READY, node.membership.incarnation)
        await node.membership.tell(NodeState.DRAINING)
        assert (await world.alive())["a"].state is NodeState.DRAINING
        await node.membership.close()
        assert await world.alive() == {}

    run(walk())


@pytest.mark.parametrize(
    ("file", "told"),
    [
        ('{"cluster_id":"other","node_id":"a","folder_id":"f"}', "of cluster other, and this etcd is of"),
        ('{"cluster_id":"id-1","node_id":"b","folder_id":"f"}', "that of node b, not of a"),
        ('{"cluster_id":', "cannot be read"),
    ],
)
def test_a_folder_of_another_is_refused_and_nothing_is_changed(file: str, told: str) -> None:
    async def walk() -> None:
        world, disk = World(), new_disk()
        await world.node("x").join()
        before = await held(world.store)
        disk.replace(NODE_FILE, file.encode())
        with pytest.raises(CannotJoin, match=told):
            await world.node("a", disk).join()
        assert await held(world.store) == before
        assert disk.read_whole(NODE_FILE) == file.encode()

    run(walk())


def test_a_folder_that_knows_a_cluster_does_not_found_another() -> None:
    async def walk() -> None:
        disk = new_disk()
        await World().node("a", disk).join()
        empty = World()
        with pytest.raises(CannotJoin, match="knows of no cluster"):
            await empty.node("a", disk).join()
        assert await held(empty.store) == {}

    run(walk())


def test_a_folder_of_a_node_that_was_alone_is_refused() -> None:
    async def walk() -> None:
        world, disk = World(), new_disk()
        disk.make_folder("logs/orders/0")
        disk.replace("logs/orders/0/00000000000000000000.log", b"x")
        with pytest.raises(CannotJoin, match="a node that was alone"):
            await world.node("a", disk).join()
        assert await held(world.store) == {}
        assert disk.read_whole(NODE_FILE) is None

    run(walk())


def test_of_two_nodes_with_one_id_the_second_is_refused() -> None:
    async def walk() -> None:
        world = World()
        first = world.node("a")
        await first.join()
        with pytest.raises(CannotJoin, match="another node named a is alive"):
            await world.node("a").join()
        assert not first.membership.session.is_lost
        assert (await world.alive())["a"].folder_id == first.membership.me.folder_id

    run(walk())


def test_a_node_with_another_secret_is_refused_and_is_believed_to_hold_nothing() -> None:
    """Others would not talk to it, and yet count on the copies that are placed on it."""

    async def walk() -> None:
        world = World()
        first = world.node("a")
        await first.join(secret_mark="known")
        for mark in ("guessed", "of no secret"):
            with pytest.raises(CannotJoin, match="node a has another secret; GOQUEUE_CLUSTER_SECRET"):
                await world.node("b").join(secret_mark=mark)
        assert (await world.alive()).keys() == {"a"}
        assert (await world.members()).keys() == {"a"}, "nor is it missed"
        await world.node("c").join(secret_mark="known")
        await world.node("old").join()  # of a version that does not say

    run(walk())


def test_of_two_nodes_that_come_at_once_with_two_secrets_the_first_stays() -> None:
    async def walk() -> None:
        world = World()
        one, other = world.node("a"), world.node("b")
        ends = await asyncio.gather(
            one.join(secret_mark="one"), other.join(secret_mark="two"), return_exceptions=True
        )
        assert sorted(isinstance(end, CannotJoin) for end in ends) == [False, True]
        assert len(await world.alive()) == 1

    run(walk())


def test_a_secret_is_changed_when_all_nodes_are_stopped() -> None:
    async def walk() -> None:
        world, disk = World(), new_disk()
        node = world.node("a", disk)
        await node.join(secret_mark="old")
        await node.membership.close()
        await world.node("a", disk).join(secret_mark="new")
        assert (await world.alive())["a"].secret_mark == "new"

    run(walk())


def test_a_retired_node_does_not_come_back() -> None:
    async def walk() -> None:
        world, disk = World(), new_disk()
        me = await world.node("a", disk).join()
        retired = Member(folder_id=me.folder_id, is_retired=True)
        await world.store.change([], {member_key(A): encode(retired)}, [])
        with pytest.raises(CannotJoin, match="retired"):
            await world.node("a", disk).join()

    run(walk())


def test_a_node_with_a_new_folder_leaves_every_isr_before_it_is_known_by_it() -> None:
    async def walk() -> None:
        world = World()
        node = world.node("a")
        await node.join()
        records = [
            PartitionRecord(leader=A, epoch=3, replicas=(A, B, C), isr=(A, B)),
            PartitionRecord(leader=B, epoch=3, replicas=(B, A), isr=(B,), elr=(A,)),
            PartitionRecord(leader=A, epoch=1, replicas=(A,), isr=(A,)),
            PartitionRecord(leader=B, epoch=1, replicas=(B, C), isr=(B, C)),
        ]
        puts = {part_key(TOPIC, number): encode(record) for number, record in enumerate(records)}
        begun = await world.store.change([], puts, [])
        await node.membership.close()
        again = world.node("a")
        await again.join()
        left = list((await world.records()).values())
        assert [(record.leader, record.isr, record.elr) for record in left] == [
            (None, (B,), ()),
            (B, (B,), ()),
            (None, (), ()),
            (B, (B, C), ()),
        ]
        assert [record.epoch for record in left] == [3, 3, 1, 1]
        revisions = {key: item.revision for key, item in (await world.store.load("")).items.items()}
        assert (
            begun < max(revisions[part_key(TOPIC, number)] for number in range(3)) < revisions[member_key(A)]
        )

    run(walk())


def test_what_was_noted_of_a_folder_goes_with_it() -> None:
    async def walk() -> None:
        world, disk = World(), new_disk()
        node = world.node("a", disk)
        await node.join()
        noted = {"local/a/starts": b"1", "local/a/folder/x": b"1", "local/b/starts": b"1"}
        await world.store.change([], noted, [])
        await world.node("a", disk).join()
        assert (await held(world.store, "local/")).keys() == noted.keys()
        await node.membership.close()
        await world.store.end_session(node_key(A), (await world.store.load("")).items[node_key(A)].revision)
        await world.node("a").join()
        assert (await held(world.store, "local/")).keys() == {"local/b/starts"}

    run(walk())


def test_a_node_leaves_only_what_it_is_told_to() -> None:
    async def walk() -> None:
        world = World()
        record = PartitionRecord(leader=B, epoch=1, replicas=(B, A), isr=(B, A))
        puts = {part_key(TOPIC, number): encode(record) for number in range(2)}
        await world.store.change([], puts, [])
        await leave(world.store, A, {(TOPIC, 1), (TOPIC, 9)})
        assert [record.isr for record in (await world.records()).values()] == [(B, A), (B,)]

    run(walk())


def test_a_session_that_was_lost_is_opened_anew_by_another_incarnation() -> None:
    async def walk() -> None:
        world = World()
        node = world.node("a")
        await node.join()
        first = node.membership.incarnation
        heard: list[int] = []

        async def hear(incarnation: int) -> None:
            heard.append(incarnation)

        node.membership.listeners.append(hear)
        keeping = asyncio.ensure_future(node.membership.keep())
        await node.membership.tell(NodeState.READY)
        await world.store.end_session(node_key(A), (await world.store.load("")).items[node_key(A)].revision)
        await until(lambda: bool(heard))
        assert heard == [node.membership.incarnation]
        assert node.membership.incarnation > first
        record = (await world.alive())["a"]
        assert record.state is NodeState.READY
        keeping.cancel()

    run(walk())


def test_a_node_whose_session_ends_before_it_is_ready_is_ready_with_the_next_one() -> None:
    async def walk() -> None:
        world = World()
        node = world.node("a")
        await node.join()
        await world.store.end_session(node_key(A), (await world.store.load("")).items[node_key(A)].revision)
        keeping = asyncio.ensure_future(node.membership.keep())

        await node.membership.tell(NodeState.READY)

        await until(lambda: not node.membership.session.is_lost)
        assert (await world.alive())["a"].state is NodeState.READY
        keeping.cancel()

    run(walk())


@pytest.mark.parametrize("seed", range(20))
def test_joining_over_a_store_that_loses_questions_and_answers_comes_out_right_or_is_refused(
    seed: int,
) -> None:
    async def walk() -> None:
        world = World(StoreFaults(lost_questions=0.2, lost_answers=0.2), seed)
        disks = {name: new_disk() for name in "abc"}

        async def join(name: str) -> None:
            while True:
                node = world.node(name, disks[name])
                try:
                    await node.join()
                    await node.membership.tell(NodeState.READY)
                    return
                except GoQueueError:
                    continue

        async with asyncio.timeout(10):
            await asyncio.gather(*map(join, disks))
        world.store.faults = StoreFaults()
        alive = await world.alive()
        assert {name: record.state for name, record in alive.items()} == dict.fromkeys("abc", NodeState.READY)
        identities = [read_identity(disk) for disk in disks.values()]
        assert len({me.cluster_id for me in identities if me is not None}) == 1

    run(walk())


def test_a_node_that_kafkas_clients_would_take_for_another_is_refused() -> None:
    async def story() -> None:
        store = SimulatedStore(Random(1))
        await Villager(store, "red-1", new_disk(), lambda: "an id").join()
        newcomer = Villager(store, "blue-1", new_disk(), lambda: "another")
        with pytest.raises(CannotJoin, match="by the number 1, which is that of node red-1"):
            await newcomer.join()
        assert "members/blue-1" not in store.peek("members/")

    asyncio.run(story())
