"""expire_offsets: groups that have had no members for long lose their offsets. Part of the upkeep."""

import logging
from typing import TYPE_CHECKING

from goqueue.core.groups.events import GroupDeleted
from goqueue.model.errors import GoQueueError

if TYPE_CHECKING:
    from goqueue.broker.broker import Broker

log = logging.getLogger(__name__)


async def expire_offsets(broker: "Broker") -> None:
    """Forget groups whose offsets nobody has needed for the retention; note those that have members."""
    for journal in broker.coordinator.journals:
        events = journal.groups.expire_offsets(now_ms=broker.clock.wall_ms())
        if not events:
            continue
        try:
            await journal.commit(*events)
        except GoQueueError as error:
            log.warning("offsets_not_expired partition=%s reason=%s", journal.partition.source, error)
            continue
        for event in events:
            if isinstance(event, GroupDeleted):
                log.info("offsets_expired group=%s", event.group)
