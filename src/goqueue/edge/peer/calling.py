"""Calls under way on one link: those that were made here, and those that are answered here.

A call is made over a link that this node has dialled, and answered over one that it was. A caller that no
longer waits says so, and the work for it ends; so it does when the link is lost.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence

from goqueue.edge.limited_log import LimitedLog
from goqueue.edge.peer.calls import Asked, CallCodec
from goqueue.edge.peer.wire import Kind, Malformed, head_of
from goqueue.model.errors import AnswerLost, CallFailed, GoQueueError, NodeBusy
from goqueue.model.peers import Answered, Peer
from goqueue.model.places import Command
from goqueue.model.ports import Buffer, PeerUser
from goqueue.model.settings import MiB

ANSWERS_MAX = 4_096
"""Calls of one link that are being answered. Whoever asks for more is told to come later."""
ANSWERS_BYTES_MAX = 256 * MiB
"""The same by what came with them: two of the largest."""
Say = Callable[[Sequence[Buffer]], None]


class Asking:
    """Calls that this node has made over one link."""

    def __init__(self, codec: CallCodec, peer: Peer, say: Say) -> None:
        self._codec = codec
        self._peer = peer
        self._say = say
        self._loop = asyncio.get_running_loop()
        self._newest = 0
        self._under_way: dict[int, tuple[asyncio.Future[Answered], type]] = {}

    @property
    def count(self) -> int:
        return len(self._under_way)

    async def call(self, command: Command, wait_ms: int, tail: Sequence[Buffer]) -> Answered:
        number = self._newest + 1
        buffers = self._codec.call(number, command, wait_ms, tail)
        self._newest = number
        future: asyncio.Future[Answered] = self._loop.create_future()
        self._under_way[number] = future, type(command)
        timer = self._loop.call_later(wait_ms / 1_000, self._time_out, number, wait_ms)
        self._say(buffers)
        try:
            return await future
        finally:
            timer.cancel()
            # Whoever called was cancelled: nobody wants to know any more.
            if self._under_way.pop(number, None) is not None:
                self._say([head_of(Kind.CANCEL, number, 0)])

    def replied(self, number: int, body: memoryview) -> None:
        """An answer came. Its bytes are kept in the reply."""
        if (asked := self._asked(number)) is not None:
            future, command = asked
            try:
                future.set_result(self._codec.answered(command, body))
            except GoQueueError as error:
                future.set_exception(error)

    def refused(self, number: int, body: memoryview) -> None:
        """An error came."""
        error = self._codec.raised(body)
        if (asked := self._asked(number)) is not None:
            asked[0].set_exception(error)

    def lose(self) -> None:
        """The link is lost: nothing comes any more."""
        under_way, self._under_way = self._under_way, {}
        for future, _ in under_way.values():
            if not future.done():
                future.set_exception(AnswerLost(self._peer.node, "the connection was lost"))

    def _asked(self, number: int) -> tuple[asyncio.Future[Answered], type] | None:
        """The call that an answer is for; None: nobody waits for it any more."""
        if number > self._newest:
            raise Malformed(f"an answer to call {number}, which was not made")
        asked = self._under_way.pop(number, None)
        return None if asked is None or asked[0].done() else asked

    def _time_out(self, number: int, wait_ms: int) -> None:
        if (asked := self._asked(number)) is not None:
            asked[0].set_exception(AnswerLost(self._peer.node, f"no answer came within {wait_ms} ms"))
            self._say([head_of(Kind.CANCEL, number, 0)])


class Answering:
    """Calls that another node has made over one link."""

    def __init__(
        self, codec: CallCodec, peer: Peer, me: Peer, say: Say, user: PeerUser, log: LimitedLog
    ) -> None:
        self._codec = codec
        self._peer = peer
        self._me = me
        self._say = say
        self._user = user
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._under_way: dict[int, asyncio.Task[None]] = {}
        self._held_bytes = 0

    @property
    def count(self) -> int:
        return len(self._under_way)

    def asked(self, number: int, body: memoryview) -> None:
        """A call came. Its bytes are kept in the command."""
        if number in self._under_way:
            raise Malformed(f"call {number} came twice")
        if len(self._under_way) >= ANSWERS_MAX or self._held_bytes + len(body) > ANSWERS_BYTES_MAX:
            self._say(self._codec.error(number, NodeBusy(self._me.node)))
            return
        try:
            asked = self._codec.asked(body)
        except GoQueueError as error:
            self._say(self._codec.error(number, error))
            return
        self._held_bytes += len(body)
        self._under_way[number] = self._loop.create_task(self._answer(number, asked, len(body)))

    def cancelled(self, number: int) -> None:
        """Nobody waits for the answer any more."""
        if (task := self._under_way.get(number)) is not None:
            task.cancel()

    def lose(self) -> None:
        """The link is lost: nobody hears the answers."""
        for task in self._under_way.values():
            task.cancel()

    async def _answer(self, number: int, asked: Asked, size: int) -> None:
        try:
            self._say(await self._answered(number, asked))
        finally:
            self._held_bytes -= size
            del self._under_way[number]

    async def _answered(self, number: int, asked: Asked) -> list[Buffer]:
        """What goes back, whatever comes of it."""
        command, tail, wait_ms = asked
        try:
            answered = await self._user.answer(self._peer, command, tail, wait_ms=wait_ms)
            return self._codec.reply(number, type(command), answered)
        except GoQueueError as error:
            return self._codec.error(number, error)
        except Exception as error:
            name = type(command).__name__
            fields = {"node": self._peer.node, "command": name}
            self._log.write(logging.ERROR, "peer_call_failed", fields, error=error)
            return self._codec.error(number, CallFailed(f"node {self._me.node} has failed at {name}"))
