"""Delayed messages of open transactions: whose they are, and how many are held for a target."""

from goqueue.core.delays.held import Held, HeldMessage


def held(*messages: HeldMessage) -> Held:
    known = Held()
    for message in messages:
        known.add(message)
    return known


A = HeldMessage(3, producer_id=1, producer_epoch=0, target=7)
B = HeldMessage(4, producer_id=2, producer_epoch=0, target=7)
C = HeldMessage(5, producer_id=1, producer_epoch=0, target=8)


def test_what_a_producer_holds_is_told_in_the_order_it_came() -> None:
    known = held(A, B, C)

    assert known.of_producer(1) == [A, C]
    assert known.of_producer(9) == []
    assert (known.count(7), known.count(8), known.count(9)) == (2, 1, 0)


def test_a_message_that_is_read_back_a_second_time_is_held_once() -> None:
    known = held(A, A)

    assert (list(known), known.count(7)) == ([A], 1)


def test_what_was_decided_is_held_no_more_also_when_that_is_read_back_again() -> None:
    known = held(A, B, C)
    for _ in range(2):
        known.drop(A.number)

    assert (known.of_producer(1), list(known)) == ([C], [B, C])
    assert (known.count(7), known.count(8)) == (1, 1)


def test_only_what_came_before_a_number_is_a_transactions() -> None:
    """What lies behind belongs to the next one of the same producer."""
    known = held(A, B, C)

    assert known.of_producer(1, 5) == [A]
    assert known.of_producer(1, 6) == [A, C]
    assert known.of_producer(1, 3) == []


def test_a_producer_that_holds_nothing_more_is_forgotten_and_can_hold_again() -> None:
    known = held(A)
    known.drop(A.number)
    assert (known.of_producer(1), known.count(7), list(known)) == ([], 0, [])

    known.add(C)

    assert (known.of_producer(1), known.count(8)) == ([C], 1)
