"""A classic group in the cases between: who is waited for, who is fenced, and what each is told."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goqueue.core.groups.group import MEMBER_BYTES_MAX, TRANSITIONS, Group
from goqueue.core.groups.members import choose_protocol, common_protocols, new_member, restored_member
from goqueue.model.errors import (
    GoQueueError,
    IllegalGeneration,
    InconsistentProtocol,
    InstanceFenced,
    InvalidSessionTimeout,
    MemberIdRequired,
    MetadataTooLarge,
    RebalanceInProgress,
    UnknownMember,
)
from goqueue.model.group_commands import JoinGroup, SyncGroup
from goqueue.model.groups import GroupState, Membership, Protocols
from goqueue.model.settings import GroupConfig
from tests.unit.core.group_members import (
    DELAY_MS,
    NS_PER_MS,
    RANGE,
    REBALANCE_MS,
    SESSION_MS,
    Club,
    let_all_in,
    stable_club,
)


def command(*protocols: str, protocol_type: str = "consumer") -> JoinGroup:
    return JoinGroup(
        group="club",
        session_timeout_ms=SESSION_MS,
        rebalance_timeout_ms=REBALANCE_MS,
        protocol_type=protocol_type,
        protocols=tuple((name, name.encode()) for name in protocols),
    )


def test_every_state_has_a_line_in_the_table_and_can_be_reached() -> None:
    states = set(GroupState) - {GroupState.RECONCILING}

    assert set(TRANSITIONS) == states
    assert {target for targets in TRANSITIONS.values() for target in targets} == states


class TestWhoIsToldWhat:
    def test_only_the_leader_hears_who_the_others_are(self) -> None:
        club = Club()
        club.join("a")
        club.join("b", instance_id="static")
        club.wait(2 * DELAY_MS)

        leader, other = club.joined("a"), club.joined("b")
        assert [(m.member_id, m.instance_id, m.metadata) for m in leader.members] == [
            ("a", None, b"topics"),
            ("b", "static", b"topics"),
        ]
        assert (leader.leader, other.leader, other.members) == ("a", "a", ())
        assert (other.protocol, other.protocol_type, other.generation) == ("range", "consumer", 1)

    def test_whoever_waits_for_an_assignment_hears_when_the_group_begins_anew(self) -> None:
        club = Club()
        for name in "abc":
            club.join(name)
        club.wait(2 * DELAY_MS)
        club.sync("b")

        club.leave("c")

        assert isinstance(club.heard["b"], RebalanceInProgress)
        club.rejoin("a", "b")
        assert club.joined("b").generation == 2

    def test_a_member_that_waits_and_is_removed_hears_that_it_is_unknown(self) -> None:
        club = stable_club("a", "b")
        club.join("c")

        club.leave("c")

        assert isinstance(club.heard["c"], UnknownMember)

    def test_a_sync_that_comes_late_hears_the_same_assignment_again(self) -> None:
        club = stable_club("a", "b")
        club.heard.clear()

        club.sync("b")

        assert club.assignment("b") == b"b"

    @pytest.mark.parametrize(
        ("protocol_type", "protocol"), [("consumer", "sticky"), ("connect", "range"), ("connect", None)]
    )
    def test_a_sync_that_believes_in_another_protocol_is_refused(
        self, protocol_type: str, protocol: str | None
    ) -> None:
        club = stable_club("a")
        sync = SyncGroup(
            group="club", member_id="a", generation=1, protocol_type=protocol_type, protocol=protocol
        )

        with pytest.raises(InconsistentProtocol):
            club.group.sync(sync, now_ns=0)

    def test_nobody_gets_an_assignment_while_members_join_again(self) -> None:
        club = stable_club("a", "b")
        club.join("c")

        with pytest.raises(RebalanceInProgress):
            club.sync("a")
        with pytest.raises(RebalanceInProgress):
            club.heartbeat("a")

    def test_the_old_generation_and_strangers_are_refused_by_every_verb(self) -> None:
        club = stable_club("a")
        club.join("a", member_id="a", protocols=(("range", b"other"),))

        for generation, name, error in ((1, "a", IllegalGeneration), (2, "ghost", UnknownMember)):
            with pytest.raises(error):
                club.sync(name, generation=generation)
            with pytest.raises(error):
                club.heartbeat(name, generation)
            with pytest.raises(error):
                club.group.admit_commit(Membership("club", name, generation), now_ns=0)
        with pytest.raises(UnknownMember):
            club.leave("ghost")


class TestWhoIsWaitedFor:
    def test_members_are_waited_for_as_long_as_the_slowest_asked_for(self) -> None:
        club = stable_club("a", "b")
        club.join("c")
        club.rejoin("a")

        assert club.group.next_deadline_ns() == club.group.members["b"].deadline_ns
        for _ in range(REBALANCE_MS // SESSION_MS):
            club.wait(SESSION_MS - 1)
            with pytest.raises(RebalanceInProgress):
                club.heartbeat("b")
        club.wait(SESSION_MS)

        assert set(club.group.members) == {"a", "c"}

    def test_a_client_that_went_away_and_one_that_is_not_there_change_nothing_more(self) -> None:
        club = stable_club("a", "b")

        club.abandon("a")
        club.abandon("ghost")

        assert club.group.state is GroupState.STABLE

    def test_a_static_member_that_went_away_while_it_waited_to_join_keeps_its_place(self) -> None:
        club = Club()
        club.join("a", instance_id="one")
        club.join("b")

        club.abandon("a")

        assert set(club.group.members) == {"a", "b"}

    def test_a_generation_in_which_only_a_static_member_is_left_and_silent_waits_for_it(self) -> None:
        club = Club()
        club.join("a", instance_id="one")
        club.join("b")
        club.wait(2 * DELAY_MS)
        let_all_in(club)

        club.leave("b")
        club.wait(SESSION_MS - 1)
        assert set(club.group.members) == {"a"}
        club.wait(1)

        assert club.group.state is GroupState.EMPTY

    def test_an_id_that_was_given_can_be_left_with(self) -> None:
        club = Club()
        with pytest.raises(MemberIdRequired):
            club.join("a", is_id_required=True)
        assert not club.group.is_vacant

        club.leave("a")

        assert club.group.is_vacant
        with pytest.raises(UnknownMember):
            club.join("a", member_id="a")

    def test_a_static_member_needs_no_id_first(self) -> None:
        club = Club()

        club.join("a", instance_id="one", is_id_required=True)

        assert list(club.group.members) == ["a"]

    def test_the_session_of_a_member_is_its_own(self) -> None:
        club = Club()
        club.join("a", session_timeout_ms=2 * SESSION_MS)
        club.join("b")
        club.wait(2 * DELAY_MS)
        let_all_in(club)

        club.wait(SESSION_MS + 1)

        assert set(club.group.members) == {"a"}


class TestStaticMembers:
    def club(self) -> Club:
        club = Club()
        club.join("a")
        club.join("b", instance_id="one")
        club.wait(2 * DELAY_MS)
        let_all_in(club)
        return club

    def test_the_process_that_had_the_name_before_is_fenced(self) -> None:
        club = self.club()
        club.join("b2", instance_id="one")

        for verb in (club.group.heartbeat, club.group.admit_commit):
            with pytest.raises(InstanceFenced):
                verb(Membership("club", "b", 1, "one"), now_ns=club.now_ns)
        with pytest.raises(UnknownMember):
            club.heartbeat("b")
        with pytest.raises(InstanceFenced):
            club.leave("b", "one")

    def test_its_return_is_written_to_the_journal(self) -> None:
        club = self.club()
        club.join("b2", instance_id="one")
        assert club.group.standing is not None

        again = Group("club", GroupConfig())
        again.apply(club.group.standing)

        assert set(again.members) == {"a", "b2"}
        assert again.members["b2"].assignment == b"b"

    def test_it_comes_back_during_a_rebalance_and_is_part_of_it(self) -> None:
        club = self.club()
        club.join("c")
        club.join("b2", instance_id="one")
        club.rejoin("a")

        assert club.joined("b2").generation == 2
        assert set(club.group.members) == {"a", "b2", "c"}

    def test_a_name_that_left_is_free(self) -> None:
        club = self.club()
        club.leave("", "one")
        club.rejoin("a")
        let_all_in(club)

        club.join("x", instance_id="one")
        club.rejoin("a")

        assert set(club.group.members) == {"a", "x"}
        assert club.joined("x").generation == 3


class TestBounds:
    @pytest.mark.parametrize("extra", [0, 1])
    def test_a_member_says_no_more_of_itself_than_may_be(self, extra: int) -> None:
        protocols: Protocols = (("range", bytes(MEMBER_BYTES_MAX - 5 + extra)),)
        if extra:
            with pytest.raises(MetadataTooLarge):
                Club().join("a", protocols=protocols)
        else:
            Club().join("a", protocols=protocols)

    @pytest.mark.parametrize(("session_ms", "is_taken"), [(999, False), (1_000, True), (1_800_000, True)])
    def test_the_limits_of_a_session_are_allowed(self, session_ms: int, is_taken: bool) -> None:
        club = Club()
        if is_taken:
            club.join("a", session_timeout_ms=session_ms)
            return
        with pytest.raises(InvalidSessionTimeout):
            club.join("a", session_timeout_ms=session_ms)

    @pytest.mark.parametrize(("protocol_type", "protocols"), [("", RANGE), ("consumer", ())])
    def test_a_member_names_a_type_and_a_protocol(self, protocol_type: str, protocols: Protocols) -> None:
        with pytest.raises(InconsistentProtocol):
            Club().join("a", protocol_type=protocol_type, protocols=protocols)

    def test_the_only_member_may_change_to_another_type(self) -> None:
        club = stable_club("a")

        club.join("a", member_id="a", protocol_type="connect", protocols=(("default", b""),))

        assert (club.group.protocol_type, club.joined("a").protocol) == ("connect", "default")

    def test_a_second_member_of_another_type_is_refused(self) -> None:
        with pytest.raises(InconsistentProtocol):
            stable_club("a").join("b", protocol_type="connect", protocols=RANGE)


def test_members_know_in_common_what_all_of_them_know() -> None:
    members = [
        new_member("a", command("x", "y")), new_member("b", command("y", "z", "x"))
    ]  # fmt: skip

    assert common_protocols(members) == {"x", "y"}
    assert common_protocols([]) is None
    assert choose_protocol(members) == "x", "of equals, the one that was voted for first"
    assert choose_protocol([*members, new_member("c", command("y", "x"))]) == "y"


def test_a_member_comes_back_from_the_journal_as_it_was() -> None:
    member = new_member("a", command("x"))
    member.assignment = b"mine"

    assert restored_member(member.kept(b"mine")) == member
    assert (member.metadata("x"), member.metadata("y")) == (b"x", b"")


NAMES = st.sampled_from("abc")
STEP = st.one_of(
    st.tuples(st.sampled_from(["join", "rejoin", "sync", "leave", "abandon", "heartbeat"]), NAMES),
    st.tuples(st.just("wait"), st.sampled_from(["50", "5000", "61000"])),
)


@settings(max_examples=60)
@given(st.lists(STEP, max_size=25))
def test_whatever_members_do_the_group_is_never_stuck_and_the_journal_has_what_was_agreed(
    steps: list[tuple[str, str]],
) -> None:
    club = Club()
    generation = 0
    for step, what in steps:
        try:
            match step:
                case "join" if what not in club.group.members:
                    club.join(what)
                case "rejoin":
                    club.rejoin(what)
                case "sync":
                    club.sync(what, [(name, name.encode()) for name in club.group.members])
                case "leave":
                    club.leave(what)
                case "abandon":
                    club.abandon(what)
                case "heartbeat":
                    club.heartbeat(what)
                case "wait":
                    club.wait(int(what))
        except GoQueueError:
            pass
        group = club.group
        assert group.generation >= generation, "generations never fall"
        generation = group.generation
        assert (group.state is GroupState.EMPTY) == (not group.members)
        if group.members:
            deadline_ns = group.next_deadline_ns()
            assert deadline_ns is not None, "somebody is waited for, until some time"
            assert deadline_ns <= club.now_ns + REBALANCE_MS * NS_PER_MS
        if group.state is GroupState.STABLE:
            assert group.leader in group.members
            again = Group("club", GroupConfig())
            assert group.standing is not None
            again.apply(group.standing)
            assert {name: member.assignment for name, member in again.members.items()} == {
                name: member.assignment for name, member in group.members.items()
            }
    club.wait(10 * REBALANCE_MS)
    assert club.group.state is GroupState.EMPTY, "without a sign of life nobody is left"
