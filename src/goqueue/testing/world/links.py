"""Both ends of a simulated connection, with their sessions and calls.

Whatever runs at an end runs in the context of its node; what it has to say to the other end goes its way.
"""

import asyncio
from collections.abc import Sequence
from contextvars import Context
from typing import Protocol

from goqueue.model.errors import AnswerLost, CallFailed, GoQueueError, NodeBusy, NodeUnreachable
from goqueue.model.peers import LINK_UNSENT_BYTES_MAX, Answered, Loss, Pace, Peer
from goqueue.model.places import Command
from goqueue.model.ports import Buffer, PeerUser, StreamUser
from goqueue.model.replication import Follow, Message
from goqueue.testing.world.network import SimulatedNetwork, Turn, Way

MESSAGE_BYTES = 64
"""What a message takes beside its frames or its tail, about."""


class Owner(Protocol):
    """The node that an end belongs to."""

    me: Peer
    user: PeerUser
    context: Context
    network: SimulatedNetwork
    failures: list[Exception]

    def leave(self, end: "End") -> None:
        """The connection is over."""


class SimulatedStream:
    """One end of a session."""

    def __init__(self, end: "End", session: int) -> None:
        self._end = end
        self.peer = end.peer
        self.session = session
        self.is_over = False
        self.user: StreamUser | None = None
        self._turn = Turn(self._has_room_again)

    @property
    def has_room(self) -> bool:
        return not self.is_over and self._end.outward.has_room(self._turn)

    def send(self, message: Message, frames: Sequence[Buffer] = ()) -> None:
        assert message.session == self.session, f"a message of {message.session} in session {self.session}"
        if self.is_over:
            return
        assert not frames or self.has_room, "frames are sent while there is room"
        sent = b"".join(frames)
        other = self._end.other
        if isinstance(message, Follow):
            self._end.outward.put(MESSAGE_BYTES, lambda: other.be_followed(message), self._turn)
        else:
            self._end.outward.put(MESSAGE_BYTES + len(sent), lambda: other.receive(message, sent), self._turn)

    def close(self) -> None:
        if not self.is_over:
            self.end()
            self._end.streams.pop(self.session, None)
            other = self._end.other
            self._end.outward.put(MESSAGE_BYTES, lambda: other.end_session(self.session))

    def end(self) -> None:
        self.is_over = True
        self._end.outward.forget(self._turn)

    def _has_room_again(self) -> None:
        if self.user is not None and not self.is_over:
            self.user.has_room_again()


class End:
    """One end of a connection: the port's `Link` where it was dialled."""

    outward: Way
    other: "End"

    def __init__(self, owner: Owner, peer: Peer, pace: Pace) -> None:
        self.owner = owner
        self.node = owner.me.node
        self.peer = peer
        self.pace = pace
        self.is_lost = False
        self.streams: dict[int, SimulatedStream] = {}
        self._newest_session = -1
        self._calls: dict[int, asyncio.Future[Answered]] = {}
        self._call_count = 0
        self._answers: dict[int, asyncio.Task[None]] = {}

    def follow(self, message: Follow, user: StreamUser) -> SimulatedStream:
        if self.is_lost:
            raise NodeUnreachable(self.peer.node)
        assert message.session > self._newest_session, "sessions of a link have growing numbers"
        self._newest_session = message.session
        stream = self.streams[message.session] = SimulatedStream(self, message.session)
        stream.user = user
        stream.send(message)
        return stream

    async def call(self, command: Command, wait_ms: int, tail: Sequence[Buffer]) -> Answered:
        if self.is_lost:
            raise NodeUnreachable(self.peer.node)
        if self.outward.unsent_bytes >= LINK_UNSENT_BYTES_MAX:
            raise NodeBusy(self.peer.node)
        self._call_count += 1
        number, sent, other = self._call_count, b"".join(tail), self.other
        future: asyncio.Future[Answered] = asyncio.get_running_loop().create_future()
        self._calls[number] = future
        self.outward.put(MESSAGE_BYTES + len(sent), lambda: other.be_asked(number, command, sent, wait_ms))
        try:
            async with asyncio.timeout(wait_ms / 1_000):
                return await future
        except TimeoutError:
            raise AnswerLost(self.peer.node, f"no answer came within {wait_ms} ms") from None
        finally:
            if self._calls.pop(number, None) is not None:
                self.outward.put(MESSAGE_BYTES, lambda: other.stop_answering(number))

    def receive(self, message: Message, frames: bytes) -> None:
        if not self.is_lost and (stream := self.streams.get(message.session)) is not None:
            assert stream.user is not None
            stream.user.received(message, frames)

    def be_followed(self, message: Follow) -> None:
        if self.is_lost:
            return
        stream = self.streams[message.session] = SimulatedStream(self, message.session)
        stream.user = self.owner.user.followed(stream, message)
        if stream.user is None:
            stream.close()

    def end_session(self, session: int) -> None:
        if (stream := self.streams.pop(session, None)) is not None:
            stream.end()
            if stream.user is not None:
                stream.user.ended()

    def be_asked(self, number: int, command: Command, tail: bytes, wait_ms: int) -> None:
        if not self.is_lost:
            answering = self._answer(number, command, tail, wait_ms)
            self._answers[number] = asyncio.get_running_loop().create_task(answering)

    def be_answered(self, number: int, outcome: Answered | GoQueueError) -> None:
        future = self._calls.pop(number, None)
        if future is None or future.done():
            return
        if isinstance(outcome, GoQueueError):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)

    def stop_answering(self, number: int) -> None:
        if (task := self._answers.get(number)) is not None:
            task.cancel()

    def lose(self, loss: Loss) -> None:
        """This end is over. The other learns of it, if it can."""
        if self.is_lost:
            return
        self.is_lost = True
        self.outward.close(self.other_lost)
        self.owner.network.ends.pop(self, None)
        self.owner.leave(self)
        calls, self._calls = self._calls, {}
        for future in calls.values():
            if not future.done():
                future.set_exception(AnswerLost(self.peer.node, "the connection was lost"))
        for task in self._answers.values():
            task.cancel()
        streams, self.streams = self.streams, {}
        for stream in streams.values():
            stream.end()
        self.owner.user.lost(self.peer.node, loss)
        for stream in streams.values():
            if stream.user is not None:
                stream.user.ended()

    def other_lost(self) -> None:
        """Runs at the other node: it hears that the connection is over."""
        self.other.lose(Loss.RESET)

    def give_up_later(self, seconds: float) -> None:
        """Nothing is heard from now on: the connection is lost if that goes on."""
        network = self.owner.network
        cut = network.cut_since(self.peer.node, self.node)

        def give_up() -> None:
            if network.cut_since(self.peer.node, self.node) == cut:
                self.lose(Loss.SILENT)

        asyncio.get_running_loop().call_later(seconds, give_up, context=self.owner.context)

    def die(self, *, is_power_cut: bool) -> None:
        """The node is gone, and with it what was to be told to it."""
        self.is_lost = True
        self.owner.network.ends.pop(self, None)
        self.other.outward.discard()
        if not is_power_cut:
            self.outward.close(self.other_lost)
            return
        self.outward.discard()
        other, faults = self.other, self.owner.network.faults
        asyncio.get_running_loop().call_later(
            faults.silence_ms / 1_000, other.lose, Loss.SILENT, context=other.owner.context
        )

    async def _answer(self, number: int, command: Command, tail: bytes, wait_ms: int) -> None:
        outcome: Answered | GoQueueError
        try:
            answered = await self.owner.user.answer(self.peer, command, tail, wait_ms=wait_ms)
            joined = b"".join(answered.tail)
            outcome = Answered(answered.reply, (joined,) if joined else ())
        except GoQueueError as error:
            outcome = error.with_traceback(None)
        except Exception as error:
            self.owner.failures.append(error)
            outcome = CallFailed(f"node {self.node} has failed at {type(command).__name__}")
        finally:
            del self._answers[number]
        other = self.other
        self.outward.put(MESSAGE_BYTES, lambda: other.be_answered(number, outcome))
