"""Opened batches that are kept for the next poll: few enough, whatever came out of them."""

from uuid import UUID

from goqueue.broker.read.cache import LogPlace, OpenedBatch, OpenedBatches
from goqueue.model.messages import Lane, StoredMessage
from goqueue.model.settings import MiB


def place(number: int) -> LogPlace:
    return LogPlace(UUID(int=1), number, 0)


def batch(*, size: int = 100, count: int = 1) -> OpenedBatch:
    messages = {n: StoredMessage(n, 0, None, b"", (), Lane.NORMAL) for n in range(count)}
    return OpenedBatch(0, count, messages, size, (0, size))


def test_batches_that_are_large_when_opened_make_room_for_each_other() -> None:
    opened: OpenedBatches[OpenedBatch] = OpenedBatches()
    for number in range(4):
        opened.keep(place(number), batch(size=30 * MiB))

    assert [opened.find(place(number), 0) is not None for number in range(4)] == [False, False, True, True]


def test_one_batch_is_kept_however_large_it_is_and_what_replaces_it_counts_anew() -> None:
    opened: OpenedBatches[OpenedBatch] = OpenedBatches()
    for _ in range(3):
        opened.keep(place(1), batch(size=100 * MiB, count=60_000))
    opened.keep(place(2), batch())

    assert opened.find(place(1), 0) is None
    assert opened.find(place(2), 0) is not None
