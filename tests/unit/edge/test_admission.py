"""Who is let in: bounds on all connections and on those of one address."""

from collections import Counter

from goqueue.edge.admission import Admission, ConnectionLimits, Refusal


def test_one_address_cannot_keep_the_others_out() -> None:
    admission = Admission(ConnectionLimits(connections_max=10, per_address_max=2), "kafka", Counter())
    assert [admission.enter("a") for _ in range(3)] == [None, None, Refusal.ADDRESS_FULL]

    assert admission.enter("b") is None
    assert admission.count == 3


def test_all_addresses_together_have_a_bound() -> None:
    admission = Admission(ConnectionLimits(connections_max=2, per_address_max=2), "kafka", Counter())
    assert admission.enter("a") is None
    assert admission.enter("b") is None

    assert admission.enter("c") is Refusal.FULL


def test_whoever_leaves_makes_room() -> None:
    admission = Admission(ConnectionLimits(connections_max=1, per_address_max=1), "kafka", Counter())
    admission.enter("a")
    admission.leave("a")

    assert admission.enter("b") is None
    assert admission.enter("a") is Refusal.FULL
