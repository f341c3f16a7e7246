"""What is kept for the commit log: all that was written since the last flush, or nothing."""

from uuid import UUID

import pytest

from goqueue.log.unlogged import LOGGED_BYTES_MAX, Unlogged

TOPIC = UUID(int=7)


def keep(unlogged: Unlogged, segment_base: int, position: int, end_offset: int, *buffers: bytes) -> None:
    unlogged.keep(segment_base, position, end_offset, buffers, size=sum(map(len, buffers)))


def test_writes_to_one_segment_become_one_piece() -> None:
    unlogged = Unlogged()
    keep(unlogged, 0, 10, 5, b"ab", b"c")
    keep(unlogged, 0, 13, 6, b"de")
    keep(unlogged, 6, 0, 9, b"next")

    first, second = unlogged.pieces("logs/orders/0", TOPIC)

    assert first == ("logs/orders/0", TOPIC, 0, 10, 6, b"abcde")
    assert second == ("logs/orders/0", TOPIC, 6, 0, 9, b"next")


def test_up_to_the_bound_it_is_small_and_one_byte_more_is_too_much() -> None:
    unlogged = Unlogged()
    keep(unlogged, 0, 0, 1, b"x" * LOGGED_BYTES_MAX)
    assert unlogged.is_small

    keep(unlogged, 0, LOGGED_BYTES_MAX, 2, b"x")
    assert not unlogged.is_small
    keep(unlogged, 0, LOGGED_BYTES_MAX + 1, 3, b"x")
    assert not unlogged.is_small, "a part of what was written makes nothing safe"
    assert unlogged.size_bytes == LOGGED_BYTES_MAX + 2
    with pytest.raises(AssertionError):
        unlogged.pieces("logs/orders/0", TOPIC)


def test_a_flush_begins_anew() -> None:
    unlogged = Unlogged()
    keep(unlogged, 0, 0, 1, b"x" * (LOGGED_BYTES_MAX + 1))

    unlogged.clear()
    keep(unlogged, 0, 99, 2, b"x" * LOGGED_BYTES_MAX)

    assert unlogged.is_small
    assert [piece.position for piece in unlogged.pieces("logs/orders/0", TOPIC)] == [99]
