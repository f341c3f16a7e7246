"""What the store says of partitions, and what the leaders of a node propose to it.

A proposal rests on a revision. Either it is made, or something newer is there, or nobody can tell and it is
proposed again: the machine hears of the record that came of it in each case.

When a node comes or goes, all that lead here have something to propose in the same moment, thousands of them.
One call for each would be answered by nobody in time, and would hold up the session of this very node. So
what waits goes together, in few calls.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from goqueue.core.cluster.values import decode_node, decode_part, encode, node_key
from goqueue.model.cluster import Guard, Incarnation, NodeId, PartitionRecord
from goqueue.model.errors import Outdated, Unavailable
from goqueue.model.ports import Store
from goqueue.model.replication import ProposeRecord

log = logging.getLogger(__name__)
TOGETHER_MAX = 60
"""So many go in one change. Each may bring a guard of its own besides, and a store takes about 128."""
AT_ONCE = 2
"""So many calls are under way."""
_PAUSE_S = 0.2
"""The store gave no answer: so long until it is asked again."""

Found = tuple[PartitionRecord, int]
"""A record, and the revision at which the store has it."""


@dataclass(frozen=True, slots=True, eq=False)
class _Asked:
    key: str
    proposal: ProposeRecord
    answer: "asyncio.Future[Found | None]"

    def tell(self, found: Found | None) -> None:
        if not self.answer.done():  # else whoever asked has gone
            self.answer.set_result(found)


class Proposals:
    """What a node's leaders propose, on its way to the store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: deque[_Asked] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_closed = False

    async def make(self, key: str, proposal: ProposeRecord) -> Found | None:
        """Have a record put in the place of another; what stands there then, and at which revision.

        None: the record is as it was, and the proposal will never be made. Waits while the store is away.
        """
        loop = asyncio.get_running_loop()
        asked = _Asked(key, proposal, loop.create_future())
        self._waiting.append(asked)
        if len(self._tasks) < AT_ONCE and not self._is_closed:
            task = loop.create_task(self._work())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return await asked.answer

    def close(self) -> None:
        """Propose nothing any more: whoever asks gets no answer."""
        self._is_closed = True
        for task in tuple(self._tasks):
            task.cancel()

    async def _work(self) -> None:
        while together := self._next():
            while together := [asked for asked in together if not asked.answer.done()]:
                try:
                    await self._propose(together)
                except Unavailable as error:
                    log.warning("proposals_unanswered count=%d reason=%s", len(together), error)
                    await asyncio.sleep(_PAUSE_S)

    def _next(self) -> list[_Asked]:
        """As many as go together: those that somebody waits for, one of each partition."""
        found: dict[str, _Asked] = {}
        later = []
        while self._waiting and len(found) < TOGETHER_MAX:
            asked = self._waiting.popleft()
            if asked.key in found:
                later.append(asked)
            elif not asked.answer.done():
                found[asked.key] = asked
        self._waiting.extendleft(reversed(later))
        return list(found.values())

    async def _propose(self, together: Sequence[_Asked]) -> None:
        joining: dict[tuple[NodeId, Incarnation], Guard | None] = {}
        for asked in together:
            joins = asked.proposal.joining
            if joins is not None and joins not in joining:
                joining[joins] = await self._registration(*joins)
        possible = []
        for asked in together:
            if asked.proposal.joining is not None and joining[asked.proposal.joining] is None:
                asked.tell(None)
            else:
                possible.append(asked)
        if not possible:
            return
        guards = [Guard(asked.key, asked.proposal.revision) for asked in possible]
        guards += [guard for guard in joining.values() if guard is not None]
        puts = {asked.key: encode(asked.proposal.record) for asked in possible}
        try:
            revision = await self._store.change(guards, puts, ())
        except Outdated:
            await self._part(possible)
        else:
            for asked in possible:
                asked.tell((asked.proposal.record, revision))

    async def _part(self, refused: Sequence[_Asked]) -> None:
        """One that rests on something outdated has all refused: each half goes alone."""
        if len(refused) > 1:
            half = len(refused) // 2
            await self._propose(refused[:half])
            await self._propose(refused[half:])
            return
        [asked] = refused
        found = await look_up(self._store, asked.key)
        asked.tell(found if found is not None and found[1] > asked.proposal.revision else None)

    async def _registration(self, node: NodeId, incarnation: Incarnation) -> Guard | None:
        """A guard for a node's registration, if it is still that one."""
        key = node_key(node)
        item = (await self._store.load(key)).items.get(key)
        if item is None:
            return None
        # The first word of a node cannot name its own revision.
        known = decode_node(item.value).incarnation or item.revision
        return Guard(key, item.revision) if known == incarnation else None


async def look_up(store: Store, key: str) -> Found | None:
    """The record that stands under a key. Waits for as long as the store is away."""
    while True:
        try:
            item = (await store.load(key)).items.get(key)
            return None if item is None else (decode_part(item.value), item.revision)
        except Unavailable:
            await asyncio.sleep(_PAUSE_S)
