"""Assignments of Kafka's consumers, read for people."""

import random
import struct

import pytest

from goqueue.core.groups.consumer_assignment import assigned_partitions

TWO_TOPICS = (
    b"\x00\x01\x00\x00\x00\x02"
    b"\x00\x02bc\x00\x00\x00\x01\x00\x00\x00\x07"
    b"\x00\x01a\x00\x00\x00\x02\x00\x00\x00\x01\x00\x00\x00\x00"
    b"\xff\xff\xff\xff"
)


def test_an_assignment_names_partitions_of_topics() -> None:
    assert assigned_partitions(TWO_TOPICS) == (("a", 0), ("a", 1), ("bc", 7))


@pytest.mark.parametrize("length", range(len(TWO_TOPICS) - 4))
def test_an_assignment_that_is_cut_short_names_none(length: int) -> None:
    assert assigned_partitions(TWO_TOPICS[:length]) == ()


def test_bytes_of_another_kind_do_no_harm() -> None:
    chance = random.Random(1)
    for _ in range(200):
        assigned_partitions(b"\x00\x00" + chance.randbytes(chance.randrange(40)))
    assert assigned_partitions(b"") == ()


@pytest.mark.timeout(10)
def test_a_length_below_0_does_not_lead_back_to_bytes_that_were_read() -> None:
    """Two thousand million topics in twenty bytes: each would be found where the last one was."""
    many = struct.pack(">hi", 0, 2**31 - 1)
    first = struct.pack(">h1si", 1, b"x", 0)
    again = struct.pack(">h", -6)

    assert assigned_partitions(many + first + again) == ()
