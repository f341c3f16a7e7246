"""Trace ids: made of a place and turned back into it, or taken from a header."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goqueue.core.telemetry.trace_ids import Place, TraceIds, parse_traceparent, topic_tag

PARENT = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
IDS = TraceIds("some-cluster")


@given(st.integers(0, 2**40 - 1), st.integers(0, 2**24 - 1), st.integers(0, 2**63 - 1))
def test_a_made_id_tells_its_place(tag: int, partition: int, offset: int) -> None:
    ids = IDS.of_partition(tag, partition)
    trace_id = ids.trace_id(offset)
    assert IDS.place_of(trace_id) == Place(tag, partition, offset)
    context = parse_traceparent(ids.traceparent(offset))
    assert context is not None, "no part of a made header is all zeros"
    assert context.trace_id == trace_id


@given(st.integers(0, 2**62), st.integers(0, 40), st.integers(1, 7))
def test_many_headers_at_once_are_those_of_one_at_a_time(first: int, count: int, every: int) -> None:
    ids = IDS.of_partition(7, 3)
    offsets = range(first, first + count * every, every)
    assert ids.traceparents(offsets) == [ids.traceparent(offset).decode() for offset in offsets]


@given(st.integers(0, 2**128 - 1))
def test_no_two_places_have_the_same_id(number: int) -> None:
    trace_id = f"{number:032x}"
    place = IDS.place_of(trace_id)
    if place is not None:
        assert IDS.of_partition(place.tag, place.partition).trace_id(place.offset) == trace_id


def test_clusters_make_different_ids_of_the_same_place() -> None:
    tag = topic_tag("orders")
    other = TraceIds("other-cluster").of_partition(tag, 0).trace_id(7)
    assert other != IDS.of_partition(tag, 0).trace_id(7)
    assert other[16:] != IDS.of_partition(tag, 1).trace_id(7)[16:]


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"",
        PARENT[:-1],
        PARENT.upper(),
        b"ff" + PARENT[2:],
        PARENT.replace(b"0af7651916cd43dd8448eb211c80319c", b"0" * 32),
        PARENT.replace(b"b7ad6b7169203331", b"0" * 16),
        PARENT + b"-more",
    ],
)
def test_a_header_that_is_none_is_ignored(value: bytes | None) -> None:
    assert parse_traceparent(value) is None


def test_a_header_of_a_later_version_may_say_more() -> None:
    context = parse_traceparent(b"cc" + PARENT[2:] + b"-what-the-future-brings")
    assert context == ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331")
