"""Idempotent producers: a batch sent twice is stored once, a gap is refused."""

import pytest

from goqueue.core.transactions.producers import WINDOW_BATCHES, Producers
from goqueue.model.errors import DuplicateSequence, OutOfSequence, ProducerFenced
from goqueue.records.layout import BatchHeader

LAST_SEQUENCE = 2**31 - 1


def header(sequence: int, *, producer: int = 7, epoch: int = 0) -> BatchHeader:
    return BatchHeader(0, 0, 0, 2, 0, 0, 0, 0, 0, producer, epoch, sequence, 1)


def store(
    producers: Producers, sequence: int, count: int, offset: int, *, epoch: int = 0, lane: int = 2
) -> None:
    batch = header(sequence, epoch=epoch)
    assert producers.duplicate(batch, count) is None
    producers.apply(batch, base_offset=offset, count=count, lane=lane, seen_ms=1_000)


def test_a_batch_sent_again_is_answered_with_its_first_offset() -> None:
    producers = Producers()
    store(producers, 0, 10, 100)
    store(producers, 10, 5, 200)

    assert producers.duplicate(header(0), 10) == 100
    assert producers.duplicate(header(10), 5) == 200


def test_a_gap_is_refused() -> None:
    producers = Producers()
    store(producers, 0, 10, 100)

    with pytest.raises(OutOfSequence):
        producers.duplicate(header(11), 1)


def test_the_last_five_batches_are_known_and_older_ones_said_to_be_stored() -> None:
    producers = Producers()
    for n in range(WINDOW_BATCHES + 1):
        store(producers, n, 1, 50 + n)

    assert [producers.duplicate(header(n), 1) for n in range(1, 6)] == [51, 52, 53, 54, 55]
    with pytest.raises(DuplicateSequence):
        producers.duplicate(header(0), 1)


def test_an_older_epoch_is_fenced_and_a_newer_one_begins_at_zero() -> None:
    producers = Producers()
    store(producers, 0, 3, 0, epoch=2)

    with pytest.raises(ProducerFenced):
        producers.duplicate(header(3, epoch=1), 1)
    with pytest.raises(OutOfSequence):
        producers.duplicate(header(3, epoch=3), 1)
    store(producers, 0, 1, 3, epoch=3)


def test_sequences_begin_again_behind_the_largest() -> None:
    producers = Producers()
    producers.apply(header(LAST_SEQUENCE - 1), base_offset=70, count=2, lane=2, seen_ms=0)
    store(producers, 0, 4, 72)

    assert producers.duplicate(header(LAST_SEQUENCE - 1), 2) == 70
    assert producers.duplicate(header(4), 1) is None


def test_a_batch_that_was_split_by_lane_is_known_as_a_whole() -> None:
    producers = Producers()
    for n in range(8):  # eight pieces of one batch of sixteen
        producers.apply(header(2 * n), base_offset=30 + 2 * n, count=2, lane=n % 2, seen_ms=0)

    assert producers.duplicate(header(0), 16) == 30
    assert producers.duplicate(header(16), 1) is None


def test_batches_of_producers_without_an_id_are_not_remembered() -> None:
    producers = Producers()
    plain = header(-1, producer=-1)

    producers.apply(plain, base_offset=0, count=1, lane=2, seen_ms=0)

    assert producers.duplicate(plain, 1) is None
    assert len(producers) == 0


def test_silent_producers_are_forgotten_and_may_go_on_anywhere() -> None:
    producers = Producers()
    store(producers, 0, 3, 0)

    producers.expire(before_ms=1_000)
    assert len(producers) == 1
    producers.expire(before_ms=1_001)

    assert len(producers) == 0
    assert producers.duplicate(header(40), 1) is None


def test_a_new_producer_starts_at_zero_lest_its_first_batch_be_taken_for_an_old_one() -> None:
    producers = Producers()

    with pytest.raises(OutOfSequence):
        producers.duplicate(header(5), 1)
    store(producers, 0, 5, 0)
    assert producers.duplicate(header(5), 1) is None


def test_the_state_survives_a_recovery_point() -> None:
    producers = Producers()
    store(producers, 0, 3, 0, epoch=1)
    again = Producers()

    again.restore(producers.snapshot())

    assert again.duplicate(header(0, epoch=1), 3) == 0
    assert again.snapshot() == producers.snapshot()
