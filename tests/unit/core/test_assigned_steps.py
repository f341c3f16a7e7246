"""Groups the broker assigns to, step by step: wishes that change, names that return, epochs."""

from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goqueue.core.groups.assigned import AssignedGroup
from goqueue.core.groups.assigned_state import AWAY_EPOCH, Terms
from goqueue.core.groups.events import Event, GroupAssigned, HolderKept, HolderMoved
from goqueue.model.errors import (
    GoQueueError,
    IllegalGeneration,
    InconsistentProtocol,
    InstanceFenced,
    InstanceInUse,
    InvalidPattern,
    MemberEpochFenced,
    NotPartitionOwner,
    StaleMemberEpoch,
    UnknownMember,
    UnsupportedAssignor,
)
from goqueue.model.groups import GroupKind, GroupState, Membership, Sharing, TopicOffsets
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.settings import GroupConfig
from tests.unit.core.assigned_members import (
    CONSUMER,
    COOPERATIVE,
    EAGER,
    NS_PER_MS,
    ORDERS,
    REVOCATION_MS,
    SESSION_MS,
    SHARED,
    Crew,
)

LATE = TopicName("late")


def described(crew: Crew, name: str, **changes: object) -> HolderKept:
    """A member's description with some of it changed."""
    kept = crew.group.member(name).kept
    fields = {field: getattr(kept, field) for field in HolderKept.__slots__}
    return HolderKept(**{**fields, **changes})


def change(crew: Crew, name: str, **changes: object) -> list[Event]:
    events = crew.group.change(described(crew, name, **changes), now_ns=crew.now_ns)
    crew.apply(events)
    return events


def two(terms: Terms = COOPERATIVE) -> Crew:
    """a has 0 and 1, b has 2 and 3, and both know."""
    crew = Crew(terms)
    crew.join("a")
    crew.join("b")
    if crew.to_revoke("a"):
        crew.heartbeat("a", claimed=[0, 1])
    crew.heartbeat("a", "b")
    assert (crew.reads("a"), crew.reads("b")) == ([0, 1], [2, 3])
    return crew


class TestDescriptions:
    def test_a_member_that_says_the_same_again_changes_nothing(self) -> None:
        crew = two()

        assert change(crew, "a") == []
        assert crew.group.generation == 2

    def test_another_address_is_noted_without_a_new_generation(self) -> None:
        crew = two()

        (event,) = change(crew, "a", client_host="elsewhere")

        assert isinstance(event, GroupAssigned)
        assert (crew.group.generation, crew.group.member("a").kept.client_host) == (2, "elsewhere")
        assert crew.reads("a") == [0, 1]

    @pytest.mark.parametrize("wish", [{"topics": (LATE,)}, {"pattern": "x.*"}, {"assignor": "range"}])
    def test_another_wish_is_a_new_generation(self, wish: dict[str, object]) -> None:
        crew = two()
        crew.topics = {ORDERS: 4, LATE: 1}
        crew.follow()

        change(crew, "a", **wish)

        assert crew.group.generation == 3
        assert crew.group.rebalances.reasons["subscription_changed"] == 1

    @pytest.mark.parametrize(
        ("wish", "error"),
        [({"assignor": "magic"}, UnsupportedAssignor), ({"pattern": "(a+)+"}, InvalidPattern)],
    )
    def test_what_cannot_be_wished_for_is_refused_and_changes_nothing(
        self, wish: dict[str, object], error: type[Exception]
    ) -> None:
        crew = two()
        before = list(crew.group.whole_state())

        with pytest.raises(error):
            change(crew, "a", **wish)

        assert list(crew.group.whole_state()) == before

    def test_who_joins_again_joined_when_it_first_came(self) -> None:
        crew = Crew(EAGER)
        crew.join("a")
        kept = described(crew, "a", joined_ms=99, client_id="new")

        crew.apply(crew.group.join(EAGER, kept, now_ns=5))

        assert crew.group.member("a").kept == described(crew, "a", joined_ms=0, client_id="new")
        assert crew.group.member("a").deadline_ns == SESSION_MS * NS_PER_MS + 5

    @pytest.mark.parametrize(
        "terms", [EAGER, SHARED, CONSUMER, Terms(GroupKind.HTTP, Sharing.COOPERATIVE, True)]
    )
    def test_all_members_agree_on_the_terms(self, terms: Terms) -> None:
        crew = two()

        with pytest.raises(InconsistentProtocol):
            crew.group.join(terms, described(crew, "a", member_id="c"), now_ns=0)


class TestEpochs:
    def test_a_member_that_lets_go_of_nothing_it_was_asked_for_stays_in_its_epoch(self) -> None:
        crew = Crew(COOPERATIVE)
        crew.join("a")
        crew.join("b")

        crew.heartbeat("a", claimed=[0, 1, 2, 3])

        assert (crew.group.member("a").epoch, crew.to_revoke("a")) == (1, [2, 3])
        assert crew.group.state is GroupState.RECONCILING
        assert crew.group.is_reconciling("a")

    def test_what_it_was_asked_for_and_is_to_have_after_all_stays_with_it(self) -> None:
        crew = Crew(COOPERATIVE)
        crew.join("a")
        crew.join("b")

        crew.leave("b")
        crew.heartbeat("a")

        assert (crew.reads("a"), crew.to_revoke("a")) == ([0, 1, 2, 3], [])
        assert crew.group.state is GroupState.STABLE

    def test_a_partition_never_has_two_holders(self) -> None:
        crew = Crew(COOPERATIVE)
        for name in "abc":
            crew.join(name)
        crew.heartbeat("b", "c")

        assert (crew.reads("b"), crew.reads("c")) == ([], [])
        crew.heartbeat("a", claimed=[])
        crew.heartbeat("a", "b", "c")
        held = [partition for name in "abc" for partition in crew.reads(name)]
        assert sorted(held) == [0, 1, 2, 3]

    def test_time_to_let_go_runs_only_while_there_is_something_to_let_go_of(self) -> None:
        crew = Crew(COOPERATIVE)
        crew.join("a", session_timeout_ms=1_000_000)
        crew.join("b", session_timeout_ms=1_000_000)

        assert crew.group.next_deadline_ns() == REVOCATION_MS * NS_PER_MS
        crew.release("a", 2, 3)

        assert crew.group.next_deadline_ns() == 1_000_000 * NS_PER_MS
        assert crew.group.advance(now_ns=2 * REVOCATION_MS * NS_PER_MS).events == []

    def test_one_that_was_made_to_let_go_has_no_epoch_before_its_own(self) -> None:
        crew = Crew(COOPERATIVE)
        crew.join("a", session_timeout_ms=1_000_000)
        crew.join("b", session_timeout_ms=1_000_000)

        crew.wait(REVOCATION_MS)

        holder = crew.group.member("a")
        assert (crew.reads("a"), holder.epoch, holder.previous_epoch) == ([0, 1], 2, 2)
        assert crew.group.rebalances.revocation_timeouts == 1
        with pytest.raises(IllegalGeneration):
            crew.heartbeat("a", generation=1)

    @pytest.mark.parametrize("kind", ["heartbeat", "commit"])
    def test_a_consumer_speaks_in_its_present_epoch(self, kind: str) -> None:
        crew = two(CONSUMER)
        who = Membership("crew", "a", 7)

        error = MemberEpochFenced if kind == "heartbeat" else StaleMemberEpoch
        with pytest.raises(error):
            if kind == "heartbeat":
                crew.group.heartbeat(who, now_ns=0)
            else:
                crew.group.admit_commit(who, now_ns=0)

    def test_a_stranger_is_unknown_to_every_verb(self) -> None:
        group, who = two().group, Membership("crew", "ghost", 2)

        for verb in (
            lambda: group.heartbeat(who, now_ns=0),
            lambda: group.release(who, [], now_ns=0),
            lambda: list(group.readable(who, now_ns=0)),
            lambda: group.leave("ghost", now_ns=0),
            lambda: group.admit_commit(who, now_ns=0),
        ):
            with pytest.raises(UnknownMember):
                verb()


class TestCommits:
    def offsets(self, partition: int) -> list[TopicOffsets]:
        return [TopicOffsets(ORDERS, UUID(int=1), ((partition, 5, -1, ""),))]

    @pytest.mark.parametrize(("partition", "is_owner"), [(0, True), (1, True), (2, False), (9, False)])
    def test_a_member_over_http_owns_what_it_holds(self, partition: int, is_owner: bool) -> None:
        crew = two(EAGER)
        if is_owner:
            crew.group.check_owner("a", self.offsets(partition))
            return
        with pytest.raises(NotPartitionOwner):
            crew.group.check_owner("a", self.offsets(partition))

    def test_what_a_member_was_asked_to_let_go_of_is_still_its_own(self) -> None:
        crew = Crew(COOPERATIVE)
        crew.join("a")
        crew.join("b")

        crew.group.check_owner("a", self.offsets(3))

    def test_a_consumer_of_kafka_and_one_that_is_no_member_are_not_asked(self) -> None:
        two(CONSUMER).group.check_owner("a", self.offsets(3))
        two(EAGER).group.check_owner("ghost", self.offsets(3))

    def test_a_commit_is_a_sign_of_life(self) -> None:
        crew = two(EAGER)

        crew.group.admit_commit(Membership("crew", "a", 2), now_ns=77)

        assert crew.group.member("a").deadline_ns == SESSION_MS * NS_PER_MS + 77


class TestStaticMembers:
    def crew(self) -> Crew:
        crew = Crew(CONSUMER)
        crew.join("a", instance_id="one")
        crew.join("b")
        crew.heartbeat("a", claimed=[0, 1])
        crew.heartbeat("a", "b")
        return crew

    def step_out(self, crew: Crew) -> None:
        crew.apply(crew.group.step_out("a", "one", now_ns=crew.now_ns))

    def test_one_that_is_away_keeps_its_partitions_and_holds_nobody_up(self) -> None:
        crew = self.crew()

        self.step_out(crew)

        assert crew.group.member("a").epoch == AWAY_EPOCH
        assert (crew.reads("a"), crew.group.state) == ([0, 1], GroupState.STABLE)

    def test_what_it_is_no_longer_to_have_is_taken_while_it_is_away(self) -> None:
        crew = self.crew()
        self.step_out(crew)

        crew.join("c")
        crew.heartbeat("b", claimed=[])
        crew.heartbeat("b", "c")

        assert len(crew.reads("a")) == 1, "it reads nothing now, so it has let go"
        assert sorted(crew.reads("a") + crew.reads("b") + crew.reads("c")) == [0, 1, 2, 3]

    def test_back_with_another_wish_it_makes_a_new_generation(self) -> None:
        crew = self.crew()
        self.step_out(crew)

        crew.join("a2", instance_id="one", pattern="none")

        assert (crew.group.generation, "a" in crew.group.members) == (3, False)

    def test_it_cannot_take_the_id_of_another_member(self) -> None:
        crew = self.crew()
        self.step_out(crew)

        with pytest.raises(InstanceInUse):
            crew.join("b", instance_id="one")

    def test_it_is_removed_by_its_name_alone(self) -> None:
        crew = self.crew()

        crew.apply(crew.group.leave("", "one", now_ns=0))

        assert list(crew.group.members) == ["b"]
        crew.join("x", instance_id="one")
        assert "x" in crew.group.members

    def test_under_another_id_it_is_fenced(self) -> None:
        with pytest.raises(InstanceFenced):
            self.crew().group.member("other", "one")


class TestTopics:
    def test_topics_that_nobody_subscribes_to_are_none_of_the_groups_business(self) -> None:
        crew = two()
        crew.topics = {ORDERS: 4, LATE: 9}

        crew.follow()

        assert (crew.group.generation, dict(crew.group.topics)) == (2, {ORDERS: 4})

    def test_a_group_without_members_follows_nobody(self) -> None:
        group = AssignedGroup("crew", GroupConfig())

        assert group.follow({ORDERS: 4}, now_ns=0) == []
        assert (group.leader, group.state) == ("", GroupState.EMPTY)

    def test_a_topic_that_is_gone_is_let_go_of(self) -> None:
        crew = two()
        crew.topics = {}

        crew.follow()
        crew.heartbeat("a", "b", claimed=[])

        assert (crew.reads("a"), crew.reads("b"), crew.group.is_rebalancing) == ([], [], False)

    def test_the_first_that_came_is_shown_as_the_leader(self) -> None:
        crew = two()
        assert crew.group.leader == "a"

        crew.leave("a")

        assert crew.group.leader == "b"


STEP = st.one_of(
    st.tuples(st.sampled_from(["join", "leave", "heartbeat", "let go", "release"]), st.sampled_from("abc")),
    st.tuples(st.sampled_from(["topics", "wait"]), st.sampled_from(["1", "3", "7"])),
)


@settings(max_examples=60)
@given(st.sampled_from([EAGER, COOPERATIVE, SHARED, CONSUMER]), st.lists(STEP, max_size=25))
def test_the_events_lead_to_the_same_group_and_no_partition_has_two_holders(
    terms: Terms, steps: list[tuple[str, str]]
) -> None:
    crew = Crew(terms)
    for step, what in steps:
        try:
            match step:
                case "join":
                    crew.join(what)
                case "leave":
                    crew.leave(what)
                case "heartbeat":
                    crew.heartbeat(what)
                case "let go":
                    crew.heartbeat(what, claimed=[])
                case "release":
                    crew.release(what, *crew.to_revoke(what))
                case "topics":
                    crew.topics = {ORDERS: int(what)}
                    crew.follow()
                case "wait":
                    crew.wait(int(what) * 3_000)
        except GoQueueError:
            continue
        readers: dict[TopicPartition, list[str]] = {}
        for name, holder in crew.group.members.items():
            for place in holder.readable:
                readers.setdefault(place, []).append(name)
        if terms is not SHARED:
            assert all(len(names) == 1 for names in readers.values()), readers
        if crew.group.state is GroupState.STABLE and terms is not SHARED:
            assert len(readers) == crew.topics[ORDERS], "at rest everything has a reader"
    again = AssignedGroup("crew", GroupConfig())
    for event in crew.group.whole_state():
        assert isinstance(event, GroupAssigned | HolderMoved)
        again.apply(event)

    assert list(again.whole_state()) == list(crew.group.whole_state())
    assert again.is_rebalancing == crew.group.is_rebalancing
    assert {name: again.member(name).readable for name in again.members} == {
        name: crew.group.member(name).readable for name in crew.group.members
    }
