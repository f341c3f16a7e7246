"""The registry of several nodes: one writes it, and every node follows what is committed of it.

Whoever leads the journal decides. All nodes, also that one, ask it for what they do not know yet: a question
waits there until there is an answer. So a registry that is read never has what a change of leaders could take
back; it is behind by a moment, and whoever has changed something or misses something asks for that moment.

A journal that was shortened begins with the whole state. That is built aside: nobody reads half of it.
"""

import asyncio
import logging

from goqueue.broker.broker import Broker
from goqueue.broker.schemas.state import EVENTS
from goqueue.broker.schemas.verbs import follow_registry
from goqueue.core.schemas.events import StateReset
from goqueue.core.schemas.registry import Registry
from goqueue.model.errors import GoQueueError, NotCoordinator
from goqueue.model.schema_commands import FollowRegistry, RegistryNews

log = logging.getLogger(__name__)
FOLLOW_MS = 20_000
"""So long a question waits for an answer before it is asked anew."""
_PAUSE_S = 0.2
"""Before another try where nobody answered."""


class SharedRegistry:
    """The port `Sharing`."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._offset = 0
        """The registry that is read has what lies before it in the journal."""
        self._aside: Registry | None = None
        """Will be the registry when it is whole."""
        broker.schemas.sharing = self

    async def follow(self) -> None:
        """Hear of all that is committed, for ever."""
        while True:
            try:
                await self._ask(FOLLOW_MS)
            except GoQueueError as error:
                log.debug("registry_not_followed reason=%s", error)
                await asyncio.sleep(_PAUSE_S)

    async def catch_up(self) -> bool:
        before = self._offset
        wanted_offset = await self._ask(0)
        while self._aside is not None or self._offset < wanted_offset:
            await self._ask(0)
        return self._offset != before

    async def _ask(self, wait_ms: int) -> int:
        """Take what is new; returns up to where there is more."""
        if self._broker.forwarding is None:
            raise NotCoordinator("this node has not joined the others yet")
        command = FollowRegistry(offset=self._offset, wait_ms=wait_ms)
        news = await self._broker.forwarding.run(follow_registry, command)
        if command.offset == self._offset:  # else somebody else has asked meanwhile, and was quicker
            self._take(news)
        return news.end_offset

    def _take(self, news: RegistryNews) -> None:
        if news.begins_anew:
            self._aside = Registry()
        for data in news.events:
            event = EVENTS.decode(data)
            if isinstance(event, StateReset):
                self._aside = Registry()
            registry = self._broker.schemas.registry if self._aside is None else self._aside
            registry.apply(event)
        self._offset = news.offset
        # A whole state is one step of the journal: either all of it lies before the end, or nothing.
        if self._aside is not None and news.offset >= news.end_offset:
            self._broker.schemas.registry, self._aside = self._aside, None
