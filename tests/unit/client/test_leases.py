"""What a consumer has out: when leases want to be extended, and which acknowledgements go together."""

import pytest

from goqueue.client.leases import ACK_COUNT, Leases

MS = 1_000_000
S = 1_000 * MS


def leases_of(*, visibility_s: int | None = 10, linger_ms: int = 20) -> Leases:
    visibility_ns = None if visibility_s is None else visibility_s * S
    return Leases(visibility_ns=visibility_ns, ack_linger_ns=linger_ms * MS)


def test_leases_are_extended_at_half_time_until_they_are_settled() -> None:
    leases = leases_of()
    leases.hold(["a", "b"], now_ns=0)
    assert leases.due_in_ns(1 * S) == 4 * S
    assert leases.due_extensions(5 * S - 1) == []
    assert leases.due_extensions(5 * S) == ["a", "b"]

    leases.drop("b")
    leases.extended(["a", "b"], (), now_ns=5 * S)
    assert leases.due_extensions(9 * S) == []
    assert leases.due_extensions(10 * S) == ["a"]


def test_the_oldest_lease_says_when_the_next_extension_is_due() -> None:
    leases = leases_of()
    leases.hold(["a"], now_ns=0)
    leases.hold(["b"], now_ns=2 * S)
    assert leases.due_in_ns(2 * S) == 3 * S

    leases.hold(["a"], now_ns=3 * S)  # extended by hand: now it is the younger one
    assert leases.due_in_ns(3 * S) == 4 * S
    assert leases.due_extensions(7 * S) == ["b"]
    assert leases.due_in_ns(60 * S) == 0


def test_who_does_not_extend_has_nothing_due() -> None:
    leases = leases_of(visibility_s=None)
    leases.hold(["a"], now_ns=0)

    assert leases.due_in_ns(60 * S) is None
    assert leases.due_extensions(60 * S) == []


def test_what_could_not_be_extended_is_not_tried_again_and_yet_nobody_has_settled_it() -> None:
    leases = leases_of()
    leases.hold(["lost", "kept"], now_ns=0)
    leases.extended(["lost", "kept"], {"lost"}, now_ns=5 * S)

    assert leases.due_extensions(60 * S) == ["kept"]
    assert leases.is_open("lost")
    leases.drop("lost")
    assert not leases.is_open("lost")


def test_what_was_acknowledged_while_it_was_extended_is_not_taken_up_again() -> None:
    leases = leases_of()
    leases.hold(["a", "b"], now_ns=0)
    leases.ack("a", now_ns=5 * S)
    leases.drop("b")
    leases.extended(["a", "b"], {"b"}, now_ns=5 * S)

    assert leases.due_extensions(60 * S) == []
    assert not leases.is_open("a")
    assert not leases.is_open("b")


@pytest.mark.parametrize("verb", ["ack", "drop"])
@pytest.mark.parametrize("is_lost", [False, True])
def test_a_message_is_open_until_somebody_settles_it(verb: str, is_lost: bool) -> None:
    leases = leases_of()
    assert not leases.is_open("a")
    leases.hold(["a"], now_ns=0)
    if is_lost:
        leases.extended(["a"], {"a"}, now_ns=5 * S)
    assert leases.is_open("a")
    if verb == "ack":
        leases.ack("a", now_ns=0)
    else:
        leases.drop("a")
    assert not leases.is_open("a")


def test_acknowledgements_wait_for_the_linger_time_of_the_first() -> None:
    leases = leases_of()
    leases.ack("a", now_ns=0)
    leases.ack("b", now_ns=15 * MS)

    assert leases.due_in_ns(15 * MS) == 5 * MS
    assert leases.due_acks(20 * MS - 1) == []
    assert leases.due_acks(20 * MS) == ["a", "b"]


def test_a_hundred_acknowledgements_wait_for_nothing() -> None:
    leases = leases_of(linger_ms=1_000)
    for number in range(ACK_COUNT - 1):
        leases.ack(str(number), now_ns=0)
    assert leases.due_acks(0) == []
    leases.ack("the hundredth", now_ns=0)
    leases.ack("one more", now_ns=0)
    assert leases.due_in_ns(0) == 0

    due = leases.due_acks(0)
    assert len(due) == ACK_COUNT
    leases.acked(due, now_ns=7 * MS)
    # The linger time of the rest begins anew.
    assert leases.due_in_ns(7 * MS) == 1_000 * MS
    assert leases.due_acks(0) == []
    leases.flush()
    assert leases.due_acks(7 * MS) == ["one more"]


def test_acknowledgements_wait_until_they_are_answered() -> None:
    leases = leases_of()
    leases.ack("a", now_ns=0)
    assert leases.due_acks(1 * S) == leases.due_acks(1 * S) == ["a"]
    leases.ack("b", now_ns=1 * S)
    leases.acked(["a"], now_ns=1 * S)

    assert leases.due_acks(1 * S) == []
    assert leases.due_acks(1 * S + 20 * MS) == ["b"]


def test_a_flush_is_over_when_all_that_waited_has_gone() -> None:
    leases = leases_of()
    leases.flush()  # with nothing to send it hurries nothing
    leases.ack("a", now_ns=0)
    assert leases.due_acks(0) == []
    leases.flush()
    leases.ack("b", now_ns=0)
    leases.acked(["a"], now_ns=0)
    assert leases.due_acks(0) == ["b"]
    leases.acked(["b"], now_ns=0)
    leases.ack("c", now_ns=0)
    assert leases.due_acks(0) == []


def test_whatever_is_due_first_counts() -> None:
    leases = leases_of(visibility_s=10)
    leases.hold(["a", "b"], now_ns=0)
    leases.ack("a", now_ns=0)
    assert leases.due_in_ns(0) == 20 * MS
    leases.acked(["a"], now_ns=0)
    assert leases.due_in_ns(0) == 5 * S
    leases.drop("b")
    assert leases.due_in_ns(0) is None
