"""Between nodes: what a message of replication and a call cost on both sides, over a real socket of loopback.

A process leads and answers, this one follows and calls. What followers do with frames (checks, the log) is
not in it.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import NamedTuple, TypeVar
from uuid import UUID

import uvloop

from bench.measured import Row, reported
from goqueue.edge.peer.calls import CallCodec, Shape
from goqueue.edge.peer.config import PeerConfig
from goqueue.edge.peer.door import PeerDoor
from goqueue.model.cluster import Incarnation, NodeId
from goqueue.model.commands import ReadMessages
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.peers import Answered, Loss, Neighbour, Pace, Peer
from goqueue.model.places import Command
from goqueue.model.ports import Buffer, Stream
from goqueue.model.replication import Ack, Follow, Frames, Message
from goqueue.model.settings import GiB, KiB, MiB

T = TypeVar("T")
HERE, THERE = Peer(NodeId("follower"), Incarnation(1)), Peer(NodeId("leader"), Incarnation(2))
COMMAND = ReadMessages(source=TopicPartition(TopicName("orders"), 0))
CALLS = 5_000
ACK_EVERY = 8
"""Frames that are acknowledged together: those that one read of the socket brings."""


class Spent(NamedTuple):
    there_s: float
    here_s: float


def rows() -> list[Row]:
    """One connection; an ack for every eight messages; calls one after the other."""
    found = []
    for size, count in ((16 * KiB, 32_768), (KiB, 100_000), (MiB, 1_024)):
        spent = min((_run(partial(_follow, size=size, count=count))[0] for _ in range(3)), key=sum)
        name = f"frames of {size // KiB} KiB"
        for side, cpu_s in (("leader", spent.there_s), ("follower", spent.here_s)):
            detail = f"{cpu_s / count / size * GiB:.2f} s a GiB"
            found.append(reported(f"peer door, {name}, {side}", cpu_s / count * 1e6, "µs a message", detail))
    spent, p50_s = min((_run(_call) for _ in range(3)), key=lambda told: sum(told[0]))
    caller_us, callee_us = (cpu_s / CALLS * 1e6 for cpu_s in (spent.here_s, spent.there_s))
    detail = f"{caller_us:.1f} µs of the caller, {callee_us:.1f} of the callee"
    found.append(reported("call to another node, CPU of both", caller_us + callee_us, "µs", detail))
    found.append(reported("call to another node, round trip p50", p50_s * 1e6, "µs"))
    return found


class _Follower:
    def __init__(self, count: int) -> None:
        self.stream: Stream
        self.left = count
        self.done = asyncio.get_running_loop().create_future()

    def received(self, message: Message, frames: Buffer) -> None:
        self.left -= 1
        if self.left % ACK_EVERY == 0:
            assert isinstance(message, Frames)
            end = message.end_offset
            self.stream.send(Ack(session=message.session, written_offset=end, durable_offset=end))
        if not self.left:
            self.done.set_result(None)

    def has_room_again(self) -> None:
        raise AssertionError

    def ended(self) -> None:
        assert not self.left


async def _follow(door: PeerDoor, size: int, count: int) -> None:
    follower = _Follower(count)
    link = await door.link(THERE.node, Pace.LIVE)
    # What is to be sent is told by fields that nobody looks at here.
    follow = Follow(
        session=size,
        topic_id=UUID(int=1),
        partition=count,
        epoch=0,
        start_offset=0,
        end_offset=0,
        durable_offset=0,
        last_epoch=-1,
    )
    follower.stream = link.follow(follow, follower)
    await follower.done


async def _call(door: PeerDoor) -> float:
    taken = []
    for _ in range(CALLS):
        began = time.perf_counter()
        await door.call(THERE.node, COMMAND, wait_ms=10_000)
        taken.append(time.perf_counter() - began)
    return sorted(taken)[CALLS // 2]


class _Leader:
    """Sends as many frames as the follower asks for, as fast as they are taken."""

    def __init__(self, stream: Stream, message: Follow) -> None:
        self._stream = stream
        self._frames = [bytes(message.session)]
        self._left = message.partition
        self._offset = 0
        asyncio.get_running_loop().call_soon(self.has_room_again)

    def has_room_again(self) -> None:
        session, stream = self._stream.session, self._stream
        for _ in range(64):
            if not self._left or not stream.has_room:
                return
            self._left -= 1
            self._offset += 1
            stream.send(
                Frames(
                    session=session,
                    base_offset=self._offset - 1,
                    end_offset=self._offset,
                    commit_mark=0,
                    start_offset=0,
                ),
                self._frames,
            )
        asyncio.get_running_loop().call_soon(self.has_room_again)

    def received(self, message: Message, frames: Buffer) -> None:
        pass

    def ended(self) -> None:
        pass


class _User:
    def followed(self, stream: Stream, message: Follow) -> _Leader:
        return _Leader(stream, message)

    async def answer(self, caller: Peer, command: Command, tail: Buffer, *, wait_ms: int) -> Answered:
        return Answered("done")

    def lost(self, node: NodeId, loss: Loss) -> None:
        pass


def _run(work: Callable[[PeerDoor], Coroutine[object, object, T]]) -> tuple[Spent, T]:
    """CPU of both processes for a piece of work of the one here, and what it tells."""
    context = get_context("spawn")
    pipe, other_end = context.Pipe()
    leader = context.Process(target=_lead, args=(other_end,))
    leader.start()

    async def follow() -> tuple[Spent, T]:
        door, port = await _opened(HERE)
        pipe.send(port)
        _meet(door, HERE, THERE, pipe.recv())
        await door.link(THERE.node, Pace.LIVE)
        before = _cpu_s(pipe)
        told = await work(door)
        after = _cpu_s(pipe)
        await door.stop()
        return Spent(after.there_s - before.there_s, after.here_s - before.here_s), told

    try:
        return uvloop.run(follow())
    finally:
        pipe.send(False)
        leader.join()


def _cpu_s(pipe: "Connection[object, object]") -> Spent:
    pipe.send(True)
    there_s = pipe.recv()
    assert isinstance(there_s, float)
    return Spent(there_s, time.process_time())


def _lead(pipe: "Connection[object, object]") -> None:
    async def lead() -> None:
        door, port = await _opened(THERE)
        pipe.send(port)
        _meet(door, THERE, HERE, pipe.recv())
        asked, loop = asyncio.Event(), asyncio.get_running_loop()
        loop.add_reader(pipe.fileno(), asked.set)
        while True:
            await asked.wait()
            asked.clear()
            if not pipe.recv():
                break
            pipe.send(time.process_time())
        await door.stop()

    uvloop.run(lead())


async def _opened(me: Peer) -> tuple[PeerDoor, int]:
    door = PeerDoor(PeerConfig(cluster_id="bench"), CallCodec([Shape(ReadMessages, str)]))
    return door, await door.start("127.0.0.1", 0)


def _meet(door: PeerDoor, me: Peer, other: Peer, port: object) -> None:
    assert isinstance(port, int)
    door.meet({other.node: Neighbour(other.incarnation, "127.0.0.1", port)})
    door.serve(me, _User())
