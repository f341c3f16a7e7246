"""What other nodes want of this one, and what is made of those that are gone.

A process that dies resets its connections, long before its session ends. Whoever decides then knocks at its
door twice; when nobody listens there, its session is ended at once. This may err: then a healthy node
registers anew, which costs a second and loses nothing.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

from goqueue.broker.broker import Broker
from goqueue.broker.cluster.controlling import Controlling
from goqueue.broker.forwarding.forwarding import Forwarding
from goqueue.broker.replication.replication import Replication
from goqueue.broker.storage.partition import Partition
from goqueue.core.cluster.values import node_key
from goqueue.model.cluster import NodeId
from goqueue.model.errors import GoQueueError
from goqueue.model.peers import Answered, Loss, Neighbour, Peer, host_and_port
from goqueue.model.places import Command
from goqueue.model.ports import Buffer, Store, Stream, StreamUser
from goqueue.model.replication import Follow

logger = logging.getLogger(__name__)

Knock = Callable[[str, int, float], Awaitable[bool]]
"""Whether nobody listens at a host and port; whoever does not answer within so many seconds may be there."""
_KNOCKS = 2
_KNOCK_S = 0.25


class MemberPeers:
    """The port `PeerUser` of a node."""

    def __init__(
        self,
        broker: Broker,
        store: Store,
        controlling: Controlling,
        forwarding: Forwarding,
        knock: Knock,
    ) -> None:
        self._broker = broker
        self._knock = knock
        self._forwarding = forwarding
        self._store = store
        self._controlling = controlling
        self._suspected: dict[NodeId, asyncio.Task[None]] = {}
        self.replication: Replication | None = None

    def neighbours(self, me: NodeId) -> dict[NodeId, Neighbour]:
        """All other nodes that are alive, by the image."""
        image = self._broker.metadata
        found = {}
        for node, record in image.nodes.items():
            if node != me and record.peer:
                found[node] = Neighbour(image.incarnation(node), *host_and_port(record.peer))
        return found

    def followed(self, stream: Stream, message: Follow) -> StreamUser | None:
        return None if self.replication is None else self.replication.followed(stream, message)

    async def answer(self, caller: Peer, command: Command, tail: Buffer, *, wait_ms: int) -> Answered:
        return Answered(await self._forwarding.answer(command))

    def lost(self, node: NodeId, loss: Loss) -> None:
        is_concerned = self._controlling.is_deciding or self._broker.metadata.controller == node
        if loss in (Loss.REFUSED, Loss.RESET) and is_concerned and node not in self._suspected:
            task = asyncio.get_running_loop().create_task(self._look_after(node))
            self._suspected[node] = task
            task.add_done_callback(lambda _: self._suspected.pop(node))

    def failed(self, partition: Partition) -> None:
        """The disk has failed a partition: it leads no more, and is opened anew."""
        if self.replication is not None:
            self.replication.failed(partition)

    async def close(self) -> None:
        """Return when nothing is under way any more."""
        for task in self._suspected.values():
            task.cancel()
        if self.replication is not None:
            self.replication.close()
            await self.replication.drain()

    async def _look_after(self, node: NodeId) -> None:
        image = self._broker.metadata
        record, guard = image.nodes.get(node), image.guard(node_key(node))
        if record is None or not record.peer:
            return
        for _ in range(_KNOCKS):
            if not await self._knock(*host_and_port(record.peer), _KNOCK_S):
                return
            await asyncio.sleep(_KNOCK_S)
        self._broker.counters.cluster.nodes_given_up += 1
        logger.warning("node_given_up", extra={"node": node, "peer": record.peer})
        with suppress(GoQueueError):  # it has gone or registered anew by itself, or its session ends later
            await self._store.end_session(guard.key, guard.revision)
