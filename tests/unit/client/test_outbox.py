"""The waiting room of a producer: when parcels go, and what is in them."""

from concurrent.futures import Future

import pytest

from goqueue.client.messages import Placed, to_store
from goqueue.client.outbox import Outbox, Parcel, ProducerSettings

MS = 1_000_000


def add(outbox: Outbox, topic: str = "t", *, value: bytes = b"", now_ns: int = 0) -> None:
    future: Future[Placed] = Future()
    message = to_store(value, key=None, headers=(), partition=None, priority=None)
    outbox.add(topic, message, future, now_ns=now_ns)


def topics_and_counts(*parcels: Parcel | None) -> list[tuple[str, int]]:
    return [(parcel.topic, len(parcel.waiting)) for parcel in parcels if parcel is not None]


def test_a_message_waits_for_company_and_not_longer_than_the_linger_time() -> None:
    outbox = Outbox(ProducerSettings(linger_ms=5))
    add(outbox, now_ns=1 * MS)

    assert outbox.take(5 * MS) is None
    assert outbox.due_in_ns(2 * MS) == 4 * MS
    assert topics_and_counts(outbox.take(6 * MS)) == [("t", 1)]
    assert outbox.due_in_ns(6 * MS) is None


def test_a_full_batch_goes_at_once_and_leaves_the_rest() -> None:
    outbox = Outbox(ProducerSettings(batch_count=3))
    for _ in range(7):
        add(outbox)

    assert topics_and_counts(outbox.take(0), outbox.take(0), outbox.take(0)) == [("t", 3), ("t", 3)]


def test_a_batch_has_no_more_bytes_than_allowed_but_at_least_a_message() -> None:
    outbox = Outbox(ProducerSettings(batch_bytes=100))
    for size in (300, 60, 60):
        add(outbox, value=bytes(size))

    assert topics_and_counts(outbox.take(0)) == [("t", 1)]
    assert topics_and_counts(outbox.take(0)) == [("t", 1)]
    assert outbox.take(0) is None


def test_each_parcel_is_for_one_topic_the_oldest_first() -> None:
    outbox = Outbox(ProducerSettings(linger_ms=0))
    for moment, topic in enumerate(("b", "a", "b")):
        add(outbox, topic, now_ns=moment)

    assert topics_and_counts(outbox.take(9), outbox.take(9)) == [("b", 2), ("a", 1)]


def test_a_flush_lets_nothing_linger_until_all_is_answered() -> None:
    outbox = Outbox(ProducerSettings(linger_ms=1_000))
    add(outbox)
    outbox.flush()
    parcel = outbox.take(0)
    assert parcel is not None
    add(outbox)
    assert outbox.due_in_ns(0) == 0

    outbox.answered(parcel)
    second = outbox.take(0)
    assert second is not None
    outbox.answered(second)
    add(outbox)
    assert outbox.due_in_ns(0) == 1_000 * MS


def test_what_is_on_its_way_still_takes_room() -> None:
    outbox = Outbox(ProducerSettings(buffer_count=1, linger_ms=0))
    assert outbox.has_room
    add(outbox)
    parcel = outbox.take(0)
    assert parcel is not None
    assert (outbox.has_room, outbox.is_empty) == (False, False)
    outbox.answered(parcel)
    assert (outbox.has_room, outbox.is_empty) == (True, True)


def test_what_has_waited_for_too_long_is_taken_out_whole() -> None:
    outbox = Outbox(ProducerSettings(batch_count=2))
    for now_ns in (1, 2, 3, 9):
        add(outbox, "a", now_ns=now_ns)
    add(outbox, "b", now_ns=4)

    taken = outbox.take_older(than_ns=9)
    assert topics_and_counts(*taken) == [("a", 3), ("b", 1)]
    outbox.answered(*taken)
    outbox.flush()
    assert topics_and_counts(outbox.take(9), outbox.take(9)) == [("a", 1)]


@pytest.mark.parametrize(
    "wrong",
    [{"batch_count": 0}, {"batch_bytes": 0}, {"linger_ms": -1}, {"buffer_count": 0}, {"acks": "some"}],
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError):
        ProducerSettings(**wrong)  # type: ignore[arg-type]  # that is the point
