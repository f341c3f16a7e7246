"""Progress as a consumer group: where a query goes on reading, told to the node, so that lag shows.

The checkpoint stays the one place from which a query goes on. A group that cannot be told is an error when
a query begins, because somebody else may be using it; later on it is no reason to stop reading.
"""

import logging
import time
from collections.abc import Mapping

from goqueue.client.calls import groups
from goqueue.client.calls.groups import OffsetMap
from goqueue.client.connection import Client, Refused

_log = logging.getLogger(__name__)
_REMIND_S = 3_600
"""Nodes forget the offsets of a group that nobody has told of for days: a quiet topic must not look so."""


class GroupProgress:
    """The offsets of a group that is a query's own."""

    def __init__(self, client: Client, group: str) -> None:
        self._client = client
        self._group = group
        self._last: Mapping[str, Mapping[str, int]] | None = None
        self._told_s = 0.0
        self._is_refused = False

    def publish(self, offsets: Mapping[str, Mapping[str, int]]) -> None:
        """Tell where the query goes on; everything before is done."""
        now_s = time.monotonic()
        if offsets == self._last and now_s - self._told_s < _REMIND_S:
            return
        try:
            self._client.carry(groups.commit_offsets(self._group, offsets))
            self._is_refused = False
        except Refused as refused:
            if self._last is None:
                raise
            if not self._is_refused:
                _log.warning("group_not_told group=%s problem=%s", self._group, refused)
            self._is_refused = True
        self._last, self._told_s = offsets, now_s

    def published(self) -> OffsetMap:
        """What the node knows of the group."""
        return self._client.carry(groups.offsets(self._group)).offsets
