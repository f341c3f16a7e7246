"""Bytes that go bad on one node's disk are mended from another's, while everybody goes on."""

from goqueue.broker.health.scrub import scrub_all
from goqueue.broker.replication.replicated import Replicated
from goqueue.broker.topics.verbs import create_topic
from goqueue.model.cluster import NodeId
from goqueue.model.settings import KiB
from goqueue.model.topics import CreateTopic
from tests.unit.broker.moving.town import FOLDER, ORDERS, A, B, Town, live

COUNT = 12


async def two(town: Town, *, copies: int = 2) -> tuple[NodeId, ...]:
    """A partition with sealed segments; its leader first."""
    await town.start(A, B)
    made = CreateTopic(
        name=ORDERS, partitions=1, replication=copies, settings={"segment.bytes": str(4 * KiB)}
    )
    await town.at(A, create_topic(town.broker(A), made))
    await town.until(lambda: all(ORDERS in town.broker(node).topics for node in (A, B)))
    await town.publish([b"%04d" % number * 250 for number in range(COUNT)])
    return town.record(A).replicas


def spoil(town: Town, node: NodeId) -> None:
    """Turn a bit in the first segment of a node's copy."""
    name = min(name for name in town.disks[node].list(FOLDER) if name.endswith(".log"))
    town.disks[node].flip_bit(f"{FOLDER}/{name}", 1_500)


def frames(town: Town, node: NodeId) -> bytes:
    names = sorted(name for name in town.disks[node].list(FOLDER) if name.endswith(".log"))
    return b"".join(bytes(town.disks[node].stored(f"{FOLDER}/{name}").content) for name in names)


def replica(town: Town, node: NodeId) -> Replicated:
    copies = town.broker(node).topics[ORDERS].partitions[0].copies
    assert isinstance(copies, Replicated)
    return copies


def test_a_follower_drops_its_bad_copy_and_makes_another() -> None:
    async def story(town: Town) -> None:
        leader, follower = await two(town)
        whole = frames(town, leader)
        spoil(town, follower)
        assert frames(town, follower) != whole

        await town.at(follower, scrub_all(town.broker(follower)))

        await town.until(lambda: town.record(leader).isr == (leader,))
        await town.until(lambda: set(town.record(leader).isr) == {leader, follower})
        assert frames(town, follower) == whole
        assert town.record(leader).leader == leader, "it went on meanwhile"
        await town.at(follower, scrub_all(town.broker(follower)))
        assert town.broker(follower).health.scrub.bad_frames == 0

    live(story)


def test_a_leader_resigns_first() -> None:
    async def story(town: Town) -> None:
        leader, follower = await two(town)
        whole = frames(town, follower)
        spoil(town, leader)

        await town.at(leader, scrub_all(town.broker(leader)))

        await town.until(lambda: town.record(follower).leader == follower)
        await town.until(lambda: frames(town, leader) == whole)
        await town.until(lambda: set(town.record(follower).isr) == {leader, follower})
        assert await town.publish([b"next"]) == [COUNT]

    live(story)


def test_the_only_copy_is_kept_whatever_it_lacks() -> None:
    async def story(town: Town) -> None:
        [leader] = await two(town, copies=1)
        spoil(town, leader)
        before = frames(town, leader)

        await town.at(leader, scrub_all(town.broker(leader)))
        await town.clock_moves()

        assert town.broker(leader).health.scrub.bad_frames == 1
        assert frames(town, leader) == before
        assert replica(town, leader).is_leader

    live(story)
