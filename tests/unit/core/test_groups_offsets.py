"""The groups machine: committed offsets, deletion, and the state written anew."""

from uuid import UUID

import pytest

from goqueue.core.groups.events import Event, OffsetsCommitted
from goqueue.core.groups.groups import Groups
from goqueue.model.errors import GroupNotEmpty, GroupNotFound, GroupSubscribed, UnknownMember
from goqueue.model.group_commands import JoinGroup, SyncGroup
from goqueue.model.groups import Membership, OffsetRow, TopicOffsets
from goqueue.model.ids import TopicName
from goqueue.model.settings import GroupConfig

ORDERS = TopicName("orders")
ORDERS_ID, LATER_ID = UUID(int=1), UUID(int=2)
READER = Membership("readers", "", -1)
SUBSCRIBED_TO_ORDERS = b"\x00\x00\x00\x00\x00\x01\x00\x06orders"


def new_groups() -> Groups:
    return Groups(GroupConfig(initial_delay_ms=0))


def commit(groups: Groups, *rows: OffsetRow, topic_id: UUID = ORDERS_ID, who: Membership = READER) -> None:
    groups.apply(groups.commit_offsets(who, [TopicOffsets(ORDERS, topic_id, rows)], now_ns=0, now_ms=0))


def with_a_member(groups: Groups) -> None:
    command = JoinGroup(
        group="readers",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=(("range", SUBSCRIBED_TO_ORDERS),),
    )
    group = groups.ensure("readers").as_classic()
    group.join(command, fresh_id="a", now_ns=0)
    changed = group.sync(SyncGroup(group="readers", member_id="a", generation=1), now_ns=0)
    assert changed is not None
    groups.apply(changed)


def offsets(groups: Groups, topic_id: UUID = ORDERS_ID) -> dict[int, OffsetRow]:
    return groups.group("readers").offsets.of(ORDERS, topic_id)


def test_the_last_commit_of_a_partition_counts() -> None:
    groups = new_groups()
    commit(groups, (0, 5, -1, ""), (1, 7, 3, "note"))
    commit(groups, (0, 4, -1, ""))

    assert offsets(groups) == {0: (0, 4, -1, ""), 1: (1, 7, 3, "note")}


def test_offsets_of_a_deleted_topic_do_not_count_for_one_of_the_same_name() -> None:
    groups = new_groups()
    commit(groups, (0, 5, -1, ""))
    assert offsets(groups, LATER_ID) == {}

    commit(groups, (1, 1, -1, ""), topic_id=LATER_ID)

    assert offsets(groups, LATER_ID) == {1: (1, 1, -1, "")}
    assert offsets(groups) == {}


def test_a_refused_commit_changes_nothing() -> None:
    groups = new_groups()
    with_a_member(groups)
    commit(groups, (0, 5, -1, ""), who=Membership("readers", "a", 1))

    with pytest.raises(UnknownMember):
        commit(groups, (0, 9, -1, ""))

    assert offsets(groups)[0][1] == 5


def test_offsets_of_a_topic_that_members_read_stay() -> None:
    groups = new_groups()
    with_a_member(groups)

    with pytest.raises(GroupSubscribed):
        groups.delete_offsets("readers", ORDERS, [0])
    groups.delete_offsets("readers", TopicName("payments"), [0])


def test_offsets_are_deleted_one_by_one() -> None:
    groups = new_groups()
    commit(groups, (0, 5, -1, ""), (1, 7, -1, ""))
    groups.apply(groups.delete_offsets("readers", ORDERS, [1, 2]))

    assert offsets(groups) == {0: (0, 5, -1, "")}


def test_only_a_group_without_members_is_deleted() -> None:
    groups = new_groups()
    with_a_member(groups)
    with pytest.raises(GroupNotEmpty):
        groups.delete_group("readers")
    with pytest.raises(GroupNotFound):
        groups.delete_group("strangers")

    groups = new_groups()
    commit(groups, (0, 5, -1, ""))
    groups.apply(groups.delete_group("readers"))
    assert groups.get("readers") is None


def test_a_group_that_the_journal_never_heard_of_is_just_forgotten() -> None:
    groups = new_groups()
    groups.ensure("readers")

    assert groups.drop_if_void("readers") is None
    assert groups.get("readers") is None


def test_a_group_with_offsets_is_not_void() -> None:
    groups = new_groups()
    commit(groups, (0, 5, -1, ""))

    assert groups.drop_if_void("readers") is None
    assert offsets(groups)


def test_the_state_written_anew_leads_to_the_same_state() -> None:
    groups = new_groups()
    commit(groups, (0, 5, -1, "note"))
    with_a_member(groups)
    again = new_groups()
    again.apply(OffsetsCommitted("gone", ()))

    events: list[Event] = list(groups.whole_state())
    for event in events:
        again.apply(event)

    assert list(again.whole_state()) == events
    assert [record.membership.name for record in again] == ["readers"]
    assert list(again.group("readers").membership.members) == ["a"]
