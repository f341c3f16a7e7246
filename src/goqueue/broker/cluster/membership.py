"""That a node is alive: its session, and under the session's lease the record of where it is reached.

A session that etcd has ended is opened anew, and the node is then another incarnation: what it led before, it
leads no more until it is elected again. `listeners` hear of each.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace

from goqueue.broker.cluster.identity import Identity
from goqueue.broker.cluster.joining import TRIES_MAX, check_secret, wait_until_gone
from goqueue.core.cluster.values import NODES, decode_node, encode, node_key
from goqueue.model.cluster import Incarnation, NodeRecord, NodeState
from goqueue.model.errors import CannotJoin, GoQueueError, Outdated, StoreUnreachable, Unknown
from goqueue.model.ports import Session, Store

logger = logging.getLogger(__name__)
_PAUSE_S = 0.5


class Membership:
    def __init__(
        self,
        store: Store,
        me: Identity,
        record: NodeRecord,
        *,
        session_ms: int,
        wall_ms: Callable[[], int] = lambda: 0,
    ) -> None:
        self._store = store
        self.me = me
        self._record = record
        self._session_ms = session_ms
        self._wall_ms = wall_ms
        self._key = node_key(me.node_id)
        self._revision = 0
        self.session: Session
        self.incarnation: Incarnation
        self.listeners: list[Callable[[Incarnation], Awaitable[None]]] = []
        """Who hears that this node is a new incarnation, one after the other."""

    @property
    def patience_ms(self) -> int:
        """How long the session of somebody who is dead may live at most, and then some."""
        return 3 * self._session_ms + 1_000

    async def register(self) -> None:
        """Open a session and stand in the store as alive. Raises CannotJoin, StoreUnreachable."""
        for _ in range(TRIES_MAX):
            with suppress(Outdated, Unknown):
                await self._end_earlier_life()
                session = await self._store.open_session(self._session_ms)
                try:
                    record = replace(self._record, told_ms=self._wall_ms())
                    self._revision = await session.hold(self._key, encode(record))
                    await self._check_secret()
                except GoQueueError:
                    await session.close()
                    raise
                self.session = session
                self.incarnation = Incarnation(self._revision)
                logger.info(
                    "node_registered", extra={"node": self.me.node_id, "incarnation": self.incarnation}
                )
                for listener in self.listeners:
                    await listener(self.incarnation)
                return
        raise CannotJoin(f"the record of node {self.me.node_id} changes all the time; try again later")

    async def tell(self, state: NodeState) -> None:
        """Say how far this node is, now or with its next registration. Raises StoreUnreachable."""
        self._record = replace(self._record, state=state)
        for _ in range(TRIES_MAX):
            session = self.session
            if session.is_lost:
                return  # whoever keeps it registers anew, and says so then
            told = encode(replace(self._record, incarnation=self.incarnation, told_ms=self._wall_ms()))
            try:
                revision = await session.hold(self._key, told, self._revision)
                if session is self.session:
                    self._revision = revision
                return
            except Outdated:
                if session is self.session and not session.is_lost:
                    raise
            except Unknown:
                item = (await self._store.load(self._key)).items.get(self._key)
                if item is not None and item.value == told:
                    self._revision = item.revision
                    return
        raise Unknown(f"the store takes no word of node {self.me.node_id}")

    async def keep(self) -> None:
        """Register anew whenever the session has ended. Ends by CannotJoin: another has taken the name."""
        while True:
            await self.session.ended()
            logger.warning("session_ended", extra={"node": self.me.node_id, "incarnation": self.incarnation})
            while self.session.is_lost:
                try:
                    await self.register()
                except (StoreUnreachable, Unknown) as error:
                    logger.warning("register_failed", extra={"reason": str(error)})
                    await asyncio.sleep(_PAUSE_S)

    async def close(self) -> None:
        """Be gone for the others, at once if the store answers."""
        await self.session.close()

    async def _check_secret(self) -> None:
        """Of two who come at the same time with different secrets, the first stays. Raises CannotJoin."""
        if mark := self._record.secret_mark:
            loaded = await self._store.load(NODES)
            check_secret(self.me.node_id, mark, loaded, came_before=self._revision)

    async def _end_earlier_life(self) -> None:
        """Whoever has this folder's lock and finds its record there left it in an earlier life."""
        loaded = await self._store.load(self._key)
        item = loaded.items.get(self._key)
        if item is None:
            return
        if decode_node(item.value).folder_id == self.me.folder_id:
            await self._store.end_session(self._key, item.revision)
        else:
            await wait_until_gone(self._store, self.me, loaded, patience_ms=self.patience_ms)
