"""Idempotent producers: a batch sent twice is stored once, a gap is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

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


@pytest.mark.parametrize(
    ("sequence", "count", "offset"),
    [(10, 5, 200), (11, 4, 201), (14, 1, 204), (12, 2, 202), (3, 7, 103)],
)
def test_a_part_of_a_stored_batch_is_known_by_where_it_lies(sequence: int, count: int, offset: int) -> None:
    producers = Producers()
    store(producers, 0, 10, 100)
    store(producers, 10, 5, 200)

    assert producers.duplicate(header(sequence), count) == offset


@pytest.mark.parametrize(("sequence", "count"), [(8, 4), (14, 2), (0, 15)])
def test_what_is_only_in_part_stored_is_said_to_be_stored_before(sequence: int, count: int) -> None:
    producers = Producers()
    store(producers, 0, 10, 100)
    store(producers, 10, 5, 200)

    with pytest.raises(DuplicateSequence):
        producers.duplicate(header(sequence), count)


def test_a_producer_may_begin_as_far_on_as_delayed_messages_explain() -> None:
    producers = Producers()

    assert producers.duplicate(header(4), 1, first_max=4) is None
    with pytest.raises(OutOfSequence):
        producers.duplicate(header(5), 1, first_max=4)


def test_a_new_epoch_may_begin_as_far_on_too() -> None:
    producers = Producers()
    store(producers, 0, 3, 0)

    assert producers.duplicate(header(4, epoch=1), 1, first_max=4) is None
    with pytest.raises(OutOfSequence):
        producers.duplicate(header(5, epoch=1), 1, first_max=4)


def test_one_that_may_skip_numbers_has_only_to_count_upwards() -> None:
    producers = Producers()
    assert producers.duplicate(header(70), 1, may_skip=True) is None
    store(producers, 0, 10, 100)

    assert producers.duplicate(header(15), 1, may_skip=True) is None
    assert producers.duplicate(header(99, epoch=1), 1, may_skip=True) is None
    assert producers.duplicate(header(3), 2, may_skip=True) == 103
    with pytest.raises(DuplicateSequence):
        producers.duplicate(header(8), 5, may_skip=True)


def test_the_broker_counts_for_a_producer_that_leaves_it_to_it() -> None:
    producers = Producers()
    assert producers.next_sequence(7, 0) == 0

    store(producers, 0, 3, 0)

    assert producers.next_sequence(7, 0) == 3
    assert producers.next_sequence(7, 1) == 0, "a new epoch counts anew"
    assert producers.next_sequence(8, 0) == 0
    producers.fence(7, 1, seen_ms=5)
    assert producers.next_sequence(7, 1) == 0


def test_a_marker_fences_the_epochs_before_its_own() -> None:
    producers = Producers()
    store(producers, 0, 3, 0)

    producers.fence(7, 2, seen_ms=5)

    with pytest.raises(ProducerFenced):
        producers.duplicate(header(3), 1)
    assert producers.duplicate(header(0, epoch=2), 1) is None
    assert producers.duplicate(header(4, epoch=2), 1, first_max=4) is None
    with pytest.raises(OutOfSequence):
        producers.duplicate(header(1, epoch=2), 1)


def test_a_marker_of_the_present_epoch_or_an_older_one_forgets_nothing() -> None:
    producers = Producers()
    store(producers, 0, 3, 0, epoch=2)
    before = producers.snapshot()

    for epoch in (1, 2):
        producers.fence(7, epoch, seen_ms=9_999)
    producers.fence(8, 1, seen_ms=9_999)

    assert producers.snapshot() == before


def test_what_is_known_of_a_producer_can_be_told() -> None:
    producers = Producers()
    store(producers, 0, 3, 0)
    producers.apply(header(LAST_SEQUENCE, producer=8), base_offset=9, count=1, lane=2, seen_ms=700)
    producers.apply(header(0, producer=9), base_offset=10, count=1, lane=2, seen_ms=700)
    producers.fence(9, 4, seen_ms=800)

    assert producers.all() == [(7, 0, 2, 1_000), (8, 0, LAST_SEQUENCE, 700), (9, 4, -1, 800)]


def test_a_producer_was_last_seen_at_its_newest_batch_whatever_the_clock_said_since() -> None:
    producers = Producers()
    store(producers, 0, 1, 0)
    producers.apply(header(1), base_offset=1, count=1, lane=2, seen_ms=10)

    assert producers.all()[0][3] == 1_000


@pytest.mark.parametrize(
    ("sequence", "offset", "lane"), [(2, 33, 1), (3, 32, 1), (2, 32, 0)], ids=["gap", "skip", "same lane"]
)
def test_batches_that_are_not_pieces_of_one_are_known_apart(sequence: int, offset: int, lane: int) -> None:
    producers = Producers()
    producers.apply(header(0), base_offset=30, count=2, lane=0, seen_ms=0)

    producers.apply(header(sequence), base_offset=offset, count=2, lane=lane, seen_ms=0)

    assert producers.duplicate(header(sequence), 2) == offset
    with pytest.raises(DuplicateSequence):
        producers.duplicate(header(0), 4)


def test_only_ids_that_were_forgotten_may_go_on_anywhere() -> None:
    """Ids only grow: a higher one has never been here, so its first batch is still to come."""
    producers = Producers()
    for producer in (5, 7):
        producers.apply(header(0, producer=producer), base_offset=0, count=1, lane=2, seen_ms=0)
    producers.expire(before_ms=1)
    again = Producers()
    again.restore(producers.snapshot())

    for known in (producers, again):
        assert known.duplicate(header(9, producer=5), 1) is None
        assert known.duplicate(header(9, producer=7), 1) is None
        with pytest.raises(OutOfSequence):
            known.duplicate(header(9, producer=8), 1)


def test_a_recovery_point_that_is_not_there_is_a_beginning_from_nothing() -> None:
    producers = Producers()
    store(producers, 0, 3, 0)

    producers.restore(None)

    assert producers.snapshot() == Producers().snapshot()


@given(st.lists(st.tuples(st.integers(1, 4), st.booleans()), min_size=1, max_size=15), st.integers(0, 15))
def test_a_producer_that_repeats_what_it_is_not_sure_of_stores_everything_once(
    batches: list[tuple[int, bool]], restart_at: int
) -> None:
    """Each batch may lose its reply, and is sent again; in between the partition is opened anew."""
    producers, log, sequence = Producers(), list[int](), 0
    for number, (count, is_repeated) in enumerate(batches):
        if number == restart_at:
            snapshot = producers.snapshot()
            producers = Producers()
            producers.restore(snapshot)
        first_offset = len(log)
        for _ in range(1 + is_repeated):
            found = producers.duplicate(header(sequence), count)
            if found is None:
                producers.apply(header(sequence), base_offset=len(log), count=count, lane=2, seen_ms=number)
                log += range(sequence, sequence + count)
            else:
                assert found == first_offset
        sequence += count

    assert log == list(range(sequence))
