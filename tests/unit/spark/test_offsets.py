"""Positions and portions: sorted, fair, never more than asked where that can be."""

import json

from hypothesis import given
from hypothesis import strategies as st

from goqueue.client.log import Extent
from goqueue.spark.source.offsets import Place, estimated_bytes, flat, nested, portions
from goqueue.spark.source.planning import cap_records

COUNTS = st.dictionaries(
    st.builds(Place, st.sampled_from(["a", "b"]), st.sampled_from(["0", "1", "2"])), st.integers(0, 10_000)
)


def test_the_same_positions_are_the_same_text_whatever_their_order() -> None:
    one = {Place("b", "1"): 5, Place("a", "0"): 1, Place("b", "0"): 2}

    assert json.dumps(nested(one)) == '{"a": {"0": 1}, "b": {"0": 2, "1": 5}}'
    assert json.dumps(nested(dict(reversed(one.items())))) == json.dumps(nested(one))
    assert flat(nested(one)) == one


def test_a_portion_is_taken_in_proportion() -> None:
    taken = portions({Place("a", "0"): 901, Place("a", "1"): 101}, 102)

    assert taken == {Place("a", "0"): 91, Place("a", "1"): 11}


@given(COUNTS, st.integers(1, 30_000))
def test_a_portion_is_never_too_large_and_forgets_no_partition(
    waiting: dict[Place, int], portion: int
) -> None:
    taken = portions(waiting, portion)
    active = {place for place, count in waiting.items() if count}

    assert taken.keys() == active
    assert all(1 <= taken[place] <= waiting[place] for place in active)
    assert sum(taken.values()) <= max(portion, len(active))
    assert sum(waiting.values()) > portion or taken == {place: waiting[place] for place in active}


def test_the_end_of_a_topic_that_was_made_anew_stands() -> None:
    start = {Place("a", "0"): 50, Place("a", "1"): 0}

    assert cap_records(start, {Place("a", "0"): 3, Place("a", "1"): 9}, 5) == {
        Place("a", "0"): 3,
        Place("a", "1"): 5,
    }


def test_bytes_are_guessed_from_the_partitions_own() -> None:
    assert estimated_bytes(Extent(start=100, end=200, size_bytes=5_000), 10) == 500
    assert estimated_bytes(Extent(start=100, end=100), 10) == 0
