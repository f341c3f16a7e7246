"""Replicas of a partition on several nodes: what counts is on all of them, whoever leads, whatever fails."""

import asyncio

import pytest

from goqueue.broker.storage.cutting import Cutter
from goqueue.broker.storage.partition import Partition
from goqueue.model.cluster import NodeId
from goqueue.model.errors import (
    GoQueueError,
    LeadershipLost,
    NodeUnreachable,
    NotEnoughReplicas,
    NotEnoughReplicasAfterAppend,
    NotLeader,
    StorageFull,
)
from goqueue.model.peers import Pace
from goqueue.model.ports import StreamUser
from goqueue.model.replication import Follow
from goqueue.model.settings import KiB
from goqueue.testing.world import network
from goqueue.testing.world.links import End, SimulatedStream
from goqueue.testing.world.store import StoreFaults
from tests.unit.broker.replication.nodes import A, B, C, Village, frames, live, until, values


async def three(village: Village) -> None:
    """Three replicas, all in sync, led by the first."""
    await village.start_all(A, B, C)
    await village.elect(A, isr=[A, B, C])


def test_what_is_published_is_on_every_replica_byte_for_byte() -> None:
    async def story(village: Village) -> None:
        await three(village)
        for number in range(20):
            await village[A].publish(b"%d" % number)

        assert frames(village[A]) == frames(village[B]) == frames(village[C])
        assert all(village[node].partition.log.flushed_offset == 20 for node in (A, B, C))
        await until(lambda: village[B].partition.commit_mark == village[C].partition.commit_mark == 20)
        assert values(village[B]) == [b"%d" % number for number in range(20)]
        assert village[B].partition.log.epochs == [(1, 0)]

    live(story)


def test_nothing_counts_before_all_that_are_in_sync_have_it() -> None:
    async def story(village: Village) -> None:
        await three(village)
        await village[A].publish(b"first")
        village.part(A, C)

        published = asyncio.ensure_future(village[A].publish(b"second"))
        await until(lambda: village[B].partition.log.flushed_offset == 2)
        await asyncio.sleep(0.5)
        assert not published.done()
        assert village[A].partition.commit_mark == 1
        village.network.heal_all()
        await published

        assert village[C].partition.log.flushed_offset == 2

    live(story)


def test_an_append_is_taken_by_the_leader_alone() -> None:
    async def story(village: Village) -> None:
        await three(village)

        with pytest.raises(NotLeader) as refused:
            village[B].append(b"x")

        assert refused.value.leader == A

    live(story)


def test_a_leader_that_dies_is_followed_by_one_that_has_all_that_was_acknowledged() -> None:
    async def story(village: Village) -> None:
        await three(village)
        acknowledged = []
        for number in range(10):
            await village[A].publish(b"%d" % number)
            acknowledged.append(b"%d" % number)
        village[A].append(b"not acknowledged")
        village.stop(A, is_power_cut=True)

        await village.elect(B, isr=[B, C])
        await village[B].publish(b"new")

        assert values(village[B])[:10] == acknowledged
        assert values(village[B])[-1] == b"new"
        assert frames(village[B]) == frames(village[C])

    live(story)


def test_a_tail_that_nobody_else_has_is_cut_when_its_node_comes_back() -> None:
    async def story(village: Village) -> None:
        await three(village)
        await village[A].publish(b"shared")
        village.part(A, B, C)
        for number in range(5):
            village[A].append(b"diverged %d" % number)
        await until(lambda: village[A].partition.log.flushed_offset == 6)
        village.stop(A, is_power_cut=False)
        village.network.heal_all()
        await village.elect(B, isr=[B, C])
        await village[B].publish(b"other")

        await village.start(A)
        await village.alike(A, B, C)
        await village.in_sync(A, B, C)

        await until(lambda: values(village[A]) == [b"shared", b"other"])
        assert village[A].partition.log.epochs == [(1, 0), (2, 1)]

    live(story)


def test_a_replaced_leader_that_is_alive_follows_and_tells_those_who_wait() -> None:
    async def story(village: Village) -> None:
        await three(village)
        await village[A].publish(b"shared")
        village.part(A, B, C)
        waiting = asyncio.ensure_future(village[A].publish(b"lost"))
        await asyncio.sleep(0.05)
        await village.elect(B, isr=[B, C])

        with pytest.raises(LeadershipLost):
            await waiting

        village.network.heal_all()
        await village[B].publish(b"other")
        await village.alike(A, B, C)
        assert village[A].partition.log.last_epoch == 2

    live(story)


def test_too_few_in_sync_refuse_before_the_append_and_behind_it() -> None:
    async def story(village: Village) -> None:
        await village.start_all(A, B, C)
        await village.elect(A, isr=[A, B])
        village.part(A, B, C)
        waiting = asyncio.ensure_future(village[A].publish(b"waits"))
        await asyncio.sleep(0.05)
        record = await village.record()

        village[A].replica.take_record(
            type(record)(
                leader=A,
                epoch=record.epoch,
                replicas=record.replicas,
                isr=(A,),
                elr=(B,),
                incarnation=record.incarnation,
            ),
            10_000,
        )

        with pytest.raises(NotEnoughReplicasAfterAppend):
            await waiting
        with pytest.raises(NotEnoughReplicas):
            await village[A].publish(b"refused")
        assert village[A].partition.log.end_offset == 1
        village[A].append(b"acks=leader is taken, and not shown")
        await until(lambda: village[A].partition.log.flushed_offset == 2)
        assert values(village[A]) == []

    live(story)


def test_a_slow_follower_leaves_and_comes_back() -> None:
    async def story(village: Village) -> None:
        await three(village)
        await village[A].publish(b"0")
        village.part(A, C)
        published = asyncio.ensure_future(village[A].publish(b"1"))

        await village.in_sync(A, B)
        await published
        for number in range(2, 30):
            await village[A].publish(b"%d" % number)
        assert village[C].partition.log.end_offset == 1
        village.network.heal_all()

        await village.in_sync(A, B, C)
        assert frames(village[C]) == frames(village[A])

    live(story)


def test_a_leader_at_rest_is_not_told_of_time_and_still_misses_who_is_gone() -> None:
    async def story(village: Village) -> None:
        await three(village)
        await village[A].publish(b"0")
        await until(lambda: not village[A].replica.needs_time)
        await asyncio.sleep(100)  # far more than a follower may be behind
        assert not village[A].replica.needs_time

        await village[A].publish(b"1")
        assert set((await village.record()).isr) == {A, B, C}
        await until(lambda: not village[A].replica.needs_time)
        village.part(A, C)

        await village.in_sync(A, B)

    live(story)


def test_a_leader_that_reaches_nobody_resigns_where_too_few_would_be_left() -> None:
    async def story(village: Village) -> None:
        await three(village)
        village.part(A, B, C)
        waiting = asyncio.ensure_future(village[A].publish(b"x"))

        with pytest.raises(LeadershipLost):
            await waiting

        await village.unled()
        assert not village[A].replica.is_leader

    live(story)


def test_a_follower_far_behind_catches_up_from_the_disk() -> None:
    async def story(village: Village) -> None:
        await village.start_all(A, B)
        await village.elect(A, isr=[A, B])
        for number in range(60):
            await village[A].publish(b"%d" % number * 2_000, b"more")
        await village.start(C)

        await village.in_sync(A, B, C)

        assert frames(village[C]) == frames(village[A])
        assert village[C].partition.log.segment_count > 1

    live(story)


def test_a_follower_behind_the_start_begins_there() -> None:
    async def story(village: Village) -> None:
        await three(village)
        await village[A].publish(b"0")
        village.stop(C, is_power_cut=True)
        await village.elect(A, isr=[A, B])
        for number in range(1, 60):
            await village[A].publish(b"%d" % number * 2_000)
        village[A].partition.log.move_start(50)
        assert village[A].partition.log.first_offset > 1
        await village.start(C)

        await village.in_sync(A, B, C)

        log = village[C].partition.log
        assert log.first_offset == village[A].partition.log.first_offset
        assert frames(village[C]) == frames(village[A])
        await until(lambda: log.start_offset == 50)
        await until(lambda: values(village[C]) == values(village[A]))

    live(story, Village(segment_bytes=16 * KiB))


def test_a_follower_whose_next_frames_are_given_up_meanwhile_begins_behind_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(network, "SESSION_UNSENT_BYTES_MAX", 64 * KiB)

    async def story(village: Village) -> None:
        await village.start_all(A, B)
        await village.elect(A, isr=[A, B])
        for number in range(60):
            await village[A].publish(b"%d" % number * 2_000)
        await village.start(C)
        await until(lambda: C in village[A].replica.machine.followers)
        village.network.clog(A, C)
        for number in range(60, 100):
            await village[A].publish(b"%d" % number * 2_000)

        village[A].partition.log.move_start(90)
        for number in range(100, 110):
            await village[A].publish(b"%d" % number * 2_000)
        village.network.unclog(A, C)

        await village.in_sync(A, B, C)
        assert village[C].partition.log.first_offset == village[A].partition.log.first_offset > 60
        assert frames(village[C]) == frames(village[A])

    live(story, Village(segment_bytes=16 * KiB))


def test_followers_follow_the_start_of_the_leader() -> None:
    async def story(village: Village) -> None:
        await three(village)
        for number in range(10):
            await village[A].publish(b"%d" % number)

        village[A].partition.move_start(7)
        await asyncio.sleep(0.05)
        assert village[B].partition.log.start_offset == 7, "it is told at once, and not with the next frames"

        await until(
            lambda: village[B].partition.log.start_offset == village[C].partition.log.start_offset == 7
        )
        assert values(village[B]) == [b"7", b"8", b"9"]

    live(story)


def test_a_leader_whose_disk_fails_resigns_and_follows() -> None:
    async def story(village: Village) -> None:
        await three(village)
        await village[A].publish(b"0")
        village[A].disk.faults.fail_syncs(1, under="logs/orders")
        with pytest.raises(GoQueueError):
            await village[A].publish(bytes(100_000))

        await village.unled()
        await village.elect(B, isr=[B, C])
        await village[B].publish(b"1")
        await village.in_sync(A, B, C)

        assert frames(village[A]) == frames(village[B])

    live(story)


def test_a_follower_whose_disk_fails_comes_back() -> None:
    async def story(village: Village) -> None:
        await three(village)
        await village[A].publish(b"0")
        village[B].disk.faults.fail_syncs(1, under="logs/orders")

        await village[A].publish(bytes(100_000))

        assert frames(village[B]) == frames(village[A])

    live(story)


def test_all_lose_power_and_come_back_with_all_that_was_acknowledged() -> None:
    async def story(village: Village) -> None:
        await three(village)
        for number in range(10):
            await village[A].publish(b"%d" % number)
        for node in (A, B, C):
            village.stop(node, is_power_cut=True)
        await village.start_all(A, B, C)

        await village.elect(C, isr=[A, B, C])

        await until(lambda: values(village[C]) == [b"%d" % number for number in range(10)])
        await village[C].publish(b"10")
        await village.alike(A, B, C)

    live(story)


def test_a_leader_that_starts_again_does_not_go_on_in_its_epoch() -> None:
    async def story(village: Village) -> None:
        await three(village)
        await village[A].publish(b"0")
        village.stop(A, is_power_cut=False)
        await village.start(A)
        await asyncio.sleep(1)

        assert not village[A].replica.is_leader
        with pytest.raises(NotLeader):
            village[A].append(b"x")

    live(story)


def test_what_is_not_committed_is_not_shown_by_a_replica_that_starts() -> None:
    async def story(village: Village) -> None:
        await three(village)
        await village[A].publish(b"0")
        village.part(A, B, C)
        village[A].append(b"uncommitted")
        await until(lambda: village[A].partition.log.flushed_offset == 2)
        village.stop(A, is_power_cut=False)
        await village.start(A)

        assert values(village[A]) == []

    live(story)


def test_what_is_written_in_one_turn_goes_out_in_pieces_that_a_follower_takes_without_a_long_hold() -> None:
    async def story(village: Village) -> None:
        await three(village)
        await village[A].publish(b"0")
        sizes = []
        append_frames = village[B].partition.append_frames

        def watched(data: memoryview) -> int:
            sizes.append(len(data))
            return append_frames(data)

        village[B].partition.append_frames = watched  # type: ignore[method-assign]  # its own, for this test
        for _ in range(1_500):
            village[A].append(b"x")
        for _ in range(20):
            village[A].append(bytes(60_000))
        await village[A].publish(b"the last")

        assert frames(village[A]) == frames(village[B]) == frames(village[C])
        assert len(sizes) > 6
        assert max(sizes) < 330_000

    live(story)


def test_a_replica_that_has_lost_bytes_leaves_the_isr_before_it_is_filled_anew() -> None:
    async def story(village: Village) -> None:
        await three(village)
        for number in range(30):
            await village[A].publish(b"%d" % number * 500)
        await village[C].partition.save_recovery_point()
        village.stop(C, is_power_cut=False)
        await village.elect(A, isr=[A, B, C])
        village.disk_of(C).stored("logs/orders/0/00000000000000000000.log").truncate(100)
        damaged = await village.start(C)
        assert damaged.partition.damage is not None

        while damaged.partition.damage is not None:
            last = set((await village.record()).isr)
            await asyncio.sleep(0.01)
        assert C not in last, "nobody believes that it holds everything when it is dropped"
        await village.in_sync(A, B, C)

        assert frames(village[C]) == frames(village[A])
        await village[A].publish(b"the last")
        village.stop(C, is_power_cut=True)
        assert frames(await village.start(C)) == frames(village[A])

    live(story)


def test_a_connection_that_is_lost_when_it_is_to_be_used_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refused: list[int] = []
    follow = End.follow

    def refuse_once(link: End, message: Follow, user: StreamUser) -> SimulatedStream:
        if link.node == C and not refused:
            refused.append(message.session)
            raise NodeUnreachable(link.peer.node)
        return follow(link, message, user)

    monkeypatch.setattr(End, "follow", refuse_once)

    async def story(village: Village) -> None:
        await three(village)
        await village[A].publish(b"0")

        assert refused
        assert frames(village[C]) == frames(village[A])

    live(story)


def test_a_partition_that_has_become_three_copies_needs_two_of_them() -> None:
    async def story(village: Village) -> None:
        await village.start_all(A, B, C)
        await village.elect(A, isr=[A], replicas=[A])
        village[A].replica.take_min_isr(1)
        await village[A].publish(b"alone")
        village.part(A, B, C)

        await village.elect(A, isr=[A], replicas=[A, B, C])

        await until(lambda: not village[A].replica.can_commit)
        with pytest.raises(NotEnoughReplicas):
            await village[A].publish(b"refused")

    live(story)


def test_a_node_that_registers_while_the_store_goes_away_follows_when_it_is_back() -> None:
    async def story(village: Village) -> None:
        await village.start_all(A, B)
        await village.elect(A, isr=[A, B])
        await village.start(C)  # it has not begun to ask for records yet
        village.store.faults = StoreFaults(lost_questions=1.0)
        await asyncio.sleep(1)
        village.store.faults = StoreFaults()

        await village.in_sync(A, B, C)

    live(story)


def test_whoever_a_reassignment_brings_copies_beside_the_others_at_the_rate_that_was_said() -> None:
    async def story(village: Village) -> None:
        await village.start_all(A, B)
        await village.elect(A, isr=[A, B], replicas=(A, B))
        for _ in range(20):
            await village[A].publish(b"x" * 64 * KiB)
        size = village[A].partition.log.size_bytes
        await village.start(C)
        begun_ns = village.clock.monotonic_ns()

        await village.elect(A, isr=[A, B], throttle_bytes_per_s=100 * KiB, adding=(C,))
        await until(lambda: pace_of(village, C) is Pace.CATCH_UP)
        assert pace_of(village, B) is Pace.LIVE
        await village.in_sync(A, B, C)

        took_s = (village.clock.monotonic_ns() - begun_ns) / 1e9
        assert took_s > (size - 512 * KiB) / (100 * KiB), "a piece or two go ahead"
        await until(lambda: pace_of(village, C) is Pace.LIVE)
        await village[A].publish(b"last")
        assert frames(village[A]) == frames(village[C])

    live(story)


def pace_of(village: Village, node: NodeId) -> Pace | None:
    receiver = village[node].replica._receiver
    return None if receiver is None else receiver.pace


def test_a_leader_without_room_on_its_disk_makes_way_for_another() -> None:
    async def story(village: Village) -> None:
        await three(village)
        await village[A].publish(b"first")
        village.disk_of(A).fill_up(after_bytes=0)
        with pytest.raises(StorageFull):
            await village[A].publish(b"x" * KiB)

        await village.unled()

        record = await village.record()
        assert (record.resigned, set(record.isr)) == (A, {A, B, C})
        await village.elect(B, isr=[B, C])
        await village[B].publish(b"second")
        assert values(village[B]) == [b"first", b"second"]

    live(story)


def test_who_stops_waits_for_a_log_that_is_being_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()
    cut_to = Cutter.cut_to

    async def cut_late(cutter: Cutter, partition: Partition, end_offset: int, *, why: GoQueueError) -> None:
        begun.set()
        await go_on.wait()
        await cut_to(cutter, partition, end_offset, why=why)

    monkeypatch.setattr(Cutter, "cut_to", cut_late)

    async def story(village: Village) -> None:
        await three(village)
        await village[A].publish(b"shared")
        village.part(A, B, C)
        waiting = asyncio.ensure_future(village[A].publish(b"lost"))
        await asyncio.sleep(0.05)
        await village.elect(B, isr=[B, C])
        with pytest.raises(LeadershipLost):
            await waiting
        await village[B].publish(b"other")
        village.network.heal_all()
        await begun.wait()

        village[A].replication.close()
        draining = asyncio.ensure_future(village[A].replication.drain())
        await asyncio.sleep(1)
        assert not draining.done()
        go_on.set()
        await draining
        assert village[A].partition.log.end_offset == 1

    live(story)
