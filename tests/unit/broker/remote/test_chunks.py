"""Batches that were carried over from another node."""

from goqueue.broker.remote.chunks import PIECES_MAX, FetchedChunks
from goqueue.log.reading import Chunk
from goqueue.model.messages import Message
from goqueue.records.batch import encode

OWNER = object()


def batch(base_offset: int, count: int) -> memoryview:
    [(body, _)] = encode([Message(b"v")] * count, now_ms=1)
    return memoryview(base_offset.to_bytes(8) + bytes(body[8:]))


def chunk(*batches: memoryview, end_offset: int) -> Chunk:
    return Chunk([*batches], [0] * len(batches), sum(map(len, batches)), end_offset)


def test_what_was_kept_is_given_from_the_batch_that_holds_an_offset_on() -> None:
    fetched = FetchedChunks()
    first, second = batch(10, 5), batch(20, 5)
    fetched.keep(OWNER, 8, chunk(first, second, end_offset=30))
    whole = Chunk([first, second], [0, 0], len(first) + len(second), 30)
    assert [fetched.find(OWNER, offset, 1_000) for offset in (8, 10, 14)] == [whole] * 3
    # Between batches, and behind the last, there is nothing, and that is known.
    assert fetched.find(OWNER, 15, 1_000) == Chunk([second], [0], len(second), 30)
    assert fetched.find(OWNER, 26, 1_000) == Chunk([], [], 0, 30)
    assert fetched.find(OWNER, 12, 1) == Chunk([first], [0], len(first), 15)
    assert [fetched.find(OWNER, offset, 1) for offset in (7, 30)] == [None, None]
    assert fetched.find(object(), 10, 1) is None


def test_what_is_kept_is_bounded_by_pieces_of_a_partition_and_by_bytes() -> None:
    size = len(batch(0, 1))
    fetched = FetchedChunks(bytes_max=PIECES_MAX * size)
    for at in range(PIECES_MAX + 1):
        fetched.keep(OWNER, at, chunk(batch(at, 1), end_offset=at + 1))
    assert fetched.find(OWNER, 0, 1) is None
    assert fetched.find(OWNER, PIECES_MAX, 1) is not None
    assert fetched.size == PIECES_MAX * size
    other = object()
    fetched.keep(other, 0, chunk(batch(0, 1), end_offset=1))
    assert fetched.find(OWNER, PIECES_MAX, 1) is None, "the one that was not asked for longest goes"
    assert fetched.find(other, 0, 1) is not None
    fetched.forget(other)
    assert fetched.size == 0


def test_nothing_is_not_kept() -> None:
    fetched = FetchedChunks()
    fetched.keep(OWNER, 5, chunk(end_offset=5))
    assert fetched.find(OWNER, 5, 1) is None
