"""A lease: who holds a message until when, and what becomes of it when a transaction will settle it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goqueue.core.delivery.lease import Lease
from goqueue.core.delivery.runs import Run, runs_of

UNTIL_MS = 1_000


def lease_of(*runs: Run) -> Lease:
    lease = Lease(1, "ann", UNTIL_MS)
    for run in runs:
        lease.offsets.add(*run)
    return lease


@pytest.mark.parametrize(
    ("offset", "now_ms", "is_held"),
    [
        (0, 999, True),
        (4, 999, True),
        (5, 999, False),
        (9, 0, False),
        (0, 1_000, False),
        (0, 1_001, False),
    ],
)
def test_a_message_is_held_until_the_deadline_and_not_in_its_moment(
    offset: int, now_ms: int, is_held: bool
) -> None:
    lease = lease_of((0, 5))

    assert lease.holds(offset, now_ms) is is_held
    assert lease.holds_all(offset, offset + 1, now_ms) is is_held


def test_a_deadline_that_is_moved_for_one_message_leaves_the_others_theirs() -> None:
    lease = lease_of((0, 5))

    lease.extend(2, 3, 3_000)

    assert lease.holds(2, 2_999)
    assert not lease.holds(2, 3_000)
    assert not lease.holds(1, 1_000)
    assert lease.overdue(1_000) == [(0, 2), (3, 5)]
    assert lease.overdue(3_000) == [(0, 5)]
    assert lease.next_deadline_ms() == 1_000


def test_a_lease_that_is_spared_ends_no_sooner_and_one_that_lasts_longer_is_left_alone() -> None:
    lease = lease_of((0, 5))
    lease.extend(2, 3, 3_000)
    lease.extend(4, 5, 200)

    lease.spare(2_000)

    assert lease.overdue(1_999) == []
    assert lease.overdue(2_000) == [(0, 2), (3, 5)]
    assert lease.overdue(3_000) == [(0, 5)]


def test_a_deadline_can_be_drawn_in_for_one_message() -> None:
    lease = lease_of((0, 5))

    lease.extend(4, 5, 200)

    assert lease.next_deadline_ms() == 200
    assert lease.overdue(199) == []
    assert lease.overdue(200) == [(4, 5)]
    assert not lease.holds_all(0, 5, 200)
    assert lease.holds_all(0, 4, 200)


def test_a_deadline_that_is_moved_for_all_messages_is_the_deadline_of_the_lease() -> None:
    lease = lease_of((0, 5))
    lease.extend(4, 5, 200)

    lease.extend(0, 5, 7_000)

    assert (lease.until_ms, lease.later) == (7_000, {})
    assert lease.next_deadline_ms() == 7_000
    assert lease.overdue(6_999) == []
    assert lease.overdue(7_000) == [(0, 5)]


def test_a_lease_whose_messages_all_have_deadlines_of_their_own_waits_for_the_first_of_those() -> None:
    lease = lease_of((0, 2))

    lease.extend(0, 1, 5_000)
    lease.extend(1, 2, 4_000)

    assert lease.next_deadline_ms() == 4_000, "the lease's own deadline is nobody's any more"


def test_what_a_transaction_will_settle_does_not_come_back_by_itself() -> None:
    lease = lease_of((0, 3))

    lease.pledge([1])

    assert lease.holds(1, 99_999)
    assert not lease.holds(0, 1_000)
    assert lease.overdue(1_000) == [(0, 1), (2, 3)]
    assert lease.next_deadline_ms() == UNTIL_MS


def test_a_lease_that_is_pledged_as_a_whole_has_no_deadline() -> None:
    lease = lease_of((0, 3))
    lease.extend(2, 3, 50)

    lease.pledge([0, 1])
    assert lease.next_deadline_ms() == 50
    lease.pledge([2])

    assert lease.next_deadline_ms() is None
    assert lease.overdue(10**9) == []
    assert lease.holds_all(0, 3, 10**9)


def test_only_what_is_held_can_be_pledged() -> None:
    lease = lease_of((0, 3))

    lease.pledge([2, 3, 8])

    assert lease.pledged == {2}


def test_to_let_go_tells_how_many_messages_were_held() -> None:
    lease = lease_of((0, 3), (10, 12))

    assert lease.release(2, 11) == 2
    assert lease.release(2, 11) == 0
    assert list(lease.offsets) == [(0, 2), (11, 12)]


def test_what_is_let_go_of_has_no_deadline_and_is_pledged_to_nobody() -> None:
    lease = lease_of((0, 4))
    lease.extend(0, 1, 50)
    lease.extend(3, 4, 60)
    lease.pledge([1, 2])

    lease.release(0, 2)

    assert (lease.later, set(lease.pledged)) == ({3: 60}, {2})
    assert lease.next_deadline_ms() == 60


@given(
    deadlines=st.dictionaries(st.integers(0, 9), st.integers(0, 20), max_size=6),
    pledged=st.sets(st.integers(0, 9)),
    released=st.sets(st.integers(0, 9)),
    now_ms=st.integers(0, 20),
)
def test_a_lease_judges_many_messages_as_each_by_itself(
    deadlines: dict[int, int], pledged: set[int], released: set[int], now_ms: int
) -> None:
    lease = Lease(1, "ann", 10)
    lease.offsets.add(0, 10)
    until_ms = dict.fromkeys(range(10), 10)
    for offset, later_ms in deadlines.items():
        lease.extend(offset, offset + 1, later_ms)
        until_ms[offset] = later_ms
    lease.pledge(pledged)
    for offset in released:
        lease.release(offset, offset + 1)
        del until_ms[offset]

    out = {offset: later_ms for offset, later_ms in until_ms.items() if offset not in pledged}
    overdue = sorted(offset for offset, later_ms in out.items() if later_ms <= now_ms)

    assert lease.overdue(now_ms) == runs_of(overdue)
    assert lease.next_deadline_ms() == min(out.values(), default=None)
    for offset in range(10):
        is_held = offset in until_ms and offset not in overdue
        assert lease.holds(offset, now_ms) is is_held
        assert lease.holds_all(offset, offset + 1, now_ms) is is_held


def test_leases_of_which_nothing_is_pledged_share_that() -> None:
    assert Lease(1, "ann", 1_000).pledged is Lease(2, "bob", 1_000).pledged
