"""What waits to go out: sessions take turns, have bounds, and a rate where one is set."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from goqueue.edge.peer.outbox import BURST_S, Outbox, Turn
from goqueue.model.peers import LINK_UNSENT_BYTES_MAX, SESSION_UNSENT_BYTES_MAX
from goqueue.model.ports import Buffer
from goqueue.model.settings import KiB, MiB
from goqueue.testing.world.clock import SimulatedClock
from goqueue.testing.world.loop import SimulatedLoop


class Pipe:
    """Remembers what it was given, and when."""

    def __init__(self) -> None:
        self.unsent_bytes = 0
        self.written: list[bytes] = []
        self.times_s: list[float] = []

    def write(self, buffers: Sequence[Buffer]) -> None:
        self.written.append(b"".join(buffers))
        self.times_s.append(asyncio.get_running_loop().time())


class Session(Turn):
    """Counts how often it was told that there is room."""

    def __init__(self, outbox: Outbox, name: bytes) -> None:
        super().__init__(self._told)
        self.outbox = outbox
        self.name = name
        self.told_count = 0

    def send(self, number: int, size: int = 0) -> None:
        data = self.name + b"%d" % number
        self.outbox.send(self, [data], size or len(data))

    @property
    def has_room(self) -> bool:
        return self.outbox.has_room(self)

    def _told(self) -> None:
        self.told_count += 1


def walk(work: Callable[[Outbox, Pipe], Awaitable[None]]) -> None:
    async def make() -> None:
        pipe = Pipe()
        await work(Outbox(pipe), pipe)

    loop = SimulatedLoop(SimulatedClock())
    try:
        loop.run(make())
        assert loop.unhandled == []
    finally:
        loop.abandon()


def test_nothing_waits_while_the_socket_takes_it() -> None:
    async def work(outbox: Outbox, pipe: Pipe) -> None:
        session = Session(outbox, b"a")
        session.send(1)
        outbox.say([b"call"])
        session.send(2)
        assert pipe.written == [b"a1", b"call", b"a2"]
        assert session.unsent_bytes == 0

    walk(work)


def test_sessions_that_wait_take_turns_and_keep_their_order_and_calls_go_first() -> None:
    async def work(outbox: Outbox, pipe: Pipe) -> None:
        greedy, modest = Session(outbox, b"a"), Session(outbox, b"b")
        outbox.hold()
        for number in range(4):
            greedy.send(number)
        modest.send(0)
        modest.send(1)
        outbox.say([b"call"])
        outbox.go_on()
        assert pipe.written == [b"call", b"a0", b"b0", b"a1", b"b1", b"a2", b"a3"]
        assert outbox.unsent_bytes == 0

    walk(work)


def test_what_is_sent_while_others_wait_does_not_pass_them() -> None:
    async def work(outbox: Outbox, pipe: Pipe) -> None:
        class Narrow(Pipe):
            def write(self, buffers: Sequence[Buffer]) -> None:
                super().write(buffers)
                narrow_outbox.hold()

        narrow = Narrow()
        narrow_outbox = Outbox(narrow)
        session = Session(narrow_outbox, b"a")
        for number in range(3):
            session.send(number)
        assert narrow.written == [b"a0"]
        narrow_outbox.go_on()
        session.send(3)
        narrow_outbox.go_on()
        narrow_outbox.go_on()
        assert narrow.written == [b"a0", b"a1", b"a2", b"a3"]

    walk(work)


def test_a_session_has_its_bound_and_is_told_when_half_of_it_is_gone() -> None:
    async def work(outbox: Outbox, pipe: Pipe) -> None:
        session, other = Session(outbox, b"a"), Session(outbox, b"b")
        outbox.hold()
        count = 0
        while session.has_room:
            session.send(count, 256 * KiB)
            count += 1
        assert count == SESSION_UNSENT_BYTES_MAX // (256 * KiB)
        assert other.has_room
        outbox.go_on()
        assert (session.told_count, other.told_count) == (1, 0)
        assert session.has_room

    walk(work)


def test_a_connection_has_its_bound_too() -> None:
    async def work(outbox: Outbox, pipe: Pipe) -> None:
        sessions = [Session(outbox, b"%d" % number) for number in range(20)]
        outbox.hold()
        for session in sessions:
            while session.has_room:
                session.send(0, MiB)
        assert outbox.unsent_bytes == LINK_UNSENT_BYTES_MAX
        assert not sessions[-1].unsent_bytes
        for session in sessions[:7]:
            outbox.forget(session)
        await asyncio.sleep(0)
        # Those that were closed hear nothing; the one with 8 MiB of its own has no room yet.
        assert [session.told_count for session in sessions] == [0] * 8 + [1] * 12

    walk(work)


def test_a_rate_is_kept_and_calls_do_not_wait_for_it() -> None:
    async def work(outbox: Outbox, pipe: Pipe) -> None:
        outbox.throttle(MiB)
        session = Session(outbox, b"a")
        began_s = asyncio.get_running_loop().time()
        for number in range(64):
            session.send(number, 64 * KiB)
        outbox.say([b"call"])
        assert len(pipe.written) < 5
        assert pipe.written[-1] == b"call"
        while session.unsent_bytes:
            await asyncio.sleep(0.1)
        pipe.written.remove(b"call")
        assert pipe.written == [b"a%d" % number for number in range(64)]
        taken_s = pipe.times_s[-1] - began_s
        assert 4 - BURST_S - 0.2 <= taken_s <= 4

    walk(work)


def test_a_closed_outbox_tells_nobody_of_room() -> None:
    async def work(outbox: Outbox, pipe: Pipe) -> None:
        outbox.throttle(KiB)
        session = Session(outbox, b"a")
        while session.has_room:
            session.send(0, MiB)
        outbox.close()
        await asyncio.sleep(100_000)
        assert session.told_count == 0
        assert outbox.unsent_bytes == 0

    walk(work)
