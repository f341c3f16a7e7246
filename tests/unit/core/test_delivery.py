"""A delivery: every message between floor and scan is in exactly one place, and gets back from each."""

from uuid import UUID

import pytest

from goqueue.core.delivery.delivery import Delivery, Holding
from goqueue.core.delivery.events import (
    DeliveryKept,
    Extended,
    LeaseKept,
    MovesBegun,
    PassedOver,
    ReturnKept,
    Settled,
)
from goqueue.core.delivery.lease import NO_LEASE
from goqueue.core.delivery.runs import Run
from goqueue.model.delivery import Move, PassedRun, Reason
from goqueue.model.ids import NO_PRODUCER
from goqueue.model.messages import Lane, StoredMessage
from tests.unit.core.delivery_desk import (
    BEGIN_MS,
    DEAD,
    NUMBER,
    ORDERS,
    VISIBILITY_MS,
    Desk,
    ready,
    stocked,
)


def move(offset: int) -> Move:
    return Move(offset, DEAD, 0, Reason.REJECTED, 1, "ann", "no", 5)


def message(offset: int, lane: Lane = Lane.NORMAL) -> StoredMessage:
    return StoredMessage(offset, 0, None, b"", (), lane)


def test_what_is_polled_is_out_with_the_consumer_until_the_deadline() -> None:
    desk = stocked(10)

    leased = desk.poll(4)

    assert (leased.runs, leased.until_ms) == (((0, 4),), BEGIN_MS + VISIBILITY_MS)
    assert ready(desk.delivery) == [(4, 10)]
    assert list(desk.delivery.busy) == [(0, 4)]
    assert (desk.delivery.leased_count, desk.delivery.in_flight("ann")) == (4, 4)
    assert desk.delivery.next_time_ms() == BEGIN_MS + VISIBILITY_MS


def test_two_polls_never_hand_out_the_same_message() -> None:
    desk = stocked(5)

    assert desk.poll(3, "ann").runs == ((0, 3),)
    assert desk.poll(3, "ben").runs == ((3, 5),)
    assert desk.poll(3, "ann").runs == ()
    assert (desk.delivery.in_flight("ann"), desk.delivery.in_flight("ben")) == (3, 2)


def test_a_poll_that_found_nothing_leaves_no_lease() -> None:
    desk = Desk()

    desk.poll(3)

    assert desk.delivery.leases == {}
    assert desk.delivery.next_time_ms() is None


@pytest.mark.parametrize(
    ("settled", "floor", "above"),
    [
        ([(0, 1)], 1, []),
        ([(1, 2)], 0, [(1, 2)]),
        ([(1, 2), (0, 1)], 2, []),
        ([(4, 6), (1, 3)], 0, [(1, 3), (4, 6)]),
        ([(4, 6), (1, 3), (0, 1)], 3, [(4, 6)]),
        ([(0, 10)], 10, []),
    ],
)
def test_the_floor_is_the_first_message_that_is_not_settled(
    settled: list[Run], floor: int, above: list[Run]
) -> None:
    desk = stocked(10)
    leased = desk.poll(10)

    for run in settled:
        desk.settle(leased, run)

    assert (desk.delivery.floor, list(desk.delivery.settled)) == (floor, above)
    assert desk.delivery.in_flight("ann") == 10 - sum(end - first for first, end in settled)
    for first, end in settled:
        assert desk.delivery.is_settled(first)
        assert desk.delivery.is_settled(end - 1)


def test_a_lease_of_which_all_is_settled_is_over() -> None:
    desk = stocked(4)
    leased = desk.poll(4)

    desk.settle(leased, (0, 2))
    assert list(desk.delivery.leases) == [leased.lease]
    desk.settle(leased, (2, 4))

    assert desk.delivery.leases == {}
    assert desk.delivery.next_time_ms() is None
    assert desk.delivery.in_flight("ann") == 0


@pytest.mark.parametrize(
    ("lease", "offset", "now_ms", "holding"),
    [
        (1, 2, BEGIN_MS, Holding.HELD),
        (1, 2, BEGIN_MS + VISIBILITY_MS - 1, Holding.HELD),
        (1, 2, BEGIN_MS + VISIBILITY_MS, Holding.LOST),
        (2, 2, BEGIN_MS, Holding.LOST),
        (1, 9, BEGIN_MS, Holding.LOST),
        (1, 0, BEGIN_MS, Holding.SETTLED),
        (1, 3, BEGIN_MS, Holding.SETTLED),
        (2, 0, BEGIN_MS + 10 * VISIBILITY_MS, Holding.SETTLED),
    ],
)
def test_a_receipt_is_worth_the_message_or_tells_that_it_is_settled_or_lost(
    lease: int, offset: int, now_ms: int, holding: Holding
) -> None:
    desk = stocked(10)
    leased = desk.poll(5)
    desk.settle(leased, (0, 1), (3, 4))

    assert desk.delivery.holding(lease, offset, now_ms=now_ms) is holding


def test_a_message_that_comes_back_waits_for_its_time_and_is_handed_out_again() -> None:
    desk = stocked(3)
    leased = desk.poll(1)
    assert desk.delivery.delivery_count(0) == 1

    desk.give_back(leased, after_ms=100)

    assert desk.delivery.waiting == {0: BEGIN_MS + 100}
    assert desk.delivery.next_time_ms() == BEGIN_MS + 100
    assert desk.poll(1).runs == ((1, 2),), "others are not held up by it"
    desk.wait(99)
    assert desk.poll(1).runs == ((2, 3),)
    desk.wait(1)
    assert desk.poll(9).runs == ((0, 1),)
    assert desk.delivery.delivery_count(0) == 2
    assert desk.delivery.delivery_count(1) == 1


def test_a_message_that_came_back_and_is_settled_is_forgotten() -> None:
    desk = stocked(3)
    desk.give_back(desk.poll(3))
    desk.wait(0)

    desk.settle(desk.poll(3), (0, 2))

    assert desk.delivery.attempts == {2: 1}
    assert desk.delivery.waiting == {}


def test_a_message_that_was_given_back_twice_waits_for_the_later_time_alone() -> None:
    desk = stocked(1)
    desk.give_back(desk.poll(1), after_ms=10)
    desk.wait(10)
    desk.give_back(desk.poll(1), after_ms=50)

    desk.delivery.fall_due(desk.now_ms + 49)
    assert ready(desk.delivery) == []
    desk.delivery.fall_due(desk.now_ms + 50)

    assert ready(desk.delivery) == [(0, 1)]
    assert list(desk.delivery.busy) == []


def test_times_of_messages_that_were_settled_meanwhile_wake_nobody() -> None:
    desk = stocked(3)
    desk.give_back(desk.poll(1), after_ms=10)
    desk.commit(Settled(NUMBER, NO_LEASE, ((0, 1),)))
    leased = desk.poll(1)
    assert desk.delivery.next_time_ms() == BEGIN_MS + VISIBILITY_MS

    desk.settle(leased)

    assert desk.delivery.next_time_ms() is None


def test_a_lease_that_ran_out_is_found_until_the_journal_has_heard_of_it() -> None:
    desk = stocked(4)
    leased = desk.poll(4)
    deadline_ms = BEGIN_MS + VISIBILITY_MS
    lease = desk.delivery.leases[leased.lease]

    assert desk.delivery.overdue(deadline_ms - 1) == []
    assert desk.delivery.overdue(deadline_ms) == [(lease, [(0, 4)])]
    assert desk.delivery.overdue(deadline_ms) == [(lease, [(0, 4)])]
    desk.give_back(leased)

    assert desk.delivery.overdue(deadline_ms) == []


def test_several_leases_run_out_each_at_its_time() -> None:
    desk = stocked(9)
    for consumer, visibility_ms in (("ann", 300), ("ben", 100), ("eve", 200)):
        desk.poll(3, consumer, visibility_ms=visibility_ms)

    assert desk.delivery.next_time_ms() == BEGIN_MS + 100
    found = desk.delivery.overdue(BEGIN_MS + 200)

    assert sorted((lease.consumer, runs) for lease, runs in found) == [("ben", [(3, 6)]), ("eve", [(6, 9)])]


def test_a_consumer_that_takes_longer_keeps_what_it_named() -> None:
    desk = stocked(4)
    leased = desk.poll(4)

    desk.commit(Extended(NUMBER, leased.lease, ((1, 2),), BEGIN_MS + 9_000))

    desk.wait(VISIBILITY_MS)
    assert ready(desk.delivery) == [(0, 1), (2, 4)]
    assert desk.delivery.holding(leased.lease, 1, now_ms=desk.now_ms) is Holding.HELD
    assert desk.wait(0) == [], "who looks again finds nothing more"
    assert desk.delivery.next_time_ms() == BEGIN_MS + 9_000
    desk.wait(4_000)
    assert ready(desk.delivery) == [(0, 4)]


def test_a_deadline_that_is_moved_on_wakes_nobody_at_the_old_time() -> None:
    desk = stocked(4)
    leased = desk.poll(4)

    desk.commit(Extended(NUMBER, leased.lease, ((0, 4),), BEGIN_MS + 9_000))

    assert desk.delivery.overdue(BEGIN_MS + VISIBILITY_MS) == []
    assert desk.delivery.next_time_ms() == BEGIN_MS + 9_000


def test_a_lease_that_is_over_is_not_extended() -> None:
    desk = stocked(4)
    leased = desk.poll(4)
    desk.settle(leased)

    desk.commit(Extended(NUMBER, leased.lease, ((0, 4),), BEGIN_MS + 9_000))

    assert desk.delivery.next_time_ms() is None


def test_what_is_read_to_be_handed_out_is_nobody_elses_and_can_be_put_back() -> None:
    desk = stocked(10)
    runs = desk.take(4)

    assert ready(desk.delivery) == [(4, 10)]
    assert list(desk.delivery.reserved) == [(0, 4)]
    desk.delivery.put_back(runs)

    assert ready(desk.delivery) == [(0, 10)]
    assert not desk.delivery.reserved


def test_what_was_settled_while_it_was_read_is_neither_handed_out_nor_put_back() -> None:
    desk = stocked(10)
    runs = desk.take(6)
    desk.commit(Settled(NUMBER, NO_LEASE, ((0, 2), (4, 5))))

    leased = desk.delivery.lease([(0, 3)], lease=9, consumer="ann", until_ms=desk.now_ms + 1)
    assert leased.runs == ((2, 3),)
    desk.commit(leased)
    desk.delivery.put_back(runs)

    assert ready(desk.delivery) == [(3, 4), (5, 10)]
    assert list(desk.delivery.busy) == [(2, 3)]


@pytest.mark.parametrize(
    ("back", "taken", "has_come"),
    [
        ((1, 2), [message(2)], True),
        ((2, 3), [message(2)], False),
        ((3, 4), [message(2)], False),
        ((1, 2), [message(2, Lane.HIGH)], False),
        ((3, 4), [message(2), message(4)], True),
        ((1, 2), [], False),
    ],
)
def test_it_is_told_when_something_older_came_back_while_messages_were_read(
    back: Run, taken: list[StoredMessage], has_come: bool
) -> None:
    desk = stocked(5)
    desk.take(5)

    desk.delivery.put_back([back])

    assert desk.delivery.has_come_back_before(taken) is has_come


def test_the_scan_puts_only_what_is_free_on_the_shelf() -> None:
    kept = DeliveryKept(
        NUMBER,
        "workers",
        ORDERS,
        UUID(int=1),
        0,
        floor=2,
        settled=((4, 5),),
        leases=(LeaseKept(1, "ann", BEGIN_MS, ((6, 8),)),),
    )
    desk = Desk()
    desk.commit(kept)
    desk.delivery.reserve([(9, 10)])

    desk.delivery.learn(0, 12, Lane.NORMAL)

    assert ready(desk.delivery) == [(2, 4), (5, 6), (8, 9), (10, 12)]
    assert desk.delivery.shelf.scan_offset == 12


def test_a_batch_that_the_scan_meets_again_is_not_on_the_shelf_twice() -> None:
    desk = stocked(10)
    desk.poll(10)

    desk.delivery.learn(0, 10, Lane.NORMAL)
    desk.delivery.learn(5, 12, Lane.NORMAL)

    assert ready(desk.delivery) == [(10, 12)]


def test_the_scan_passes_what_is_settled_already() -> None:
    desk = Desk()
    desk.commit(Settled(NUMBER, NO_LEASE, ((3, 6),)))
    assert desk.delivery.find_scan() == 0

    desk.delivery.learn(0, 3, Lane.NORMAL)
    assert desk.delivery.find_scan() == 6
    desk.delivery.learn(6, 7, Lane.NORMAL)

    assert desk.delivery.find_scan() == 7
    assert ready(desk.delivery) == [(0, 3), (6, 7)]


def test_a_message_that_is_to_be_moved_is_out_with_nobody_and_busy_until_it_has_arrived() -> None:
    desk = stocked(3)
    leased = desk.poll(3)

    desk.commit(MovesBegun(NUMBER, leased.lease, (move(1),)))

    assert list(desk.delivery.leases[leased.lease].offsets) == [(0, 1), (2, 3)]
    assert desk.delivery.in_flight("ann") == 2
    assert list(desk.delivery.moves) == [1]
    assert desk.delivery.holding(leased.lease, 1, now_ms=desk.now_ms) is Holding.LOST
    desk.settle(leased, (0, 1), (2, 3))
    assert desk.delivery.floor == 1
    desk.commit(Settled(NUMBER, NO_LEASE, ((1, 2),)))

    assert desk.delivery.floor == 3
    assert not desk.delivery.moves


def test_a_message_that_waits_for_its_next_try_can_be_moved_and_waits_no_more() -> None:
    desk = stocked(1)
    desk.give_back(desk.poll(1), after_ms=10)

    desk.commit(MovesBegun(NUMBER, NO_LEASE, (move(0),)))
    desk.wait(10)

    assert ready(desk.delivery) == []
    assert (desk.delivery.waiting, list(desk.delivery.busy)) == ({}, [(0, 1)])


def test_a_message_that_is_moved_before_anybody_took_it_is_not_handed_out() -> None:
    desk = stocked(3)

    desk.commit(MovesBegun(NUMBER, NO_LEASE, (move(1),)))

    assert ready(desk.delivery) == [(0, 1), (2, 3)]
    assert list(desk.delivery.busy) == [(1, 2)]


def test_of_what_lies_below_the_floor_no_lane_is_remembered() -> None:
    desk = stocked(4, Lane.CRITICAL)
    desk.stock(4, Lane.HIGH)

    desk.settle(desk.poll(6))

    assert desk.delivery.floor == 6
    assert desk.delivery.shelf.count_by_lane(0, 8) == [0, 2, 6, 0, 0]
    desk.delivery.settle_below(20)
    assert desk.delivery.shelf.scan_offset == 20


def test_what_is_settled_is_not_moved() -> None:
    desk = stocked(3)
    leased = desk.poll(3)
    desk.settle(leased, (0, 1), (2, 3))

    desk.commit(MovesBegun(NUMBER, leased.lease, (move(0), move(2))))

    assert not desk.delivery.moves
    assert list(desk.delivery.busy) == [(1, 2)]


def test_messages_that_nobody_can_read_are_settled_and_told_of() -> None:
    desk = stocked(10)
    passed = PassedRun(0, 4, "corrupt", BEGIN_MS)

    moved = desk.commit(PassedOver(NUMBER, passed, ((0, 4),)))

    assert [one.offset for one in moved] == [4]
    assert list(desk.delivery.passed.values()) == [passed]
    assert ready(desk.delivery) == [(4, 10)]


def test_of_what_was_left_out_the_newest_hundred_runs_are_remembered() -> None:
    desk = Desk()
    runs = [PassedRun(first, first + 1, "corrupt", BEGIN_MS) for first in range(0, 220, 2)]
    for run in runs:
        desk.commit(PassedOver(NUMBER, run, ()))
    again = runs[20]._replace(reason="again")

    desk.commit(PassedOver(NUMBER, again, ()))

    assert list(desk.delivery.passed.values()) == [*runs[10:20], *runs[21:], again]


def test_what_would_be_lost_is_what_nobody_has_and_nobody_settled() -> None:
    desk = stocked(12)
    leased = desk.poll(6)
    desk.settle(leased, (0, 1), (2, 3))
    desk.commit(MovesBegun(NUMBER, leased.lease, (move(4),)))

    assert desk.delivery.lost_within(0, 8) == [(4, 5), (6, 8)], "what is to be moved has to be read"
    assert desk.delivery.lost_within(0, 4) == []
    assert desk.delivery.lost_within(5, 9) == [(6, 9)]


def test_an_offset_that_is_committed_by_hand_settles_all_below_it_whoever_has_it() -> None:
    desk = stocked(10)
    desk.poll(3, "ann")
    ben = desk.poll(3, "ben")
    desk.give_back(desk.poll(1, "eve"), after_ms=10)

    desk.delivery.settle_below(5)

    assert desk.delivery.floor == 5
    assert (desk.delivery.in_flight("ann"), desk.delivery.in_flight("ben")) == (0, 1)
    assert list(desk.delivery.leases) == [ben.lease]
    assert ready(desk.delivery) == [(7, 10)]
    desk.delivery.settle_below(7)
    assert (desk.delivery.floor, desk.delivery.leases, desk.delivery.waiting) == (7, {}, {})


@pytest.mark.parametrize("offset", [0, 2, 3])
def test_an_offset_by_hand_below_the_floor_changes_nothing(offset: int) -> None:
    desk = stocked(10)
    leased = desk.poll(5)
    desk.settle(leased, (0, 3))
    before = desk.delivery.kept()

    desk.delivery.settle_below(offset)

    assert desk.delivery.kept() == before


def test_an_offset_by_hand_meets_what_is_settled_behind_it() -> None:
    desk = stocked(10)
    desk.settle(desk.poll(10), (5, 8))

    desk.delivery.settle_below(5)

    assert (desk.delivery.floor, list(desk.delivery.settled)) == (8, [])


def test_a_group_can_begin_anew_at_an_offset_whatever_became_of_the_messages() -> None:
    desk = stocked(10)
    leased = desk.poll(8)
    desk.settle(leased, (0, 2), (4, 5))
    desk.give_back(leased, (2, 3), after_ms=5)
    desk.commit(MovesBegun(NUMBER, leased.lease, (move(0), move(3), move(7))))

    desk.delivery.begin_at(1)

    assert (desk.delivery.floor, desk.delivery.leases, desk.delivery.attempts) == (1, {}, {})
    assert desk.delivery.in_flight("ann") == 0
    assert desk.delivery.find_scan() == 1
    desk.stock(9)
    assert ready(desk.delivery) == [(1, 3), (4, 7), (8, 10)], "what is being moved is still being moved"
    assert desk.delivery.next_time_ms() is None


@pytest.mark.parametrize(
    ("steps", "end"),
    [
        ("nothing", 0),
        ("out", 6),
        ("settled", 9),
        ("came back", 4),
    ],
)
def test_the_last_message_that_anything_became_of_is_known(steps: str, end: int) -> None:
    desk = stocked(10)
    if steps == "out":
        desk.poll(6)
    elif steps == "settled":
        desk.poll(2)
        desk.commit(Settled(NUMBER, NO_LEASE, ((8, 9),)))
    elif steps == "came back":
        desk.give_back(desk.poll(4))
        desk.wait(0)

    assert desk.delivery.touched_end == end


def lively_desk() -> Desk:
    """Something of everything that a delivery can keep."""
    desk = stocked(40)
    desk.stock(10, Lane.HIGH)
    first = desk.poll(12)
    desk.settle(first, (40, 43), (2, 3))
    desk.give_back(first, (0, 1), after_ms=700)
    desk.commit(Extended(NUMBER, first.lease, ((45, 46),), BEGIN_MS + 9_000))
    desk.commit(MovesBegun(NUMBER, first.lease, (move(44), move(1))))
    desk.commit(PassedOver(NUMBER, PassedRun(20, 22, "corrupt", 5), ((20, 22),)))
    desk.poll(3, "ben")
    return desk


def state(delivery: Delivery) -> tuple[object, ...]:
    """All that must survive, and what follows from it."""
    return (
        delivery.kept(),
        list(delivery.busy),
        delivery.waiting,
        delivery.leased_count,
        [delivery.in_flight(name) for name in ("ann", "ben")],
        delivery.next_time_ms(),
    )


def test_the_same_events_lead_to_the_same_delivery() -> None:
    desk = lively_desk()

    assert state(desk.read_back()) == state(desk.delivery)


def test_the_state_in_one_event_leads_to_the_same_delivery() -> None:
    desk = lively_desk()

    assert state(desk.read_back([desk.delivery.kept()])) == state(desk.delivery)


def test_a_delivery_that_was_read_back_goes_on_as_the_old_one() -> None:
    desk, again = lively_desk(), lively_desk()
    again.deliveries.apply(desk.delivery.kept())
    for each in (desk, again):
        each.delivery.learn(each.delivery.find_scan(), 40, Lane.NORMAL)
        each.delivery.learn(40, 50, Lane.HIGH)
        each.wait(20_000)

    assert again.delivery.kept().floor == desk.delivery.kept().floor
    assert ready(again.delivery) == ready(desk.delivery)
    assert again.delivery.attempts == desk.delivery.attempts


def test_deadlines_run_by_a_clock_that_nobody_sets() -> None:
    """Events tell wall times; here the running time is 500 ms ahead of them, and after a restart 20."""
    desk = stocked(3)
    leased = desk.poll(1)
    desk.deliveries.apply(desk.delivery.kept(), ahead_ms=500)
    delivery = desk.delivery
    assert delivery.next_time_ms() == BEGIN_MS + VISIBILITY_MS + 500

    delivery.apply(Extended(NUMBER, leased.lease, ((0, 1),), BEGIN_MS + 9_000), ahead_ms=500)
    assert delivery.holding(leased.lease, 0, now_ms=BEGIN_MS + 9_499) is Holding.HELD
    assert delivery.holding(leased.lease, 0, now_ms=BEGIN_MS + 9_500) is Holding.LOST
    kept = delivery.kept(ahead_ms=500)
    assert kept.leases == (LeaseKept(leased.lease, "ann", BEGIN_MS + 9_000, ((0, 1),)),)

    desk.deliveries.apply(kept, ahead_ms=20)
    assert desk.delivery.next_time_ms() == BEGIN_MS + 9_020


def test_waiting_times_and_single_deadlines_are_kept_in_wall_time_too() -> None:
    kept = DeliveryKept(
        NUMBER,
        "workers",
        ORDERS,
        UUID(int=1),
        0,
        0,
        leases=(LeaseKept(3, "ann", 5_000, ((0, 2),), ((1, 7_000),)),),
        returned=(ReturnKept(4, 2, 6_000), ReturnKept(0, 1, 0)),
    )
    desk = Desk()
    desk.deliveries.apply(kept, ahead_ms=100)

    assert desk.delivery.leases[3].later == {1: 7_100}
    assert desk.delivery.waiting == {4: 6_100}
    assert desk.delivery.kept(ahead_ms=100) == kept
    assert desk.delivery.moves.producer_id == NO_PRODUCER
