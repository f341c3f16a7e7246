"""Parts of a connection that cost memory only when they are used.

uvicorn gives each connection and each request an asyncio.Event and a deque, 760 bytes apiece. Most never
need them, and ten thousand idle polls hold thirty thousand.
"""

import asyncio


class LazyEvent:
    """An asyncio.Event that is made when somebody waits for it."""

    __slots__ = ("_event", "_is_set")

    def __init__(self, *, is_set: bool = False) -> None:
        self._is_set = is_set
        self._event: asyncio.Event | None = None

    def set(self) -> None:
        self._is_set = True
        if self._event is not None:
            self._event.set()

    def clear(self) -> None:
        self._is_set = False
        if self._event is not None:
            self._event.clear()

    async def wait(self) -> None:
        if self._is_set:
            return
        if self._event is None:
            self._event = asyncio.Event()
        await self._event.wait()


class Flow:
    """Whether a connection is read from, and whether its client takes what is written."""

    __slots__ = ("_can_write", "_transport", "read_paused", "write_paused")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._can_write = LazyEvent(is_set=True)
        self.read_paused = False
        self.write_paused = False

    async def drain(self) -> None:
        """Return when the client takes more."""
        await self._can_write.wait()

    def pause_reading(self) -> None:
        if not self.read_paused:
            self.read_paused = True
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        if self.read_paused:
            self.read_paused = False
            self._transport.resume_reading()

    def pause_writing(self) -> None:
        self.write_paused = True
        self._can_write.clear()

    def resume_writing(self) -> None:
        self.write_paused = False
        self._can_write.set()


class Pipeline(list[object]):
    """Requests that came before their forerunners were answered: a deque, as far as uvicorn uses one."""

    __slots__ = ()

    def appendleft(self, request: object) -> None:
        self.insert(0, request)
