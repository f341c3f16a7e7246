"""One consumer group: how members come together, what they hear, and who is not waited for."""

import pytest

from goqueue.core.groups.events import GroupChanged
from goqueue.core.groups.members import choose_protocol, new_member, subscribed_topics
from goqueue.model.errors import (
    GroupFull,
    IllegalGeneration,
    InconsistentProtocol,
    InstanceFenced,
    InvalidSessionTimeout,
    MemberIdRequired,
    RebalanceInProgress,
    UnknownMember,
)
from goqueue.model.group_commands import JoinGroup
from goqueue.model.groups import GroupState, Joined, Membership, Protocols
from goqueue.model.settings import GroupConfig
from tests.unit.core.group_members import (
    DELAY_MS,
    RANGE,
    REBALANCE_MS,
    SESSION_MS,
    Club,
    let_all_in,
    stable_club,
)


def test_the_first_members_are_gathered_into_one_generation() -> None:
    club = Club()
    club.join("a")
    club.wait(DELAY_MS // 2)
    club.join("b")
    assert club.heard == {}

    club.wait(2 * DELAY_MS)

    assert [club.joined(name).generation for name in "ab"] == [1, 1]
    assert [member.member_id for member in club.joined("a").members] == ["a", "b"]
    assert club.joined("b").members == ()
    assert club.joined("b").leader == "a"
    assert club.group.state is GroupState.COMPLETING


def test_a_newcomer_during_the_gathering_makes_it_last_once_more() -> None:
    club = Club()
    club.join("a")
    club.wait(DELAY_MS - 1)
    club.join("b")
    club.wait(DELAY_MS - 1)

    assert club.heard == {}
    club.wait(2)
    assert isinstance(club.heard["a"], Joined)


def test_everyone_gets_what_the_leader_assigned() -> None:
    club = stable_club("a", "b")

    assert club.group.state is GroupState.STABLE
    assert [club.assignment(name) for name in "ab"] == [b"a", b"b"]


def test_a_member_that_the_leader_forgot_has_an_empty_assignment() -> None:
    club = Club()
    club.join("a")
    club.join("b")
    club.wait(2 * DELAY_MS)
    club.sync("b")
    club.sync("a", [("a", b"all"), ("stranger", b"x")])

    assert (club.assignment("a"), club.assignment("b")) == (b"all", b"")


def test_a_newcomer_makes_everybody_join_again() -> None:
    club = stable_club("a", "b")
    club.join("c")

    for name in "ab":
        with pytest.raises(RebalanceInProgress):
            club.heartbeat(name)
    club.rejoin("a", "b")

    assert {club.joined(name).generation for name in "abc"} == {2}
    let_all_in(club)
    assert club.assignment("c") == b"c"


def test_members_that_do_not_join_again_in_time_are_left_behind() -> None:
    club = stable_club("a", "b")
    club.join("c")
    club.rejoin("a")
    for _ in range(REBALANCE_MS // 1_000):
        club.wait(1_000)
        if club.group.state is GroupState.PREPARING:
            with pytest.raises(RebalanceInProgress):
                club.heartbeat("b")

    assert list(club.group.members) == ["a", "c"]
    assert club.joined("c").generation == 2
    with pytest.raises(UnknownMember):
        club.heartbeat("b")


def test_a_silent_member_is_removed_when_its_session_ends() -> None:
    club = stable_club("a", "b")
    club.wait(SESSION_MS // 2)
    club.heartbeat("a")
    club.wait(SESSION_MS // 2)

    assert list(club.group.members) == ["a"]
    with pytest.raises(RebalanceInProgress):
        club.heartbeat("a")
    club.rejoin("a")
    assert club.joined("a").generation == 2


def test_a_group_whose_members_all_fell_silent_is_empty_and_left_alone() -> None:
    club = stable_club("a", "b")
    club.wait(2 * REBALANCE_MS)

    assert club.group.state is GroupState.EMPTY
    assert club.group.next_deadline_ns() is None
    assert club.group.generation == 2


def test_a_member_that_waits_for_others_is_not_taken_for_silent() -> None:
    club = stable_club("a", "b")
    club.join("c")
    for _ in range(3):
        club.wait(SESSION_MS // 2)
        with pytest.raises(RebalanceInProgress):
            club.heartbeat("a")
        with pytest.raises(RebalanceInProgress):
            club.heartbeat("b")

    assert list(club.group.members) == ["a", "b", "c"]


def test_a_leader_that_does_not_assign_is_removed_and_the_others_begin_again() -> None:
    club = Club()
    club.join("a")
    club.join("b")
    club.wait(2 * DELAY_MS)
    club.sync("b")
    for _ in range(REBALANCE_MS // 1_000 + 1):
        club.wait(1_000)
        if "a" in club.group.members:
            club.heartbeat("a")

    assert isinstance(club.heard["b"], RebalanceInProgress)
    assert list(club.group.members) == ["b"]


def test_whoever_leaves_is_not_waited_for() -> None:
    club = stable_club("a", "b", "c")
    club.leave("b")
    club.rejoin("a", "c")

    assert club.joined("c").generation == 2
    with pytest.raises(UnknownMember):
        club.leave("b")


def test_when_the_leader_leaves_another_leads() -> None:
    club = stable_club("a", "b")
    club.leave("a")
    club.rejoin("b")

    assert club.joined("b").leader == "b"
    assert [member.member_id for member in club.joined("b").members] == ["b"]


def test_a_new_member_is_sent_back_for_an_id_and_waited_for() -> None:
    club = stable_club("a")
    with pytest.raises(MemberIdRequired) as refusal:
        club.join("b", is_id_required=True)
    assert refusal.value.member_id == "b"

    club.heartbeat("a")
    club.join("b", member_id="b", is_id_required=True)
    club.rejoin("a")
    assert club.joined("b").generation == 2


def test_an_id_that_nobody_came_back_with_is_forgotten() -> None:
    club = Club()
    with pytest.raises(MemberIdRequired):
        club.join("a", is_id_required=True)
    assert not club.group.is_vacant

    club.wait(SESSION_MS)

    assert club.group.is_vacant
    with pytest.raises(UnknownMember):
        club.rejoin("a")


def test_a_client_that_went_away_while_it_waited_to_join_holds_nobody_up() -> None:
    club = stable_club("a")
    club.join("b")
    club.abandon("b")
    club.rejoin("a")

    assert [member.member_id for member in club.joined("a").members] == ["a"]


def test_the_only_client_that_goes_away_while_it_waits_leaves_an_empty_group() -> None:
    club = Club()
    club.join("a")
    club.abandon("a")

    assert club.group.is_vacant


def test_a_client_that_went_away_while_it_waited_for_its_assignment_has_a_session_to_come_back() -> None:
    club = Club()
    club.join("a")
    club.join("b")
    club.wait(2 * DELAY_MS)
    club.sync("b")
    club.abandon("b")
    club.wait(SESSION_MS - 1)
    club.sync("b")
    club.sync("a", [("b", b"mine")])

    assert club.assignment("b") == b"mine"


def test_a_follower_that_joins_again_unchanged_keeps_its_place() -> None:
    club = stable_club("a", "b")
    club.rejoin("b")

    assert club.joined("b").generation == 1
    assert club.group.state is GroupState.STABLE


@pytest.mark.parametrize(("name", "protocols"), [("a", RANGE), ("b", (("range", b"more"),))])
def test_a_leader_or_a_changed_member_that_joins_again_makes_a_rebalance(
    name: str, protocols: Protocols
) -> None:
    club = stable_club("a", "b")
    club.join(name, member_id=name, protocols=protocols)

    assert club.group.state is GroupState.PREPARING


def test_a_member_that_missed_its_answer_hears_it_again() -> None:
    club = Club()
    club.join("a")
    club.wait(2 * DELAY_MS)
    del club.heard["a"]
    club.rejoin("a")

    assert club.joined("a").generation == 1
    assert club.joined("a").members


def test_stale_generations_are_refused() -> None:
    club = stable_club("a")

    with pytest.raises(IllegalGeneration):
        club.heartbeat("a", generation=7)
    with pytest.raises(IllegalGeneration):
        club.sync("a", generation=7)
    with pytest.raises(IllegalGeneration):
        club.group.admit_commit(Membership("club", "a", 7), now_ns=club.now_ns)


def test_a_member_without_a_common_protocol_is_refused_and_nothing_changes() -> None:
    club = stable_club("a")
    refused: list[tuple[str, Protocols]] = [
        ("consumer", (("roundrobin", b""),)),
        ("connect", RANGE),
        ("consumer", ()),
        ("", RANGE),
    ]
    for protocol_type, protocols in refused:
        with pytest.raises(InconsistentProtocol):
            club.join("b", protocol_type=protocol_type, protocols=protocols)

    club.heartbeat("a")
    assert list(club.group.members) == ["a"]


def test_sessions_outside_the_bounds_are_refused() -> None:
    with pytest.raises(InvalidSessionTimeout):
        Club().join("a", session_timeout_ms=1)


def test_a_full_group_takes_nobody_in() -> None:
    club = stable_club("a", "b", "c", "d")

    with pytest.raises(GroupFull):
        club.join("e")


def test_the_protocol_that_most_members_like_best_is_chosen() -> None:
    def member(*names: str) -> JoinGroup:
        return JoinGroup(
            group="club",
            session_timeout_ms=1,
            rebalance_timeout_ms=1,
            protocol_type="consumer",
            protocols=tuple((name, b"") for name in names),
        )

    members = [
        new_member(str(number), command)
        for number, command in enumerate(
            [member("sticky", "range", "robin"), member("robin", "range"), member("robin", "range", "sticky")]
        )
    ]

    assert choose_protocol(members) == "robin"
    assert choose_protocol(members[:1]) == "sticky"


def test_offsets_are_taken_from_members_of_the_present_generation() -> None:
    club = stable_club("a")
    group = club.group

    group.admit_commit(Membership("club", "a", 1), now_ns=0)
    for stranger in (Membership("club", "x", 1), Membership("club", "", -1)):
        with pytest.raises(UnknownMember):
            group.admit_commit(stranger, now_ns=0)
    club.join("b")
    group.admit_commit(Membership("club", "a", 1), now_ns=0)
    club.rejoin("a")
    with pytest.raises(RebalanceInProgress):
        group.admit_commit(Membership("club", "a", 2), now_ns=0)


def test_offsets_are_taken_from_anybody_when_the_group_has_no_members() -> None:
    Club().group.admit_commit(Membership("club", "", -1), now_ns=0)


def test_a_static_member_comes_back_without_a_rebalance() -> None:
    club = Club()
    club.join("a")
    club.join("b", instance_id="desk")
    club.wait(2 * DELAY_MS)
    let_all_in(club)

    club.join("b2", instance_id="desk")

    assert club.joined("b2").generation == 1
    assert club.group.state is GroupState.STABLE
    club.sync("b2")
    assert club.assignment("b2") == b"b"
    club.heartbeat("a")
    with pytest.raises(InstanceFenced):
        club.group.heartbeat(Membership("club", "b", 1, "desk"), now_ns=club.now_ns)


@pytest.mark.parametrize(("may_skip", "leader"), [(True, "a2"), (False, "a")])
def test_a_static_leader_that_comes_back_need_not_assign(may_skip: bool, leader: str) -> None:
    club = Club()
    club.join("a", instance_id="desk")
    club.wait(2 * DELAY_MS)
    let_all_in(club)

    club.join("a2", instance_id="desk", may_skip_assignment=may_skip)

    reply = club.joined("a2")
    assert (reply.leader, reply.skips_assignment, bool(reply.members)) == (leader, may_skip, may_skip)


def test_a_static_member_with_a_new_subscription_makes_a_rebalance() -> None:
    club = Club()
    club.join("a", instance_id="desk")
    club.wait(2 * DELAY_MS)
    let_all_in(club)

    club.join("a2", instance_id="desk", protocols=(("range", b"more"),))

    assert club.joined("a2").generation == 2


def test_a_static_member_that_is_away_keeps_its_place_until_its_session_ends() -> None:
    club = Club()
    club.join("a")
    club.join("b", instance_id="desk", session_timeout_ms=3 * REBALANCE_MS)
    club.wait(2 * DELAY_MS)
    let_all_in(club)
    club.join("c")
    club.rejoin("a")

    club.wait(REBALANCE_MS)

    assert [member.member_id for member in club.joined("a").members] == ["a", "b", "c"]


def test_a_static_member_leaves_by_its_name_alone() -> None:
    club = Club()
    club.join("a", instance_id="desk")
    club.wait(2 * DELAY_MS)
    let_all_in(club)
    club.leave("", "desk")

    assert club.group.is_vacant


def test_two_processes_under_one_name_fence_each_other_while_one_waits() -> None:
    club = Club()
    club.join("a", instance_id="desk")
    club.join("a2", instance_id="desk")

    assert isinstance(club.heard["a"], InstanceFenced)


def test_after_a_restart_members_go_on_with_a_whole_session() -> None:
    before = stable_club("a", "b")
    assert before.group.standing is not None
    club = Club(now_ms=1_000_000)
    club.group.apply(before.group.standing)
    club.group.resume(now_ns=club.now_ns)

    club.wait(SESSION_MS - 1)
    club.heartbeat("a")
    club.sync("a")
    assert club.assignment("a") == b"a"
    club.wait(1)
    assert list(club.group.members) == ["a"]


def test_what_the_journal_keeps_is_the_generation_that_was_agreed_on() -> None:
    club = stable_club("a")
    club.join("b")
    club.rejoin("a")
    assert club.group.generation == 2

    standing = club.group.standing

    assert isinstance(standing, GroupChanged)
    assert (standing.generation, [member.assignment for member in standing.members]) == (1, [b"a"])


def test_subscriptions_are_read_and_garbage_is_not() -> None:
    assert subscribed_topics(b"\x00\x01\x00\x00\x00\x02\x00\x01a\x00\x02bc\xff\xff\xff\xff") == {"a", "bc"}
    for garbage in (b"", b"\x00\x01\x7f\xff\xff\xff", b"\x00\x01\x00\x00\x00\x01\x00\x05ab"):
        assert subscribed_topics(garbage) is None


def test_a_group_of_another_kind_may_read_anything() -> None:
    club = Club()
    club.join("a", protocol_type="connect")
    assert club.group.is_subscribed("orders")


def test_settings_that_could_not_work_are_refused() -> None:
    for wrong in ({"initial_delay_ms": -1}, {"session_ms_min": 0}, {"members_max": 0}):
        with pytest.raises(ValueError, match="must"):
            GroupConfig(**wrong)


def test_members_move_to_another_protocol_one_by_one() -> None:
    both: Protocols = (("sticky", b""), ("range", b""))
    club = stable_club("a", "b")
    club.join("a", member_id="a", protocols=both)
    club.join("b", member_id="b", protocols=(("sticky", b""),))

    assert {club.joined(name).protocol for name in "ab"} == {"sticky"}
    with pytest.raises(InconsistentProtocol):
        club.join("c", protocols=RANGE)
