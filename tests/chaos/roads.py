"""The network between nodes: a small proxy before each peer door, whose address its node tells others.

Who connects is read from its greeting, so every pair of nodes has two ways that are cut, clogged and healed
by themselves. A way that is cut carries nothing, neither bytes nor the news of an end, and lets nobody
through; what was under way comes when it is healed. Nobody listens before a node that is dead.
"""

import asyncio
import random
import re
import socket
import threading
from collections.abc import Sequence
from contextlib import suppress

Way = tuple[str, str]
"""From one node to another."""
_HOST = "127.0.0.1"
_PIECE_BYTES = 65_536
_LOOK_S = 0.1
_GREETED_BY = re.compile(rb"node-\d+")
_CLOGGED_BYTES_PER_S = 20_000
_PORTS = (12_000, 30_000)


class Roads:
    """All ways, on a loop in a thread of its own."""

    def __init__(self, nodes: Sequence[str]) -> None:
        self._nodes = nodes
        self.first_port = _free_ports(2 * len(nodes))
        """Of the proxies, in the order of the nodes."""
        self.first_door = self.first_port + len(nodes)
        """Of the doors behind them."""
        self._cuts: set[Way] = set()
        self._clogged: set[Way] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="roads", daemon=True)

    def open(self) -> None:
        self._thread.start()
        for number, node in enumerate(self._nodes):
            toll = _Toll(self, node, self.first_port + number, self.first_door + number)
            asyncio.run_coroutine_threadsafe(toll.stand(), self._loop)

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @staticmethod
    async def _end() -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def cut(self, *ways: Way) -> None:
        self._loop.call_soon_threadsafe(self._cuts.update, ways)

    def clog(self, *ways: Way) -> None:
        """So little passes that nobody can keep up."""
        self._loop.call_soon_threadsafe(self._clogged.update, ways)

    def heal(self) -> None:
        self._loop.call_soon_threadsafe(self._cuts.clear)
        self._loop.call_soon_threadsafe(self._clogged.clear)

    def is_cut(self, way: Way) -> bool:
        return way in self._cuts

    def is_clogged(self, way: Way) -> bool:
        return way in self._clogged


class _Toll:
    """What stands before one node's door."""

    def __init__(self, roads: Roads, node: str, port: int, door: int) -> None:
        self._roads = roads
        self._node = node
        self._port = port
        self._door = door

    async def stand(self) -> None:
        """Listen while the node does."""
        server: asyncio.Server | None = None
        while True:
            is_there = await self._is_there()
            if is_there and server is None:
                with suppress(OSError):
                    server = await asyncio.start_server(self._meet, _HOST, self._port)
            elif not is_there and server is not None:
                server.close()
                server = None
            await asyncio.sleep(_LOOK_S)

    async def _is_there(self) -> bool:
        try:
            _, writer = await asyncio.open_connection(_HOST, self._door)
        except OSError:
            return False
        writer.close()
        return True

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first = await reader.read(_PIECE_BYTES)
        greeting = _GREETED_BY.search(first)
        if greeting is None:
            writer.transport.abort()  # somebody has only knocked
            return
        other = greeting[0].decode()
        await self._let_pass((other, self._node), 0)
        try:
            inner_reader, inner_writer = await asyncio.open_connection(_HOST, self._door)
        except OSError:
            writer.transport.abort()
            return
        inner_writer.write(first)
        await asyncio.gather(
            self._carry((other, self._node), reader, inner_writer),
            self._carry((self._node, other), inner_reader, writer),
        )

    async def _carry(self, way: Way, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while piece := await reader.read(_PIECE_BYTES):
                await self._let_pass(way, len(piece))
                writer.write(piece)
                await writer.drain()
        await self._let_pass(way, 0)
        writer.transport.abort()

    async def _let_pass(self, way: Way, size_bytes: int) -> None:
        while self._roads.is_cut(way):
            await asyncio.sleep(_LOOK_S)
        left = size_bytes
        while left > 0 and self._roads.is_clogged(way):
            await asyncio.sleep(_LOOK_S)
            left -= round(_CLOGGED_BYTES_PER_S * _LOOK_S)


def _free_ports(count: int) -> int:
    """The first of some in a row that nobody has.

    Below those that the system gives to whoever connects: a dead node's door is knocked at all the time, and
    who knocks from the door's own port would meet itself, and keep the node from coming back.
    """
    while True:
        first = random.randrange(*_PORTS)
        try:
            for port in range(first, first + count):
                with socket.socket() as probe:
                    probe.bind((_HOST, port))
        except OSError:
            continue
        return first
