"""Frames from a copy in the reader's rack, as far as it knows them to count; all else from the leader."""

import asyncio
from unittest.mock import patch

from goqueue.broker.forwarding.at_home import at_home
from goqueue.broker.read import frames
from goqueue.broker.read.frames import read_frames
from goqueue.model.cluster import NodeId
from goqueue.model.commands import BatchesRead, ReadFrames
from goqueue.model.errors import Corrupt
from goqueue.model.ids import TopicPartition
from goqueue.model.settings import MiB
from goqueue.records.batch import open_batch
from goqueue.records.frame import FRAME_BYTES, frame_borders
from tests.unit.broker.moving.town import ORDERS, A, B, C, Town, live

RACKS = {A: "north", B: "south", C: "east"}
SOURCE = TopicPartition(ORDERS, 0)


async def begin(town: Town) -> tuple[NodeId, NodeId]:
    """Three racks with a copy each; who leads, and another."""
    town.racks = RACKS
    await town.start(A, B, C)
    await town.create(A, copies=3)
    leader = town.record(A).leader
    assert leader is not None
    await town.until(lambda: len(town.record(leader).isr) == 3)
    return leader, next(node for node in (A, B, C) if node != leader)


async def read(town: Town, node: NodeId, offset: int, rack: str) -> BatchesRead:
    command = ReadFrames(source=SOURCE, offset=offset, max_bytes=MiB, wait_ms=0, rack=rack)

    async def asked() -> BatchesRead:
        return await at_home(town.broker(node), read_frames, command)

    return await town.at(node, asked())


def values(found: BatchesRead) -> list[bytes]:
    return [
        stored.value or b""
        for piece in found.batches
        for start, end, _ in frame_borders(piece)
        for stored in open_batch(piece[start + FRAME_BYTES : end], 2)
    ]


def served(town: Town, node: NodeId) -> int:
    return town.broker(node).partition(SOURCE).counters.served_bytes


def test_a_copy_in_the_readers_rack_serves_what_it_knows_to_count() -> None:
    async def story(town: Town) -> None:
        leader, near = await begin(town)
        await town.publish([b"one", b"two"])
        await town.until(lambda: town.broker(near).partition(SOURCE).commit_mark == 2)

        found = await read(town, near, 0, RACKS[near])

        assert values(found) == [b"one", b"two"]
        assert served(town, near) > 0 and served(town, leader) == 0

    live(story)


def test_a_reader_of_another_rack_or_of_none_reads_from_the_leader() -> None:
    async def story(town: Town) -> None:
        leader, near = await begin(town)
        await town.publish([b"one"])
        await town.until(lambda: town.broker(near).partition(SOURCE).commit_mark == 1)

        for rack in ("", "elsewhere"):
            assert values(await read(town, near, 0, rack)) == [b"one"]

        assert served(town, near) == 0 and served(town, leader) > 0

    live(story)


def test_what_the_copy_has_not_heard_of_comes_from_the_leader() -> None:
    async def story(town: Town) -> None:
        leader, near = await begin(town)
        await town.publish([b"one"])
        copy = town.broker(near).partition(SOURCE)
        await town.until(lambda: copy.commit_mark == 1)
        with patch.object(copy, "move_mark"):  # the news is late
            await town.publish([b"two"])

            assert copy.commit_mark == 1
            assert values(await read(town, near, 1, RACKS[near])) == [b"two"]

        assert served(town, near) == 0 and served(town, leader) > 0

    live(story)


def test_a_copy_that_is_behind_hands_out_no_more_than_it_knows_to_count() -> None:
    async def story(town: Town) -> None:
        _, near = await begin(town)
        await town.publish([b"one"])
        copy = town.broker(near).partition(SOURCE)
        await town.until(lambda: copy.commit_mark == 1)
        with patch.object(copy, "move_mark"):
            await town.publish([b"two"])

            found = await read(town, near, 0, RACKS[near])

        assert values(found) == [b"one"] and found.end_offset == 1

    live(story)


def test_a_copy_that_cannot_be_read_or_is_out_of_sync_is_passed_over() -> None:
    async def story(town: Town) -> None:
        _, near = await begin(town)
        await town.publish([b"one"])
        copy = town.broker(near).partition(SOURCE)
        await town.until(lambda: copy.commit_mark == 1)
        reading = frames._read_frames

        async def fail_once(*given: object, rack: str) -> BatchesRead:
            if rack:
                raise Corrupt("bytes have gone bad")
            return await reading(*given, rack=rack)  # type: ignore[arg-type]

        with patch.object(frames, "_read_frames", fail_once):
            assert values(await read(town, near, 0, RACKS[near])) == [b"one"]
        assert copy.copies is not None
        machine = copy.copies.machine  # type: ignore[attr-defined]
        with patch.object(machine, "_is_going", False):
            assert values(await read(town, near, 0, RACKS[near])) == [b"one"]
        assert served(town, near) == 0

    live(story)


def test_who_waits_at_the_end_waits_at_the_leader() -> None:
    async def story(town: Town) -> None:
        _, near = await begin(town)
        command = ReadFrames(source=SOURCE, offset=0, max_bytes=MiB, wait_ms=20_000, rack=RACKS[near])

        async def asked() -> BatchesRead:
            return await at_home(town.broker(near), read_frames, command)

        waiting = town.at(near, asked())
        await asyncio.sleep(0.1)
        assert not waiting.done()
        await town.publish([b"late"])

        assert values(await waiting) == [b"late"]

    live(story)
