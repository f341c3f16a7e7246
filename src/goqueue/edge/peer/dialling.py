"""Keeps a connection to one neighbour: dials it, and dials it again when it is lost, as long as it is
registered.
"""

import asyncio
import socket
from collections.abc import Callable
from random import Random
from ssl import SSLContext

from goqueue.edge.peer.link import PeerLink
from goqueue.edge.peer.protocol import PeerProtocol
from goqueue.model.cluster import NodeId
from goqueue.model.peers import Loss, Neighbour, Pace

STEADY_S = 1.0
"""A connection that has held so long was a good one: when it is lost, the next is tried at once."""


class Dialler:
    """One connection to one neighbour in one incarnation."""

    def __init__(
        self,
        node: NodeId,
        neighbour: Neighbour,
        pace: Pace,
        *,
        make_link: Callable[[], PeerLink],
        made: Callable[[PeerLink], None],
        failed: Callable[[NodeId, Loss, str], None],
        pauses_ms: tuple[int, int],
        greeting_ms: int,
        chance: Random,
        tls: Callable[[], SSLContext] | None = None,
    ) -> None:
        self.node = node
        self.neighbour = neighbour
        self.pace = pace
        self._make_link = make_link
        self._made = made
        self._failed = failed
        self._pauses_ms = pauses_ms
        self._greeting_ms = greeting_ms
        self._chance = chance
        self._tls = tls
        """With what it greets, as it is when it dials. None: in the clear."""
        self.link: PeerLink | None = None
        self.tried = asyncio.Event()
        """Set while there is a connection, or an attempt to make one has failed since the last."""
        self._lost = asyncio.Event()
        self._task = asyncio.get_running_loop().create_task(self._keep())

    def lose(self, link: PeerLink) -> None:
        """The connection has ended."""
        if link is self.link:
            self.link = None
            self.tried.clear()
            self._lost.set()

    def stop(self) -> None:
        """Dial no more. The link that is there is left alone."""
        self.tried.set()
        self._task.cancel()

    async def _keep(self) -> None:
        loop = asyncio.get_running_loop()
        first_ms, longest_ms = self._pauses_ms
        pause_ms = 0
        while True:
            began_s = loop.time()
            if (link := await self._dial()) is not None and not link.is_lost:
                self.link = link
                self._lost.clear()
                self._made(link)
                self.tried.set()
                await self._lost.wait()
                if loop.time() - began_s >= STEADY_S:
                    pause_ms = 0
            else:
                self.tried.set()
            # Nodes that were cut off from each other together shall not come back all at once.
            await asyncio.sleep(pause_ms * self._chance.uniform(0.5, 1.0) / 1_000)
            pause_ms = min(max(2 * pause_ms, first_ms), longest_ms)

    async def _dial(self) -> PeerLink | None:
        """A connection with its greeting done, or None; whoever wants to know is told why."""
        try:
            async with asyncio.timeout(self._greeting_ms / 1_000):
                link, problem = await self._greeted()
            if not problem:
                return link
            self._failed(self.node, link.loss, problem)
        except TimeoutError:
            self._failed(self.node, Loss.SILENT, f"no greeting within {self._greeting_ms} ms")
        except (ConnectionRefusedError, socket.gaierror) as error:
            self._failed(self.node, Loss.REFUSED, str(error))
        except OSError as error:
            self._failed(self.node, Loss.RESET, str(error))
        return None

    async def _greeted(self) -> tuple[PeerLink, str]:
        link = self._make_link()
        try:
            await asyncio.get_running_loop().create_connection(
                lambda: PeerProtocol(link),
                self.neighbour.host,
                self.neighbour.port,
                ssl=None if self._tls is None else self._tls(),
            )
            return link, await link.greeted
        except asyncio.CancelledError:
            # A socket that is given up while it connects is closed without a word to its protocol.
            link.lose()
            raise
