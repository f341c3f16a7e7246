"""One group that the broker assigns to: who may read what, from when on, and who is not listened to."""

from uuid import UUID

import pytest

from goqueue.core.groups.assigned import TOPICS_MAX, AssignedGroup
from goqueue.core.groups.events import GroupAssigned, HolderMoved
from goqueue.core.groups.groups import Groups
from goqueue.model.errors import (
    GroupFull,
    IllegalGeneration,
    InconsistentProtocol,
    InstanceFenced,
    InstanceInUse,
    Invalid,
    InvalidPattern,
    InvalidSessionTimeout,
    MemberEpochFenced,
    NotPartitionOwner,
    NotRebalancing,
    StaleMemberEpoch,
    UnknownMember,
    UnsupportedAssignor,
)
from goqueue.model.groups import GroupState, Membership, TopicOffsets
from goqueue.model.ids import TopicName
from goqueue.model.settings import GroupConfig
from tests.unit.core.assigned_members import (
    CONSUMER,
    COOPERATIVE,
    EAGER,
    ORDERS,
    REVOCATION_MS,
    SESSION_MS,
    SHARED,
    Crew,
)


def crew_of_two(crew: Crew) -> Crew:
    """a has 0 and 1, b has 2 and 3, and both know."""
    crew.join("a")
    crew.join("b")
    if crew.to_revoke("a"):
        crew.heartbeat("a", claimed=[0, 1])
    crew.heartbeat("a", "b")
    assert (crew.reads("a"), crew.reads("b")) == ([0, 1], [2, 3])
    return crew


def test_the_first_member_has_everything_in_generation_1() -> None:
    for terms in (EAGER, COOPERATIVE, SHARED, CONSUMER):
        crew = Crew(terms)
        crew.join("a")

        assert (crew.group.generation, crew.reads("a")) == (1, [0, 1, 2, 3])
        assert crew.group.state is GroupState.STABLE


def test_an_eager_group_changes_at_once_and_refuses_the_old_generation() -> None:
    crew = Crew(EAGER)
    crew.join("a")
    crew.join("b")

    assert (crew.reads("a"), crew.reads("b")) == ([0, 1], [2, 3])
    with pytest.raises(IllegalGeneration):
        crew.heartbeat("a", generation=1)
    with pytest.raises(IllegalGeneration):
        crew.group.readable(Membership("crew", "a", 1), now_ns=0)
    crew.heartbeat("a", generation=0)
    crew.heartbeat("a", generation=2)


def test_a_shared_group_listens_to_every_generation_it_has_had() -> None:
    crew = Crew(SHARED)
    crew.join("a")
    crew.join("b")

    assert crew.reads("a") == crew.reads("b") == [0, 1, 2, 3]
    crew.heartbeat("a", generation=1)
    with pytest.raises(IllegalGeneration):
        crew.heartbeat("a", generation=3)


def test_a_cooperative_member_keeps_a_partition_until_it_lets_go() -> None:
    crew = Crew(COOPERATIVE)
    crew.join("a")
    crew.join("b")

    crew.heartbeat("a", "b")
    assert (crew.reads("a"), crew.to_revoke("a"), crew.reads("b")) == ([0, 1, 2, 3], [2, 3], [])
    crew.release("a", 3)
    crew.heartbeat("b")
    assert (crew.reads("a"), crew.reads("b"), crew.group.is_rebalancing) == ([0, 1, 2], [3], True)
    crew.release("a", 2)
    crew.heartbeat("b")

    assert (crew.reads("a"), crew.reads("b"), crew.group.is_rebalancing) == ([0, 1], [2, 3], False)
    assert {holder.epoch for holder in crew.group.members.values()} == {2}


def test_nothing_can_be_let_go_of_unasked() -> None:
    crew = crew_of_two(Crew(COOPERATIVE))

    with pytest.raises(NotRebalancing):
        crew.release("a", 0)
    assert crew.reads("a") == [0, 1]


def test_what_is_not_let_go_of_in_time_is_taken_and_the_old_epoch_refused() -> None:
    for terms, refusal in ((COOPERATIVE, IllegalGeneration), (CONSUMER, MemberEpochFenced)):
        crew = Crew(terms)
        crew.join("a")
        crew.join("b")
        for _ in range(REVOCATION_MS // SESSION_MS * 2):
            crew.wait(SESSION_MS // 2)
            if crew.to_revoke("a"):
                crew.heartbeat("a", claimed=[0, 1, 2, 3], generation=1)
            crew.heartbeat("b")

        assert (crew.reads("a"), crew.reads("b")) == ([0, 1], [2, 3])
        assert (crew.group.rebalances.revocation_timeouts, crew.group.rebalances.failed) == (1, 1)
        with pytest.raises(refusal):
            crew.heartbeat("a", generation=1, claimed=[0, 1, 2, 3])


def test_a_silent_member_is_missed_after_its_session() -> None:
    crew = crew_of_two(Crew(COOPERATIVE))

    crew.wait(SESSION_MS - 1)
    crew.heartbeat("b")
    crew.wait(1)
    crew.heartbeat("b")

    assert crew.reads("b") == [0, 1, 2, 3]
    with pytest.raises(UnknownMember):
        crew.heartbeat("a", generation=2)
    assert crew.group.rebalances.reasons["member_expired"] == 1


def test_reading_is_a_sign_of_life() -> None:
    crew = Crew(EAGER)
    crew.join("a")
    crew.wait(SESSION_MS - 1)
    crew.group.readable(Membership("crew", "a", 1), now_ns=crew.now_ns)
    crew.wait(SESSION_MS - 1)

    assert crew.reads("a") == [0, 1, 2, 3]


def test_the_last_member_that_leaves_ends_no_generation() -> None:
    crew = Crew(EAGER)
    crew.join("a")
    crew.leave("a")

    assert (crew.group.generation, crew.group.state) == (1, GroupState.EMPTY)
    assert crew.group.next_deadline_ns() is None
    crew.join("b")
    assert (crew.group.generation, crew.reads("b")) == (2, [0, 1, 2, 3])


def test_an_empty_group_can_be_shared_out_in_another_way() -> None:
    crew = Crew(EAGER)
    crew.join("a")
    crew.terms = COOPERATIVE
    with pytest.raises(InconsistentProtocol):
        crew.join("b")
    crew.leave("a")

    crew.join("b")

    assert crew.group.terms == COOPERATIVE


def test_a_member_that_comes_back_changes_nothing() -> None:
    crew = crew_of_two(Crew(EAGER))

    crew.join("a")

    assert (crew.group.generation, crew.reads("a")) == (2, [0, 1])


def test_assignments_follow_topics_that_grow_come_and_go() -> None:
    crew = Crew(EAGER, topics={ORDERS: 1})
    crew.join("a", topics=[ORDERS, TopicName("later")])
    crew.topics = {ORDERS: 3, TopicName("other"): 1}
    crew.follow()
    assert (crew.group.generation, crew.reads("a")) == (2, [0, 1, 2])

    crew.topics = {**crew.topics, TopicName("later"): 1}
    crew.follow()
    crew.topics = {TopicName("later"): 1, TopicName("unrelated"): 5}
    crew.follow()

    assert (crew.group.generation, crew.reads("a")) == (4, [])
    assert [str(place) for place in crew.group.member("a").readable] == ["later/0"]


def test_a_pattern_finds_topics_that_come_later() -> None:
    crew = Crew(CONSUMER)
    crew.join("a", topics=[], pattern="ord.*")
    crew.topics = {**crew.topics, TopicName("ordnance"): 1, TopicName("border"): 1}
    crew.follow()
    crew.heartbeat("a")

    assert {place.topic for place in crew.group.member("a").readable} == {"orders", "ordnance"}
    assert crew.group.is_subscribed(TopicName("ordeal"))
    assert not crew.group.is_subscribed(TopicName("border"))


@pytest.mark.parametrize("pattern", ["[", "(a+)+", "(a|aa)*", r"(a)\1", "(?=a)", ".*.*.*.*x", "x" * 600])
def test_a_pattern_that_could_take_for_ever_is_refused(pattern: str) -> None:
    crew = Crew(CONSUMER)

    with pytest.raises(InvalidPattern):
        crew.join("a", topics=[], pattern=pattern)
    assert crew.group.is_vacant


def test_most_members_choose_the_assignor() -> None:
    crew = Crew(EAGER)
    crew.join("a", assignor="range")
    crew.join("b", assignor="roundrobin")
    assert crew.group.assignor == "range"
    crew.join("c", assignor="roundrobin")
    assert crew.group.assignor == "roundrobin"
    with pytest.raises(UnsupportedAssignor):
        crew.join("d", assignor="magic")


def test_a_group_has_bounds() -> None:
    crew = Crew(EAGER)
    for name in "abcd":
        crew.join(name)
    with pytest.raises(GroupFull):
        crew.join("e")
    crew.leave("a")
    with pytest.raises(InvalidSessionTimeout):
        crew.join("e", session_timeout_ms=1)
    with pytest.raises(Invalid):
        crew.join("e", topics=[TopicName(f"topic-{n}") for n in range(TOPICS_MAX + 1)])
    assert len(crew.group.members) == 3


def test_offsets_are_taken_from_the_owner_alone() -> None:
    crew = crew_of_two(Crew(EAGER))
    offsets = [TopicOffsets(ORDERS, UUID(int=1), ((2, 5, -1, ""),))]

    crew.group.check_owner("b", offsets)
    with pytest.raises(NotPartitionOwner):
        crew.group.check_owner("a", offsets)
    with pytest.raises(UnknownMember):
        crew.group.admit_commit(Membership("crew", "", -1), now_ns=0)


def test_a_consumer_commits_in_its_present_epoch() -> None:
    crew = crew_of_two(Crew(CONSUMER))

    crew.group.admit_commit(Membership("crew", "a", 2), now_ns=0)
    with pytest.raises(StaleMemberEpoch):
        crew.group.admit_commit(Membership("crew", "a", 1), now_ns=0)
    with pytest.raises(UnknownMember):
        crew.group.admit_commit(Membership("crew", "z", 2), now_ns=0)


def test_offsets_of_a_transaction_are_refused_with_what_producers_understand() -> None:
    groups = Groups(GroupConfig())
    crew = Crew(CONSUMER)
    crew.group = groups.ensure("crew").as_assigned()
    crew.join("a")

    with pytest.raises(IllegalGeneration):
        groups.pend_offsets(Membership("crew", "a", 7), 1, [], now_ns=0)
    groups.pend_offsets(Membership("crew", "a", 1), 1, [], now_ns=0)


def test_a_consumer_that_missed_a_reply_is_listened_to_if_it_claims_no_more_than_it_has() -> None:
    crew = crew_of_two(Crew(CONSUMER))

    crew.heartbeat("a", generation=1, claimed=[0])
    with pytest.raises(MemberEpochFenced):
        crew.heartbeat("a", generation=1, claimed=[0, 3])
    with pytest.raises(MemberEpochFenced):
        crew.heartbeat("a", generation=1)
    with pytest.raises(MemberEpochFenced):
        crew.heartbeat("a", generation=3, claimed=[0])


def test_a_static_member_that_steps_out_finds_its_partitions_again() -> None:
    crew = Crew(CONSUMER)
    crew.join("a", instance_id="one")
    crew.join("b", instance_id="two")
    crew.heartbeat("a", claimed=[0, 1])
    crew.heartbeat("b")
    with pytest.raises(InstanceInUse):
        crew.join("c", instance_id="one")

    crew.apply(crew.group.step_out("a", "one", now_ns=crew.now_ns))
    crew.heartbeat("b")
    assert (crew.reads("b"), crew.group.state) == ([2, 3], GroupState.STABLE)
    crew.join("c", instance_id="one")

    assert (crew.reads("c"), crew.group.member("c").epoch) == ([0, 1], crew.group.generation)
    assert crew.group.generation == 2
    with pytest.raises(InstanceFenced):
        crew.group.heartbeat(Membership("crew", "a", 2, "one"), now_ns=crew.now_ns)


def test_a_static_member_that_stays_away_is_missed() -> None:
    crew = Crew(CONSUMER)
    crew.join("a", instance_id="one")
    crew.join("b")
    crew.apply(crew.group.step_out("a", "one", now_ns=crew.now_ns))
    crew.heartbeat("b")
    crew.wait(SESSION_MS - 1)
    crew.heartbeat("b")
    crew.wait(1)
    crew.heartbeat("b")

    assert crew.reads("b") == [0, 1, 2, 3]


def test_rebalances_are_counted_with_reason_and_duration() -> None:
    crew = Crew(COOPERATIVE)
    crew.join("a")
    crew.join("b")
    crew.wait(300)
    crew.release("a", 2, 3)
    crew.heartbeat("b")
    counts = crew.group.rebalances

    assert (counts.total, counts.successful, counts.failed) == (2, 2, 0)
    assert (counts.partitions_assigned, counts.partitions_revoked) == (6, 2)
    assert (counts.last_duration_ms, counts.average_duration_ms) == (300, 150.0)
    assert counts.reasons == {"member_joined": 2}


def test_the_state_written_anew_is_the_state() -> None:
    for terms in (EAGER, COOPERATIVE, SHARED, CONSUMER):
        crew = Crew(terms)
        crew.join("a", instance_id="one" if terms is CONSUMER else None)
        crew.join("b")
        copy = AssignedGroup("crew", GroupConfig())
        for event in crew.group.whole_state():
            assert isinstance(event, GroupAssigned | HolderMoved)
            copy.apply(event)
        copy.resume(now_ns=0)

        assert list(copy.whole_state()) == list(crew.group.whole_state())
        assert copy.member("a").readable == crew.group.member("a").readable
        assert copy.is_rebalancing == crew.group.is_rebalancing
        if terms is COOPERATIVE:
            copy.heartbeat(Membership("crew", "a", 1), now_ns=1)
            assert copy.next_deadline_ns() == SESSION_MS * 1_000_000
