"""The waiting room of a producer: when parcels go, and what is in them."""

from concurrent.futures import Future

import pytest

from goqueue.client.messages import Placed, to_store
from goqueue.client.outbox import Outbox, Parcel, ProducerSettings, fail_all
from goqueue.model.messages import Headers, Lane, Message

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


def message(value: bytes = b"", *, key: bytes | None = None, headers: Headers = ()) -> Message:
    return Message(value, key, headers, Lane.NORMAL, None)


def add_sized(outbox: Outbox, one: Message, *, now_ns: int = 0) -> bool:
    return outbox.add("t", one, Future(), now_ns=now_ns)


@pytest.mark.parametrize(
    "heavy",
    [
        message(bytes(84)),
        message(key=bytes(84)),
        message(headers=(("h", bytes(83)),)),
        message(headers=(("h" * 84, None),)),
    ],
    ids=["value", "key", "header", "name of a header"],
)
def test_all_parts_of_a_message_count_against_the_bytes_of_a_batch(heavy: Message) -> None:
    outbox = Outbox(ProducerSettings(batch_bytes=101))
    assert add_sized(outbox, heavy)  # the first always changes when the next parcel goes
    assert outbox.due_in_ns(0) == 5 * MS  # 100 bytes and no more
    assert add_sized(outbox, message())
    assert outbox.due_in_ns(0) == 0


def test_only_what_makes_a_parcel_go_sooner_wakes_the_sender() -> None:
    outbox = Outbox(ProducerSettings(batch_count=3, linger_ms=5))

    assert [add_sized(outbox, message()) for _ in range(4)] == [True, False, True, True]


def test_a_parcel_may_be_full_to_the_byte() -> None:
    outbox = Outbox(ProducerSettings(batch_bytes=100))
    for _ in range(3):
        add_sized(outbox, message(bytes(34)))  # 50 with what a record takes

    assert topics_and_counts(outbox.take(0)) == [("t", 2)]


def test_what_was_taken_is_not_weighed_again() -> None:
    outbox = Outbox(ProducerSettings(batch_bytes=100, linger_ms=5))
    for _ in range(3):
        add_sized(outbox, message(bytes(34)))
    outbox.take(0)

    assert outbox.due_in_ns(0) == 5 * MS
    add_sized(outbox, message(bytes(34)))
    assert outbox.due_in_ns(0) == 0


def test_the_linger_time_runs_for_what_was_left_from_when_it_came() -> None:
    outbox = Outbox(ProducerSettings(batch_count=2, linger_ms=5))
    for now_ns in (0, 1 * MS, 2 * MS):
        add_sized(outbox, message(), now_ns=now_ns)
    assert topics_and_counts(outbox.take(2 * MS)) == [("t", 2)]

    assert outbox.due_in_ns(2 * MS) == 5 * MS
    assert outbox.due_in_ns(9 * MS) == 0


def test_the_sender_sleeps_until_the_soonest_of_all_topics() -> None:
    outbox = Outbox(ProducerSettings(linger_ms=5))
    add(outbox, "late", now_ns=3 * MS)
    add(outbox, "soon", now_ns=1 * MS)

    assert outbox.due_in_ns(3 * MS) == 3 * MS
    assert topics_and_counts(outbox.take(6 * MS)) == [("soon", 1)]


def test_a_flush_of_nothing_does_not_hurry_what_comes_later() -> None:
    outbox = Outbox(ProducerSettings(linger_ms=5))
    outbox.flush()
    add(outbox)

    assert outbox.due_in_ns(0) == 5 * MS


def test_a_flush_lasts_while_anything_of_it_is_under_way() -> None:
    outbox = Outbox(ProducerSettings(batch_count=1, linger_ms=5))
    add(outbox)
    add(outbox)
    outbox.flush()
    first, second = outbox.take(0), outbox.take(0)
    assert first is not None and second is not None
    outbox.answered(first)
    add(outbox)
    assert outbox.due_in_ns(0) == 0
    third = outbox.take(0)
    assert third is not None
    outbox.answered(second, third)

    assert outbox.is_empty


def test_what_came_later_is_weighed_anew_after_the_old_was_taken_out() -> None:
    outbox = Outbox(ProducerSettings(batch_bytes=100, linger_ms=5))
    add_sized(outbox, message(bytes(34)), now_ns=0)
    add_sized(outbox, message(bytes(10)), now_ns=9)
    outbox.take_older(than_ns=9)

    assert outbox.due_in_ns(9) == 5 * MS
    add_sized(outbox, message(bytes(34)), now_ns=9)
    assert outbox.due_in_ns(9) == 5 * MS
    add_sized(outbox, message(bytes(34)), now_ns=9)
    assert outbox.due_in_ns(9) == 0


@pytest.mark.parametrize("batch_bytes", [1, 512 * 1024])
def test_a_batch_may_have_as_many_bytes_as_half_a_request(batch_bytes: int) -> None:
    assert ProducerSettings(batch_bytes=batch_bytes).batch_bytes == batch_bytes
    with pytest.raises(ValueError, match="batch_bytes"):
        ProducerSettings(batch_bytes=512 * 1024 + 1)


def test_who_knows_already_is_not_told_again() -> None:
    answered: Future[Placed] = Future()
    answered.set_result(Placed(0, 5))
    waiting: Future[Placed] = Future()
    outbox = Outbox(ProducerSettings(linger_ms=0))
    for ticket in (answered, waiting):
        outbox.add("t", message(), ticket, now_ns=0)
    parcel = outbox.take(0)
    assert parcel is not None
    problem = RuntimeError("gone")
    fail_all([parcel], problem)

    assert answered.result().offset == 5
    assert waiting.exception() is problem


def test_the_least_that_makes_sense_is_taken() -> None:
    settings = ProducerSettings(batch_count=1, linger_ms=0, buffer_count=1)
    outbox = Outbox(settings)
    add(outbox)

    assert not outbox.has_room
    assert topics_and_counts(outbox.take(0)) == [("t", 1)]
