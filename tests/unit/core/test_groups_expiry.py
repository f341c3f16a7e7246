"""The groups machine: when offsets that nobody needs are forgotten, and when they are set from outside."""

from uuid import UUID

import pytest

from goqueue.core.groups.events import GroupDeleted, GroupSeen, OffsetsCommitted, OffsetsReset
from goqueue.core.groups.groups import Groups
from goqueue.model.errors import GroupNotEmpty
from goqueue.model.group_commands import JoinGroup, SyncGroup
from goqueue.model.groups import Membership, TopicOffsets
from goqueue.model.ids import TopicName
from goqueue.model.settings import GroupConfig

ORDERS = TopicOffsets(TopicName("orders"), UUID(int=1), ((0, 5, -1, ""),))
READER = Membership("readers", "", -1)
RETENTION_MS, NOTE_MS = 20_000, 1_000


def groups_that_committed(at_ms: int) -> Groups:
    groups = Groups(GroupConfig(initial_delay_ms=0, offsets_retention_ms=RETENTION_MS))
    groups.apply(groups.commit_offsets(READER, [ORDERS], now_ns=0, now_ms=at_ms))
    return groups


def with_a_member(groups: Groups) -> None:
    group = groups.ensure("readers").as_classic()
    command = JoinGroup(
        group="readers",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=(("range", b""),),
    )
    group.join(command, fresh_id="a", now_ns=0)
    changed = group.sync(SyncGroup(group="readers", member_id="a", generation=1), now_ns=0)
    assert changed is not None
    groups.apply(changed)


def test_a_group_without_members_ends_after_the_retention_and_never_before() -> None:
    groups = groups_that_committed(at_ms=100)

    assert groups.expire_offsets(now_ms=100 + RETENTION_MS + NOTE_MS) == []
    assert groups.expire_offsets(now_ms=101 + RETENTION_MS + NOTE_MS) == [GroupDeleted("readers")]


def test_a_group_with_members_is_noted_now_and_then() -> None:
    groups = groups_that_committed(at_ms=100)
    with_a_member(groups)

    assert groups.expire_offsets(now_ms=100 + NOTE_MS) == []
    (seen,) = groups.expire_offsets(now_ms=100 + 5 * RETENTION_MS)
    assert seen == GroupSeen("readers", 100 + 5 * RETENTION_MS)
    groups.apply(seen)
    assert groups.expire_offsets(now_ms=100 + 5 * RETENTION_MS) == []


def test_offsets_of_a_journal_that_tells_no_times_count_from_when_they_are_found() -> None:
    groups = groups_that_committed(at_ms=0)

    (seen,) = groups.expire_offsets(now_ms=10 * RETENTION_MS)

    assert seen == GroupSeen("readers", 10 * RETENTION_MS)


def test_the_state_written_anew_remembers_when_the_group_was_seen() -> None:
    groups = groups_that_committed(at_ms=100)
    groups.apply(GroupSeen("readers", 300))
    again = Groups(GroupConfig())

    for event in groups.whole_state():
        again.apply(event)

    assert again.group("readers").seen_ms == 300
    assert OffsetsCommitted("readers", (ORDERS,), 300) in list(groups.whole_state())


def test_a_reset_is_refused_for_a_group_with_members_unless_forced() -> None:
    groups = groups_that_committed(at_ms=100)
    with_a_member(groups)

    with pytest.raises(GroupNotEmpty):
        groups.reset_offsets("readers", [ORDERS], is_forced=False, now_ms=200)
    reset = groups.reset_offsets("readers", [ORDERS], is_forced=True, now_ms=200)

    assert reset == OffsetsReset("readers", (ORDERS,), 200)
    groups.apply(reset)
    assert groups.group("readers").seen_ms == 200
