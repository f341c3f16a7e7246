"""The controller's loop: whoever is first to take the seat decides for all, until its session ends.

What is decided is decided on the image alone (`core/cluster/controller.py`), guarded by the seat and by all
that it rests on. So a controller that was replaced and does not know it yet changes nothing, and whatever was
outdated is decided anew with the next image.
"""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from contextlib import suppress
from uuid import UUID

from goqueue.broker.cluster.membership import Membership
from goqueue.broker.metadata_state import Agreement
from goqueue.core.cluster.controller import WantedTopic, bundle, decide, forget_orphans, orphans_of
from goqueue.core.cluster.members import placeable
from goqueue.core.cluster.metadata import Metadata
from goqueue.core.cluster.values import CONTROLLER, ControllerSeat, decode_controller, encode
from goqueue.core.telemetry.cluster_counts import ClusterCounts
from goqueue.model.cluster import Incarnation, Step
from goqueue.model.errors import Outdated, StoreUnreachable, Unknown
from goqueue.model.ports import Clock, Store

logger = logging.getLogger(__name__)

CHANGES_AT_ONCE = 4
BALANCE_INTERVAL_MS = 300_000
_LOOK_MS = 1_000
"""So often orders that must not take too long are looked at, though nothing has changed."""
_REST = 4
"""So many times as long as a look at the image took is rested where there was nothing to do."""
_PAUSE_S = 0.2
"""Before the store is asked again when it gave no answer."""


class Controlling:
    """One node's part in it: it waits for the seat, or sits in it."""

    def __init__(
        self,
        store: Store,
        image: Metadata,
        agreement: Agreement,
        membership: Membership,
        clock: Clock,
        *,
        wanted: Sequence[WantedTopic] = (),
        quorum: int = 1,
        counts: ClusterCounts | None = None,
    ) -> None:
        """`wanted`: topics that brokers need for themselves, made when `quorum` nodes are ready."""
        self._store = store
        self._image = image
        self._agreement = agreement
        self._membership = membership
        self._clock = clock
        self._wanted = wanted
        self._quorum = quorum
        self._counts = counts or ClusterCounts()
        self._changed = asyncio.Event()
        self._orphans: frozenset[UUID] = frozenset()
        """Topics that had records and were not there, at the last look."""
        self._seat = 0
        """The revision of the seat while it is ours; another one there means that it is not any more."""
        agreement.listeners.append(self._changed.set)
        membership.listeners.append(self._registered)

    @property
    def is_deciding(self) -> bool:
        return bool(self._seat) and self._image.guard(CONTROLLER).revision == self._seat

    async def run(self) -> None:
        while True:
            await self._take_seat()
            logger.info("controller_elected", extra={"node": self._membership.me.node_id})
            self._counts.controller_elections += 1
            self._counts.controller_since_ms = self._clock.wall_ms()
            await self._decide_while_seated()
            self._counts.controller_since_ms = None
            logger.info("controller_replaced", extra={"node": self._membership.me.node_id})

    async def _registered(self, _: Incarnation) -> None:
        self._changed.set()

    async def _take_seat(self) -> None:
        me = self._membership.me.node_id
        while not self.is_deciding:
            while self._image.controller not in (None, me) or self._membership.session.is_lost:
                await self._next_image()
            if self._image.controller == me:
                # It was asked for and no answer came, nor to the look that followed.
                await asyncio.sleep(_PAUSE_S)
                await self._look_for_seat()
                continue
            seat = encode(ControllerSeat(me))
            try:
                self._seat = await self._membership.session.hold(CONTROLLER, seat)
                await self._agreement.reached(self._seat)
            except Outdated as outdated:
                await self._agreement.reached(outdated.revision)
            except Unknown:
                await asyncio.sleep(_PAUSE_S)
                await self._look_for_seat()

    async def _look_for_seat(self) -> None:
        """No answer came when it was asked for: it may be ours, and nobody else would take it then."""
        with suppress(StoreUnreachable):
            loaded = await self._store.load(CONTROLLER)
            item = loaded.items.get(CONTROLLER)
            if item is not None and decode_controller(item.value).node == self._membership.me.node_id:
                self._seat = item.revision
            await self._agreement.reached(loaded.revision)

    async def _decide_while_seated(self) -> None:
        balanced_ms = self._now_ms()
        is_outdated = False
        while self.is_deciding:
            balances = self._now_ms() >= balanced_ms + BALANCE_INTERVAL_MS
            if balances:
                balanced_ms = self._now_ms()
                await self._forget_orphans()
            self._changed.clear()
            begun_ns = self._clock.monotonic_ns()
            steps = decide(
                self._image,
                balances=balances,
                wanted=self._wanted if len(placeable(self._image)) >= self._quorum else (),
                now_ms=self._clock.wall_ms(),
            )
            took_s = (self._clock.monotonic_ns() - begun_ns) / 1e9
            if not steps:
                is_outdated = False
                # Leaders change records too, each by itself; with ten thousand of them a look takes 25 ms.
                await asyncio.sleep(_REST * took_s)
                until_ms = balanced_ms + BALANCE_INTERVAL_MS
                if any(order.timeout_ms and not order.ended_ms for order in self._image.orders.values()):
                    until_ms = min(until_ms, self._now_ms() + _LOOK_MS)
                await self._next_image(until_ms=until_ms)
                continue
            # One guard that does not hold refuses all that was put together, so what was refused goes alone.
            is_outdated = not await self._carry_out(steps if is_outdated else bundle(steps))

    async def _forget_orphans(self) -> None:
        """Drop records of topics that were not made: those that were there at the last look already."""
        orphans = orphans_of(self._image)
        if ripe := orphans & self._orphans:
            logger.warning("orphan_records_dropped", extra={"topics": sorted(map(str, ripe))})
            for step in bundle(forget_orphans(self._image, ripe)):
                with suppress(Outdated, Unknown):
                    await self._store.change(step.guards, step.puts, step.drops)
        self._orphans = orphans

    async def _carry_out(self, steps: Iterable[Step[None]]) -> bool:
        """Make changes, a few at a time, and wait until the image has them; whether none was outdated."""
        left = iter(steps)
        seen = 0
        is_outdated = is_unknown = False

        async def make_one_by_one() -> None:
            nonlocal seen, is_outdated, is_unknown
            for step in left:
                try:
                    revision = await self._store.change(step.guards, step.puts, step.drops)
                except Outdated as outdated:
                    is_outdated, revision = True, outdated.revision
                except Unknown:
                    is_unknown = True
                    return
                seen = max(seen, revision)

        await asyncio.gather(*(make_one_by_one() for _ in range(CHANGES_AT_ONCE)))
        if is_unknown:
            await asyncio.sleep(_PAUSE_S)
            with suppress(StoreUnreachable):
                seen = (await self._store.load(CONTROLLER)).revision
        await self._agreement.reached(seen)
        return not is_outdated

    async def _next_image(self, *, until_ms: int | None = None) -> None:
        """Wait until the image is another than the one that was looked at, or until a time."""
        wait_s = None if until_ms is None else max(0, until_ms - self._now_ms()) / 1000
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await self._changed.wait()
        self._changed.clear()

    def _now_ms(self) -> int:
        return self._clock.monotonic_ns() // 1_000_000
