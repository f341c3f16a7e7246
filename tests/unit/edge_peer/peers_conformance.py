"""What every network between nodes must do, whatever it is made of: a suite that each of them runs.

A test module makes a subclass of `PeersConformance` with its own `walk`, in a world of three nodes.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar
from uuid import UUID

import pytest

from goqueue.model.cluster import Incarnation, NodeId
from goqueue.model.commands import ReadMessages
from goqueue.model.errors import (
    AnswerLost,
    CallFailed,
    GoQueueError,
    NodeUnreachable,
    OffsetOutOfRange,
)
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.peers import (
    LINK_UNSENT_BYTES_MAX,
    SESSION_UNSENT_BYTES_MAX,
    Answered,
    Loss,
    Neighbour,
    Pace,
    Peer,
)
from goqueue.model.places import Command
from goqueue.model.ports import Buffer, Link, Peers, Stream
from goqueue.model.replication import Ack, Answer, Follow, Following, Frames, Message
from goqueue.model.settings import KiB, MiB

T = TypeVar("T")
A, B, C = NodeId("a"), NodeId("b"), NodeId("c")
NODES = (A, B, C)
COMMAND = ReadMessages(source=TopicPartition(TopicName("orders"), 0))
PATIENCE_S = 20.0


class End:
    """Uses one end of a session, and remembers."""

    def __init__(self) -> None:
        self.stream: Stream | None = None
        self.messages: list[Message] = []
        self.frames: list[bytes] = []
        self.ended_count = 0
        self.room_count = 0

    def received(self, message: Message, frames: Buffer) -> None:
        assert not self.ended_count, "nothing is received behind the end"
        self.messages.append(message)
        self.frames.append(bytes(frames))

    def has_room_again(self) -> None:
        self.room_count += 1

    def ended(self) -> None:
        self.ended_count += 1


@dataclass(frozen=True)
class Asked:
    caller: Peer
    command: Command
    tail: bytes
    wait_ms: int


class User:
    """A node that is followed and called."""

    def __init__(self) -> None:
        self.followers: list[End] = []
        self.follows: list[Follow] = []
        self.takes_followers = True
        self.asked: list[Asked] = []
        self.answers: Callable[[], Awaitable[Answered]] = self._at_once
        self.given_up = 0
        self.losses: list[tuple[NodeId, Loss]] = []

    def followed(self, stream: Stream, message: Follow) -> End | None:
        self.follows.append(message)
        if not self.takes_followers:
            return None
        end = End()
        end.stream = stream
        self.followers.append(end)
        return end

    async def answer(self, caller: Peer, command: Command, tail: Buffer, *, wait_ms: int) -> Answered:
        self.asked.append(Asked(caller, command, bytes(tail), wait_ms))
        try:
            return await self.answers()
        except asyncio.CancelledError:
            self.given_up += 1
            raise

    def lost(self, node: NodeId, loss: Loss) -> None:
        self.losses.append((node, loss))

    async def _at_once(self) -> Answered:
        return Answered("done")


class World(Protocol):
    """Three nodes, and what can happen to their network."""

    peers: Mapping[NodeId, Peers]
    users: Mapping[NodeId, User]
    neighbours: dict[NodeId, Neighbour]

    def sever(self, one: NodeId, other: NodeId) -> None:
        """End all connections between two nodes, with what is under way lost. They may be made anew."""

    def stop_reading(self, node: NodeId) -> None:
        """A node takes nothing more from anybody."""

    def read_on(self, node: NodeId) -> None: ...


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(0.001)


def follow(session: int, partition: int = 0) -> Follow:
    return Follow(
        session=session,
        topic_id=UUID(int=7),
        partition=partition,
        epoch=3,
        start_offset=0,
        end_offset=10,
        durable_offset=9,
        last_epoch=2,
    )


def frames(session: int, offset: int) -> Frames:
    return Frames(
        session=session, base_offset=offset, end_offset=offset + 1, commit_mark=offset, start_offset=0
    )


def news(session: int) -> Frames:
    """No frames, only that a mark has moved."""
    return Frames(session=session, base_offset=5, end_offset=5, commit_mark=5, start_offset=0)


def ack(session: int) -> Ack:
    return Ack(session=session, written_offset=5, durable_offset=4)


async def never() -> Answered:
    await asyncio.get_running_loop().create_future()
    raise AssertionError


class Pair:
    """A session from A to B, both ends."""

    def __init__(self, link: Link, follower: Stream, mine: End, leader: Stream, theirs: End) -> None:
        self.link = link
        self.follower, self.mine = follower, mine
        self.leader, self.theirs = leader, theirs


async def followed(world: World, session: int = 1, pace: Pace = Pace.LIVE) -> Pair:
    link = await world.peers[A].link(B, pace)
    mine = End()
    count = len(world.users[B].followers)
    follower = link.follow(follow(session), mine)
    await until(lambda: len(world.users[B].followers) > count)
    theirs = world.users[B].followers[-1]
    assert theirs.stream is not None
    return Pair(link, follower, mine, theirs.stream, theirs)


class PeersConformance:
    def walk(self, work: Callable[[World], Awaitable[None]]) -> None:
        """Do something in a world of three nodes that know each other."""
        raise NotImplementedError

    def test_a_session_carries_messages_both_ways_in_order(self) -> None:
        async def work(world: World) -> None:
            pair = await followed(world, 5)
            assert world.users[B].follows == [follow(5)]
            assert pair.leader.peer == Peer(A, world.neighbours[A].incarnation)
            assert pair.follower.peer == pair.link.peer == Peer(B, world.neighbours[B].incarnation)
            assert (pair.leader.session, pair.follower.session, pair.link.pace) == (5, 5, Pace.LIVE)
            go = Following(session=5, answer=Answer.GO, epoch=3)
            sent: list[Message] = [go, *(frames(5, offset) for offset in range(200))]
            pair.leader.send(go)
            for offset in range(200):
                pair.leader.send(frames(5, offset), [b"frame", bytes([offset]) * (offset * 10)])
            acks: list[Message] = [Ack(session=5, written_offset=n, durable_offset=0) for n in range(50)]
            for ack in acks:
                pair.follower.send(ack)
            await until(lambda: len(pair.mine.messages) == 201 and len(pair.theirs.messages) == 50)
            assert pair.mine.messages == sent
            assert pair.mine.frames[1:] == [b"frame" + bytes([n]) * (n * 10) for n in range(200)]
            assert pair.theirs.messages == acks

        self.walk(work)

    def test_sessions_of_one_connection_do_not_mix(self) -> None:
        async def work(world: World) -> None:
            pairs = [await followed(world, session) for session in (3, 4, 9)]
            assert len({id(pair.link) for pair in pairs}) == 1
            for offset in range(30):
                for pair in pairs:
                    pair.leader.send(frames(pair.leader.session, offset), [b"x" * 1000])
            await until(lambda: all(len(pair.mine.messages) == 30 for pair in pairs))
            for pair in pairs:
                session = pair.leader.session
                assert pair.mine.messages == [frames(session, offset) for offset in range(30)]

        self.walk(work)

    def test_who_has_far_to_go_has_a_connection_of_its_own(self) -> None:
        async def work(world: World) -> None:
            live = await followed(world, 1)
            far = await followed(world, 2, Pace.CATCH_UP)
            assert far.link is not live.link
            assert far.link.pace is Pace.CATCH_UP
            far.leader.send(frames(2, 0), [b"x" * MiB])
            live.leader.send(frames(1, 0), [b"y"])
            await until(lambda: far.mine.messages and live.mine.messages)
            assert far.mine.frames == [b"x" * MiB]

        self.walk(work)

    @pytest.mark.parametrize("side", ["follower", "leader"])
    def test_a_session_that_one_side_closes_is_over_for_the_other(self, side: str) -> None:
        async def work(world: World) -> None:
            pair = await followed(world)
            ends: list[tuple[Stream, End, Message]]
            ends = [(pair.follower, pair.mine, ack(1)), (pair.leader, pair.theirs, news(1))]
            if side == "leader":
                ends.reverse()
            (closing, closes, said), (other, told, late) = ends
            closing.send(said)
            await until(lambda: told.messages)
            closing.close()
            assert closing.is_over
            closing.close()
            other.send(late)
            await until(lambda: told.ended_count)
            assert other.is_over
            assert not other.has_room
            other.send(late)
            again = await followed(world, 2)  # the connection stands
            assert again.link is pair.link
            assert (closes.ended_count, told.ended_count, closes.messages) == (0, 1, [])

        self.walk(work)

    def test_a_follower_that_nobody_takes_is_told(self) -> None:
        async def work(world: World) -> None:
            world.users[B].takes_followers = False
            end = End()
            stream = (await world.peers[A].link(B, Pace.LIVE)).follow(follow(1), end)
            await until(lambda: end.ended_count)
            assert stream.is_over

        self.walk(work)

    def test_a_lost_connection_ends_its_sessions_once_and_another_is_made(self) -> None:
        async def work(world: World) -> None:
            pair = await followed(world)
            world.sever(A, B)
            await until(lambda: pair.mine.ended_count and pair.theirs.ended_count)
            assert pair.link.is_lost
            assert pair.follower.is_over
            assert pair.leader.is_over
            with pytest.raises(NodeUnreachable):
                pair.link.follow(follow(2), End())
            pair.leader.send(frames(1, 1), [b"x"])  # to nobody
            again = await followed(world, 2)
            assert again.link is not pair.link
            again.leader.send(frames(2, 1), [b"x"])
            await until(lambda: again.mine.messages)
            assert (pair.mine.ended_count, pair.theirs.ended_count) == (1, 1)
            assert B in [node for node, _ in world.users[A].losses]
            assert A in [node for node, _ in world.users[B].losses]

        self.walk(work)

    def test_what_arrives_before_a_loss_is_a_beginning_of_what_was_sent(self) -> None:
        async def work(world: World) -> None:
            pair = await followed(world)
            sent = 0
            while len(pair.mine.messages) < 20:
                if pair.leader.has_room:
                    pair.leader.send(frames(1, sent), [bytes([sent % 256]) * 50_000])
                    sent += 1
                await asyncio.sleep(0)
                if sent > 20:
                    await asyncio.sleep(0.001)
            for _ in range(20):
                if pair.leader.has_room:
                    pair.leader.send(frames(1, sent), [bytes([sent % 256]) * 50_000])
                    sent += 1
            world.sever(A, B)
            await until(lambda: pair.mine.ended_count and pair.theirs.ended_count)
            count = len(pair.mine.messages)
            assert 20 <= count <= sent
            assert pair.mine.messages == [frames(1, offset) for offset in range(count)]
            assert pair.mine.frames == [bytes([offset % 256]) * 50_000 for offset in range(count)]

        self.walk(work)

    def test_a_session_to_a_node_that_takes_nothing_has_no_room_until_it_does(self) -> None:
        async def work(world: World) -> None:
            pair = await followed(world)
            world.stop_reading(A)
            sent = 0
            while pair.leader.has_room:
                pair.leader.send(frames(1, sent), [bytes([sent % 256]) * (256 * KiB)])
                sent += 1
                await asyncio.sleep(0)
            assert SESSION_UNSENT_BYTES_MAX <= sent * 256 * KiB <= 2 * LINK_UNSENT_BYTES_MAX
            assert pair.theirs.room_count == 0
            pair.leader.send(news(1))
            world.read_on(A)
            await until(lambda: pair.theirs.room_count and len(pair.mine.messages) == sent + 1)
            assert pair.leader.has_room
            assert pair.theirs.room_count == 1
            assert pair.mine.messages[:-1] == [frames(1, offset) for offset in range(sent)]
            assert {len(piece) for piece in pair.mine.frames[:-1]} == {256 * KiB}

        self.walk(work)

    def test_what_has_not_gone_out_of_a_closed_session_is_dropped_and_others_get_its_room(self) -> None:
        async def work(world: World) -> None:
            greedy, modest = await followed(world, 1), await followed(world, 2)
            world.stop_reading(A)
            while greedy.leader.has_room:
                greedy.leader.send(frames(1, 0), [bytes(256 * KiB)])
                await asyncio.sleep(0)
            assert modest.leader.has_room
            modest.leader.send(frames(2, 0), [b"x"])
            greedy.leader.close()
            world.read_on(A)
            await until(lambda: modest.mine.messages and greedy.mine.ended_count)
            assert len(greedy.mine.messages) * 256 * KiB < 2 * LINK_UNSENT_BYTES_MAX
            assert greedy.theirs.room_count == 0

        self.walk(work)

    def test_a_call_brings_what_the_other_node_answers(self) -> None:
        async def work(world: World) -> None:
            async def answers() -> Answered:
                await asyncio.sleep(0)
                return Answered("found", [b"raw ", b"bytes" * 10_000])

            world.users[B].answers = answers
            answered = await world.peers[A].call(B, COMMAND, wait_ms=5_000, tail=[b"ta", b"il"])
            assert answered.reply == "found"
            assert b"".join(answered.tail) == b"raw " + b"bytes" * 10_000
            [asked] = world.users[B].asked
            assert (asked.caller.node, asked.command, asked.tail) == (A, COMMAND, b"tail")
            assert 0 < asked.wait_ms <= 5_000

        self.walk(work)

    def test_many_calls_are_under_way_at_once_and_each_has_its_own_answer(self) -> None:
        async def work(world: World) -> None:
            numbers = iter(range(100))
            gate = asyncio.Event()

            async def answers() -> Answered:
                number = next(numbers)
                await gate.wait()
                return Answered(str(number), [world.users[B].asked[number].tail])

            world.users[B].answers = answers
            calls = [
                asyncio.ensure_future(world.peers[A].call(B, COMMAND, wait_ms=5_000, tail=[b"%d" % n]))
                for n in range(100)
            ]
            await until(lambda: len(world.users[B].asked) == 100)
            gate.set()
            answered = await asyncio.gather(*calls)
            assert [b"".join(answer.tail) for answer in answered] == [b"%d" % n for n in range(100)]

        self.walk(work)

    def test_an_error_of_the_house_is_the_same_error_here(self) -> None:
        async def work(world: World) -> None:
            async def answers() -> Answered:
                raise OffsetOutOfRange(9, start_offset=1, end_offset=4)

            world.users[B].answers = answers
            with pytest.raises(OffsetOutOfRange, match=r"9 is outside 1\.\.4") as raised:
                await world.peers[A].call(B, COMMAND, wait_ms=5_000)
            assert (raised.value.offset, raised.value.end_offset) == (9, 4)

        self.walk(work)

    def test_a_bug_there_is_a_failed_call_here(self) -> None:
        async def work(world: World) -> None:
            async def answers() -> Answered:
                raise ZeroDivisionError

            world.users[B].answers = answers
            with pytest.raises(CallFailed):
                await world.peers[A].call(B, COMMAND, wait_ms=5_000)
            world.users[B].answers = world.users[A].answers
            await world.peers[A].call(B, COMMAND, wait_ms=5_000)

        self.walk(work)

    def test_a_node_that_nobody_knows_is_not_reached(self) -> None:
        async def work(world: World) -> None:
            with pytest.raises(NodeUnreachable):
                await world.peers[A].call(NodeId("nobody"), COMMAND, wait_ms=5_000)

        self.walk(work)

    def test_a_call_whose_connection_is_lost_may_have_been_done(self) -> None:
        async def work(world: World) -> None:
            world.users[B].answers = never
            call = asyncio.ensure_future(world.peers[A].call(B, COMMAND, wait_ms=60_000))
            await until(lambda: world.users[B].asked)
            world.sever(A, B)
            with pytest.raises(AnswerLost):
                await call
            await until(lambda: world.users[B].given_up)

        self.walk(work)

    def test_a_call_that_takes_too_long_is_given_up_on_both_sides(self) -> None:
        async def work(world: World) -> None:
            await world.peers[A].call(B, COMMAND, wait_ms=5_000)
            world.users[B].answers = never
            with pytest.raises(AnswerLost, match="within 50 ms"):
                await world.peers[A].call(B, COMMAND, wait_ms=50)
            await until(lambda: len(world.users[B].asked) == 2 and world.users[B].given_up)

        self.walk(work)

    def test_a_caller_that_goes_away_ends_the_work_for_it(self) -> None:
        async def work(world: World) -> None:
            world.users[B].answers = never
            call = asyncio.ensure_future(world.peers[A].call(B, COMMAND, wait_ms=60_000))
            await until(lambda: world.users[B].asked)
            call.cancel()
            await until(lambda: world.users[B].given_up)
            with pytest.raises(asyncio.CancelledError):
                await call

        self.walk(work)

    def test_calls_pass_frames_that_wait(self) -> None:
        async def work(world: World) -> None:
            pair = await followed(world)
            world.stop_reading(A)
            while pair.leader.has_room:
                pair.leader.send(frames(1, 0), [bytes(256 * KiB)])
                await asyncio.sleep(0)
            call = asyncio.ensure_future(world.peers[A].call(B, COMMAND, wait_ms=60_000))
            await until(lambda: world.users[B].asked)
            world.read_on(A)
            assert (await call).reply == "done"

        self.walk(work)

    def test_a_node_that_is_not_registered_any_more_is_cut_off(self) -> None:
        async def work(world: World) -> None:
            pair = await followed(world)
            others = {node: place for node, place in world.neighbours.items() if node != A}
            world.peers[B].meet(others)
            await until(lambda: pair.mine.ended_count and pair.theirs.ended_count)
            with pytest.raises(GoQueueError):
                await world.peers[B].call(A, COMMAND, wait_ms=50)
            world.peers[B].meet(world.neighbours)
            await followed(world, 2)

        self.walk(work)

    def test_a_node_that_registers_anew_is_another_peer(self) -> None:
        async def work(world: World) -> None:
            pair = await followed(world)
            before = world.neighbours[A].incarnation
            later = Incarnation(before + 100)
            world.neighbours[A] = world.neighbours[A]._replace(incarnation=later)
            world.peers[A].serve(Peer(A, later), world.users[A])
            await until(lambda: pair.mine.ended_count and pair.theirs.ended_count)
            for node in NODES:
                world.peers[node].meet(world.neighbours)
            again = await followed(world, 2)
            assert again.leader.peer == Peer(A, later)

        self.walk(work)

    def test_an_incarnation_that_is_not_the_registered_one_gets_no_connection(self) -> None:
        async def work(world: World) -> None:
            await followed(world)
            later = world.neighbours[A]._replace(incarnation=Incarnation(world.neighbours[A].incarnation + 1))
            world.peers[B].meet({**world.neighbours, A: later})
            await until(lambda: len([loss for loss in world.users[A].losses if loss[0] == B]) >= 2)
            assert len(world.users[B].followers) == 1
            with pytest.raises(NodeUnreachable):
                await world.peers[A].call(B, COMMAND, wait_ms=1_000)

        self.walk(work)
