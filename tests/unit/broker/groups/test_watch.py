"""Rebalances and members as they are counted from outside, of groups of both kinds."""

from typing import cast

from goqueue.broker.groups.watch import GroupWatch
from goqueue.core.groups.group import Group
from goqueue.core.groups.members import Member
from goqueue.core.telemetry.counters import GroupCounters
from goqueue.model.groups import GroupState
from goqueue.model.settings import GroupConfig

S = 1_000_000_000


class Watched:
    """A group whose states are set by hand, and what is counted of it."""

    def __init__(self) -> None:
        self.group = Group("readers", GroupConfig())
        self.counters = GroupCounters()
        self._watch = GroupWatch(self.group)

    def step(
        self, *, state: GroupState, members: int, generation: int, now_s: int, is_time_up: bool = False
    ) -> None:
        group = self.group
        group.state, group.generation = state, generation
        # Only how many there are is looked at.
        group.members = {str(number): cast(Member, None) for number in range(members)}
        self._watch.note(group, self.counters, now_ns=now_s * S, is_time_up=is_time_up)


def test_a_rebalance_lasts_from_the_first_change_until_all_have_their_partitions() -> None:
    watched = Watched()
    watched.step(state=GroupState.PREPARING, members=1, generation=0, now_s=10)
    watched.step(state=GroupState.PREPARING, members=2, generation=0, now_s=11)
    watched.step(state=GroupState.COMPLETING, members=2, generation=1, now_s=13)
    watched.step(state=GroupState.STABLE, members=2, generation=1, now_s=14)
    watched.step(state=GroupState.STABLE, members=2, generation=1, now_s=20)

    assert watched.counters.joins == 2
    assert watched.counters.rebalances == {"member_joined": 1}
    assert (watched.counters.rebalance_seconds.count, watched.counters.rebalance_seconds.total) == (1, 4)


def test_a_member_that_falls_silent_is_told_from_one_that_leaves() -> None:
    watched = Watched()
    watched.step(state=GroupState.STABLE, members=3, generation=1, now_s=0)
    watched.step(state=GroupState.PREPARING, members=2, generation=1, now_s=5, is_time_up=True)
    watched.step(state=GroupState.STABLE, members=2, generation=2, now_s=6)
    watched.step(state=GroupState.PREPARING, members=1, generation=2, now_s=7)

    assert watched.counters.leaves == {"session_timeout": 1, "left": 1}
    assert watched.counters.rebalances == {"member_joined": 1, "member_expired": 1, "member_left": 1}


def test_the_last_member_to_leave_ends_its_rebalance_at_once() -> None:
    watched = Watched()
    watched.step(state=GroupState.STABLE, members=1, generation=1, now_s=0)
    watched.step(state=GroupState.EMPTY, members=0, generation=2, now_s=5)

    assert watched.counters.rebalances == {"member_joined": 1, "member_left": 1}
    assert watched.counters.rebalance_seconds.count == 2
