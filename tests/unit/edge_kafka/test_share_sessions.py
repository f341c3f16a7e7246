"""Share sessions: what all of them may name together."""

from uuid import UUID

import pytest

from goqueue.edge.kafka.share_sessions import CLOSE, OPEN, ShareSessions, Source
from goqueue.model.errors import ShareSessionNotFound

ORDERS = UUID(int=7)


def _partitions(count: int) -> list[Source]:
    return [(ORDERS, number) for number in range(count)]


def test_the_oldest_session_is_given_up_when_all_name_too_many_partitions() -> None:
    sessions = ShareSessions(sources_max=10)
    for member in ("a", "b", "c"):
        sessions.change(sessions.enter("g", member, OPEN), _partitions(5), ())

    with pytest.raises(ShareSessionNotFound):
        sessions.enter("g", "a", 1)
    assert len(sessions.enter("g", "b", 1).sources) == 5
    assert len(sessions.enter("g", "c", 1).sources) == 5


def test_sessions_that_ended_or_began_anew_make_room() -> None:
    sessions = ShareSessions(sources_max=10)
    sessions.change(sessions.enter("g", "a", OPEN), _partitions(5), ())
    sessions.change(sessions.enter("g", "b", OPEN), _partitions(5), ())
    sessions.enter("g", "a", CLOSE)
    sessions.change(sessions.enter("g", "b", OPEN), _partitions(2), _partitions(1))

    sessions.change(sessions.enter("g", "c", OPEN), _partitions(9), ())

    assert len(sessions.enter("g", "b", 1).sources) == 1
