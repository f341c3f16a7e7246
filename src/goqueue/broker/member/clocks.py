"""Whether the clocks of nodes agree: told in the log, since nothing is refused for it.

No write rests on a clock, and leases run by elapsed time. Timestamps, delays and retention go by the clock of
whoever leads or keeps them: where one is an hour off, so are they, and people should know why.

A node tells its time whenever it writes its record. Others hear of that within moments, and compare.
"""

import logging
from collections.abc import Iterable

from goqueue.core.cluster.metadata import Metadata
from goqueue.model.cluster import NodeId
from goqueue.model.ports import Clock

logger = logging.getLogger(__name__)
OFF_MAX_MS = 60_000
"""More than any news of a record is late, while etcd answers."""


class Clocks:
    """What nodes have told of their time, and how far that is from ours."""

    def __init__(self, image: Metadata, clock: Clock, me: NodeId) -> None:
        self._image = image
        self._clock = clock
        self._me = me
        # What was told before this node followed may be old by now, and says nothing.
        self._heard = dict(self._told())
        self.off_ms: dict[NodeId, int] = {}
        """Nodes whose clock is far from ours, and by how much it is ahead."""

    def look(self) -> None:
        """Compare what was told since."""
        now_ms = self._clock.wall_ms()
        for node, told_ms in self._told():
            if self._heard.get(node) == told_ms:
                continue
            self._heard[node] = told_ms
            off_ms = told_ms - now_ms
            if abs(off_ms) <= OFF_MAX_MS:
                self.off_ms.pop(node, None)
                continue
            self.off_ms[node] = off_ms
            logger.warning("clock_off", extra={"node": node, "ahead_ms": off_ms})
        for node in self.off_ms.keys() - self._image.nodes.keys():
            del self.off_ms[node]

    def _told(self) -> Iterable[tuple[NodeId, int]]:
        for node, record in self._image.nodes.items():
            if node != self._me and record.told_ms:
                yield node, record.told_ms
