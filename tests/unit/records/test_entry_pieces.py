"""A buffer of entries in pieces: nothing is lost, and no entry is cut."""

from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.messages import Lane
from goqueue.records.entries import encode_entry, pieces_of, read_entries

HEAD = 2 + 7 + 9


def entry(size: int, number: int = 0) -> bytes:
    return encode_entry(TopicPartition(TopicName("größe"), number), Lane.NORMAL, b"x" * size)


def test_pieces_are_cut_between_entries_and_hold_all_of_them() -> None:
    sizes = (10, 20, 500, 1, 1, 30)
    buffer = memoryview(b"".join(entry(size, number) for number, size in enumerate(sizes)))

    pieces = pieces_of(buffer, 2 * HEAD + 30)

    assert b"".join(pieces) == buffer
    assert [[len(one.body) for one in read_entries(piece)] for piece in pieces] == [
        [10, 20],
        [500],
        [1, 1],
        [30],
    ]


def test_a_buffer_that_is_small_is_one_piece() -> None:
    buffer = memoryview(entry(10))
    assert pieces_of(buffer, 1_000) == [buffer]
