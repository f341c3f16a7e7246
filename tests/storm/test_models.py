"""A storm whose models cannot fail proves nothing: each kind of broken word is told."""

import pytest

from tests.storm.actors.queue_book import Held, QueueBook, State
from tests.storm.record import Kind, Record

FIRST, SECOND = (0, 1), (0, 2)


@pytest.fixture
def record() -> Record:
    return Record()


@pytest.fixture
def book(record: Record) -> QueueBook:
    book = QueueBook("queue", record, is_key_ordered=True)
    for place in (FIRST, SECOND):
        book.published(place, "key", f"value {place[1]}")
    return book


def held(place: tuple[int, int], *, member: str = "one", until_s: float = 3) -> Held:
    message = {"key": "key", "value": f"value {place[1]}", "delivery_count": 9}
    return Held(place, "receipt", member, until_s, until_s, message)


def deliver(book: QueueBook, *batch: Held, at_s: float = 1) -> None:
    book.delivered(list(batch), sent_s=at_s, received_s=at_s)


def kinds(record: Record) -> list[Kind]:
    return [violation.kind for violation in record.violations]


def test_messages_that_come_in_order_and_again_after_their_lease_are_right(
    book: QueueBook, record: Record
) -> None:
    first, second = held(FIRST), held(SECOND)
    deliver(book, first, second)
    book.settled(first, State.ACKED)
    deliver(book, held(SECOND, member="two", until_s=6), at_s=3)

    assert (kinds(record), book.open_places()) == ([], [SECOND])
    assert record.checks[Kind.OUT_OF_ORDER] == 3


def test_a_book_knows_how_far_what_is_open_lies_behind(book: QueueBook) -> None:
    book.published((0, 90), "other", "value")
    book.published((1, 7), "other", "value")
    before = book.reach
    first = held(FIRST)
    deliver(book, first)
    book.settled(first, State.ACKED)

    assert (before, book.reach) == (89, 88)


def test_what_was_settled_and_comes_is_resurrected(book: QueueBook, record: Record) -> None:
    first = held(FIRST)
    deliver(book, first)
    book.settled(first, State.ACKED)
    deliver(book, held(FIRST), at_s=4)

    assert kinds(record) == [Kind.RESURRECTED]
    assert "acked" in record.violations[0].facts


def test_what_is_out_and_comes_is_doubled(book: QueueBook, record: Record) -> None:
    deliver(book, held(FIRST))
    deliver(book, held(FIRST, member="one"), at_s=2)

    assert kinds(record) == [Kind.DOUBLED]


def test_the_second_of_a_key_before_the_first_is_out_of_order(book: QueueBook, record: Record) -> None:
    deliver(book, held(FIRST, member="one"))
    deliver(book, held(SECOND, member="two"))

    assert kinds(record) == [Kind.OUT_OF_ORDER]


def test_a_member_may_have_the_first_from_a_poll_that_was_not_answered(
    book: QueueBook, record: Record
) -> None:
    book.poll_lost("two", latest_s=5)
    deliver(book, held(SECOND, member="two"), at_s=4)

    assert kinds(record) == []


def test_a_lease_that_was_lost_before_its_time_is_told_with_its_story(
    book: QueueBook, record: Record
) -> None:
    record.befall("kill -9")
    first = held(FIRST, until_s=3)
    deliver(book, first)
    book.refused(first, "lease_lost", received_s=2)

    assert kinds(record) == [Kind.UNEXPLAINED]
    assert "1.00 s before the lease could end" in record.violations[0].facts
    assert "before: kill -9 at" in record.violations[0].facts


def test_another_value_at_a_place_is_a_lost_one(book: QueueBook, record: Record) -> None:
    book.published(FIRST, "key", "another")

    assert kinds(record) == [Kind.LOST]
