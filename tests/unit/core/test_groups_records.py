"""All groups of one journal: how a group changes its kind, what transactions hold for it, and replay."""

from typing import get_args
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goqueue.core.groups.assigned_state import Terms
from goqueue.core.groups.events import (
    EVENT_TYPES,
    Event,
    GroupAssigned,
    GroupChanged,
    GroupDeleted,
    GroupSeen,
    HolderKept,
    MemberKept,
    OffsetsCommitted,
    OffsetsDeleted,
    OffsetsPended,
    OffsetsReset,
    PendingDropped,
    StateReset,
)
from goqueue.core.groups.groups import Groups
from goqueue.model.delivery import REDRIVE_GROUP_PREFIX
from goqueue.model.errors import (
    GroupNotEmpty,
    GroupNotFound,
    GroupSubscribed,
    IllegalGeneration,
    InconsistentProtocol,
    NotPartitionOwner,
    UnknownMember,
)
from goqueue.model.groups import GroupKind, GroupState, Membership, Sharing, TopicOffsets
from goqueue.model.ids import TopicName
from goqueue.model.settings import GroupConfig

ORDERS = TopicName("orders")
READER = Membership("readers", "", -1)
HTTP = Terms(GroupKind.HTTP, Sharing.EAGER)
CONSUMER = Terms(GroupKind.CONSUMER, Sharing.COOPERATIVE)


def offsets(partition: int = 0, offset: int = 5) -> TopicOffsets:
    return TopicOffsets(ORDERS, UUID(int=1), ((partition, offset, -1, ""),))


def groups_of(*events: Event) -> Groups:
    groups = Groups(GroupConfig(offsets_retention_ms=20_000))
    for event in events:
        groups.apply(event)
    return groups


def classic(generation: int, *names: str) -> GroupChanged:
    """A classic group whose members these are, as the journal has it."""
    members = tuple(MemberKept(name, None, "", "", 10_000, 10_000, (("range", b""),), b"") for name in names)
    return GroupChanged("readers", generation, "consumer", "range", names[0] if names else "", members)


def with_members(groups: Groups, *names: str, terms: Terms = HTTP) -> Groups:
    """The broker assigns to these."""
    for name in names:
        group = groups.ensure("readers").as_assigned()
        kept = HolderKept(name, None, "", "", 10_000, 10_000, (ORDERS,), None, None, 0)
        for event in (
            *group.follow({ORDERS: 2}, now_ns=0),
            *group.join(terms, kept, now_ns=0),
        ):
            groups.apply(event)
        for event in group.arrive(name, now_ns=0):
            groups.apply(event)
    return groups


class TestKinds:
    """A group without members can become one of another kind; its generations go on."""

    def test_a_group_begins_as_a_classic_one(self) -> None:
        groups = groups_of()

        assert groups.get("readers") is None
        assert groups.ensure("readers").kind is GroupKind.CLASSIC
        assert groups.ensure("readers") is groups.group("readers")

    def test_an_empty_classic_group_becomes_one_that_the_broker_assigns_to(self) -> None:
        groups = groups_of(classic(4, "a"), classic(5))

        with_members(groups, "b")

        record = groups.group("readers")
        assert record.kind is GroupKind.HTTP
        assert record.membership.generation == 6

    def test_and_back(self) -> None:
        groups = with_members(groups_of(), "a")
        assigned = groups.group("readers").as_assigned()
        for event in assigned.leave("a", now_ns=0):
            groups.apply(event)

        changed = groups.group("readers").as_classic()

        assert (changed.generation, groups.group("readers").kind) == (1, GroupKind.CLASSIC)
        assert groups.group("readers").as_classic() is changed

    def test_a_group_with_members_stays_as_it_is(self) -> None:
        with pytest.raises(InconsistentProtocol, match="of kind classic and has members"):
            groups_of(classic(1, "a")).group("readers").as_assigned()
        with pytest.raises(InconsistentProtocol, match="has members"):
            with_members(groups_of(), "a").group("readers").as_classic()


class TestCommits:
    def test_a_group_that_is_not_there_begins_with_its_first_offsets(self) -> None:
        groups = groups_of()

        groups.apply(groups.commit_offsets(READER, [offsets()], now_ns=0, now_ms=77))

        assert list(groups.group("readers").offsets.topics()) == [offsets()]
        assert groups.group("readers").seen_ms == 77

    def test_a_stranger_commits_nothing_to_a_group_with_members(self) -> None:
        groups = with_members(groups_of(), "a")

        with pytest.raises(UnknownMember):
            groups.commit_offsets(READER, [offsets()], now_ns=0, now_ms=0)

    def test_over_http_a_member_commits_only_what_is_its_own(self) -> None:
        groups = with_members(groups_of(), "a", "b")
        held = groups.group("readers").as_assigned().member("a").readable
        who = Membership("readers", "a", 2)

        mine = groups.commit_offsets(who, [offsets(held[0].partition)], now_ns=0, now_ms=0)
        assert isinstance(mine, OffsetsCommitted)
        with pytest.raises(NotPartitionOwner):
            groups.commit_offsets(who, [offsets(1 - held[0].partition)], now_ns=0, now_ms=0)

    def test_a_reset_sets_offsets_back_also_below_what_was_committed(self) -> None:
        groups = groups_of(OffsetsCommitted("readers", (offsets(offset=50),), 1))

        groups.apply(groups.reset_offsets("readers", [offsets(offset=3)], is_forced=False, now_ms=9))

        assert list(groups.group("readers").offsets.topics()) == [offsets(offset=3)]
        assert groups.group("readers").seen_ms == 9

    def test_a_group_that_is_not_there_can_be_told_where_to_begin(self) -> None:
        reset = groups_of().reset_offsets("new", [offsets()], is_forced=False, now_ms=9)

        assert reset == OffsetsReset("new", (offsets(),), 9)

    def test_offsets_of_a_topic_that_a_member_may_read_are_not_deleted(self) -> None:
        groups = with_members(groups_of(), "a")

        with pytest.raises(GroupSubscribed):
            groups.delete_offsets("readers", ORDERS, [0])
        deleted = groups.delete_offsets("readers", TopicName("late"), [0, 3])
        assert deleted == OffsetsDeleted("readers", TopicName("late"), (0, 3))


class TestTransactions:
    """Offsets that a transaction gives become the group's when it commits, and are gone when it does not."""

    def pended(self, *topics: TopicOffsets, producer_id: int = 7) -> Groups:
        return groups_of(*(OffsetsPended("readers", producer_id, (one,)) for one in topics))

    def test_what_a_transaction_holds_is_not_the_groups_yet(self) -> None:
        groups = self.pended(offsets())

        assert not groups.group("readers").offsets
        assert not groups.group("readers").is_void

    def test_a_commit_makes_it_the_groups_in_the_order_it_was_given(self) -> None:
        groups = self.pended(offsets(offset=9), offsets(offset=4))

        events = groups.decide_pending("readers", 7, is_committed=True, now_ms=3)
        for event in events:
            groups.apply(event)

        assert events == (
            OffsetsCommitted("readers", (offsets(offset=9), offsets(offset=4)), 3),
            PendingDropped("readers", 7),
        )
        assert list(groups.group("readers").offsets.topics()) == [offsets(offset=4)]
        assert not groups.group("readers").pending

    def test_an_abort_drops_it(self) -> None:
        groups = self.pended(offsets())

        events = groups.decide_pending("readers", 7, is_committed=False, now_ms=3)
        for event in events:
            groups.apply(event)

        assert events == (PendingDropped("readers", 7),)
        assert groups.group("readers").is_void

    @pytest.mark.parametrize("name", ["readers", "ghosts"])
    def test_a_decision_about_nothing_is_no_event(self, name: str) -> None:
        assert self.pended(offsets()).decide_pending(name, 8, is_committed=True, now_ms=3) == ()

    def test_an_old_client_that_names_no_member_is_let_through(self) -> None:
        groups = with_members(groups_of(), "a", terms=CONSUMER)

        pended = groups.pend_offsets(READER, 7, [offsets()], now_ns=0)

        assert pended == OffsetsPended("readers", 7, (offsets(),))

    @pytest.mark.parametrize(
        ("who", "error"),
        [
            (Membership("readers", "ghost", 1), UnknownMember),
            (Membership("readers", "a", 9), IllegalGeneration),
        ],
    )
    def test_one_that_names_a_member_has_to_be_it(self, who: Membership, error: type[Exception]) -> None:
        groups = with_members(groups_of(), "a", terms=CONSUMER)

        with pytest.raises(error):
            groups.pend_offsets(who, 7, [offsets()], now_ns=0)


class TestTheEndOfGroups:
    def test_a_group_that_is_not_there_cannot_be_deleted(self) -> None:
        with pytest.raises(GroupNotFound):
            groups_of().delete_group("ghosts")
        with pytest.raises(GroupNotEmpty):
            with_members(groups_of(), "a").delete_group("readers")

    def test_whoever_holds_on_to_a_deleted_group_sees_that_it_is_dead(self) -> None:
        groups = groups_of(OffsetsCommitted("readers", (offsets(),), 1))
        membership = groups.group("readers").membership

        groups.apply(groups.delete_group("readers"))
        groups.apply(GroupDeleted("readers"))

        assert membership.state is GroupState.DEAD
        assert groups.get("readers") is None

    def test_rebalances_of_groups_that_are_no_more_are_still_counted(self) -> None:
        groups = with_members(groups_of(), "a", "b")

        groups.apply(GroupDeleted("readers"))

        assert groups.ended.total == 2

    @pytest.mark.parametrize("what", ["nothing", "offsets", "pending", "members"])
    def test_only_a_group_in_which_nothing_is_left_is_void(self, what: str) -> None:
        groups = groups_of(classic(1, "a"), classic(2))
        match what:
            case "offsets":
                groups.apply(OffsetsCommitted("readers", (offsets(),), 1))
            case "pending":
                groups.apply(OffsetsPended("readers", 7, (offsets(),)))
            case "members":
                groups.apply(classic(3, "a"))

        dropped = groups.drop_if_void("readers")

        assert dropped == (GroupDeleted("readers") if what == "nothing" else None)
        assert groups.drop_if_void("ghosts") is None

    def test_offsets_that_a_transaction_waits_for_are_not_forgotten(self) -> None:
        groups = groups_of(
            OffsetsCommitted("readers", (offsets(),), 1), OffsetsPended("readers", 7, (offsets(),))
        )

        assert groups.expire_offsets(now_ms=10**9) == [GroupSeen("readers", 10**9)]
        groups.apply(PendingDropped("readers", 7))
        assert groups.expire_offsets(now_ms=10**9) == [GroupDeleted("readers")]

    def test_what_was_sent_back_is_remembered_for_as_long_as_the_dead_letters_are_kept(self) -> None:
        name = f"{REDRIVE_GROUP_PREFIX}orders"
        groups = groups_of(OffsetsCommitted(name, (offsets(),), 1))

        assert groups.expire_offsets(now_ms=10**12) == []

    def test_a_group_without_offsets_has_nothing_to_forget(self) -> None:
        assert groups_of(classic(1, "a")).expire_offsets(now_ms=10**12) == []


def test_after_a_restart_all_members_have_a_whole_session() -> None:
    groups = groups_of(classic(1, "a"))

    groups.resume(now_ns=5)

    assert groups.group("readers").membership.next_deadline_ns() == 10_000 * 1_000_000 + 5


def test_every_event_has_a_name_for_the_journal() -> None:
    assert {kind.__name__: kind for kind in get_args(Event)} == EVENT_TYPES


NAMES = st.sampled_from(("a", "b"))
TOPICS = st.builds(offsets, st.integers(0, 2), st.integers(0, 9)).map(lambda one: (one,))
EVENT = st.one_of(
    st.builds(OffsetsCommitted, NAMES, TOPICS, st.integers(1, 9)),
    st.builds(OffsetsReset, NAMES, TOPICS, st.integers(1, 9)),
    st.builds(OffsetsPended, NAMES, st.integers(1, 2), TOPICS),
    st.builds(PendingDropped, NAMES, st.integers(1, 2)),
    st.builds(OffsetsDeleted, NAMES, st.just(ORDERS), st.sets(st.integers(0, 2)).map(tuple)),
    st.builds(GroupDeleted, NAMES),
)


@given(st.lists(EVENT, max_size=25))
def test_the_state_written_anew_leads_to_the_same_groups(events: list[Event]) -> None:
    groups = groups_of(*events)

    anew = groups_of(OffsetsCommitted("stale", (offsets(),), 1), *groups.whole_state())

    first, *written = groups.whole_state()
    assert first == StateReset()
    assert list(anew.whole_state())[1:] == written
    for record in groups:
        if not record.is_void:
            again = anew.group(record.membership.name)
            assert list(again.offsets.topics()) == list(record.offsets.topics())
            assert list(again.pending) == list(record.pending)
            if record.offsets:
                assert again.seen_ms == record.seen_ms


def test_members_of_every_kind_come_back_from_the_state_written_anew() -> None:
    for groups in (groups_of(classic(3, "a", "b")), with_members(groups_of(), "a", "b", terms=CONSUMER)):
        anew = groups_of(*groups.whole_state())

        assert list(anew.whole_state()) == list(groups.whole_state())
        assert set(anew.group("readers").membership.members) == {"a", "b"}
        assert anew.group("readers").is_journalled
        assert anew.group("readers").kind is groups.group("readers").kind
        kinds = {type(event) for event in anew.whole_state()}
        assert kinds & {GroupChanged, GroupAssigned}
