"""Share sessions: which partitions a share consumer fetches from, so that it need not say so each time.

A session is known by group and member and counts its requests: one that comes out of turn is refused,
and the client opens another. The oldest is given up when there are too many; its client does the same.
Partitions are known by the ids of their topics: one that was deleted and made anew is another one.
"""

from collections.abc import Iterable
from uuid import UUID

from goqueue.model.errors import ShareSessionNotFound, ShareSessionStale

OPEN, CLOSE = 0, -1
Source = tuple[UUID, int]
"""A topic's id, and the number of a partition."""
_SESSIONS_MAX = 10_000
_SOURCES_MAX = 1_000_000
"""Partitions that all sessions together name."""
_EPOCH_MAX = 2**31 - 1


class ShareSession:
    __slots__ = ("next_epoch", "sources")

    def __init__(self) -> None:
        self.next_epoch = 1
        self.sources: dict[Source, None] = {}


class ShareSessions:
    def __init__(self, *, sources_max: int = _SOURCES_MAX) -> None:
        self._sessions: dict[tuple[str, str], ShareSession] = {}
        self._sources_max = sources_max
        self._source_count = 0

    def enter(self, group: str, member_id: str, epoch: int) -> ShareSession:
        """The session of a request, opened by epoch 0, ended by -1, else the one whose turn it is."""
        key = (group, member_id)
        if epoch == OPEN:
            self._forget(key)
            if len(self._sessions) >= _SESSIONS_MAX:
                self._forget(next(iter(self._sessions)))
            session = self._sessions[key] = ShareSession()
            return session
        found = self._sessions.pop(key, None)
        if found is None:
            raise ShareSessionNotFound(f"member {member_id} of group {group} has no share session here")
        if epoch == CLOSE:
            self._source_count -= len(found.sources)
            return found
        self._sessions[key] = found
        if epoch != found.next_epoch:
            raise ShareSessionStale(
                f"the share session of member {member_id} expects epoch {found.next_epoch}, not {epoch}"
            )
        found.next_epoch = 1 if epoch == _EPOCH_MAX else epoch + 1
        return found

    def change(self, session: ShareSession, added: Iterable[Source], forgotten: Iterable[Source]) -> None:
        """A request names more partitions, or some that are not wanted any more."""
        before = len(session.sources)
        session.sources.update(dict.fromkeys(added))
        for source in forgotten:
            session.sources.pop(source, None)
        self._source_count += len(session.sources) - before
        while self._source_count > self._sources_max and len(self._sessions) > 1:
            self._forget(next(iter(self._sessions)))

    def _forget(self, key: tuple[str, str]) -> None:
        gone = self._sessions.pop(key, None)
        if gone is not None:
            self._source_count -= len(gone.sources)
