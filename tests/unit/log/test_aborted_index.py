"""Aborted transactions beside the segments: which a reader must know of, and how they survive."""

from collections.abc import Iterator
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from goqueue.log.aborted_index import AbortedIndex, aborted_index_path
from goqueue.model.ports import Disk
from goqueue.model.transactions import AbortedTransaction
from goqueue.testing.world.disk import SimulatedDisk

FOLDER = "logs/orders/0"
NO_DISK = SimulatedDisk(Random(1))


def disk_with_folder() -> SimulatedDisk:
    disk = SimulatedDisk(Random(1))
    disk.make_folder(FOLDER)
    return disk


def save(index: AbortedIndex, disk: Disk, bases: list[int]) -> None:
    for path, data in index.unsaved(bases).items():
        disk.replace(path, data)


def entry(first: int, last: int, *, producer_id: int = 1, stable: int | None = None) -> AbortedTransaction:
    return AbortedTransaction(producer_id, first, last, last + 1 if stable is None else stable)


def index_of(*entries: AbortedTransaction, disk: Disk | None = None) -> AbortedIndex:
    index = AbortedIndex(disk or disk_with_folder(), FOLDER)
    for one in entries:
        index.add(one)
    return index


def loaded(disk: Disk, bases: list[int], like: AbortedIndex, *, start: int = 0, end: int = 100) -> bool:
    index = AbortedIndex(disk, FOLDER)
    is_whole = index.load(bases, start_offset=start, end_offset=end, vouched=like.checksum())
    assert not is_whole or index.between(0, 100) == like.between(0, 100)
    return is_whole


def test_a_reader_hears_of_what_overlaps_with_its_range() -> None:
    index = index_of(entry(0, 5), entry(6, 20, producer_id=2), entry(25, 30))

    assert index.between(0, 100) == [(1, 0), (2, 6), (1, 25)]
    assert index.between(6, 25) == [(2, 6)]
    assert index.between(21, 25) == []


def test_files_hold_what_ends_in_their_segment_and_go_with_it() -> None:
    disk = disk_with_folder()
    index = index_of(entry(0, 5), entry(6, 20), entry(25, 30), disk=disk)
    save(index, disk, [0, 10, 40])

    assert index.unsaved([0, 10, 40]) == {}
    assert loaded(disk, [0, 10, 40], index)
    disk.remove(aborted_index_path(FOLDER, 0))
    assert not loaded(disk, [0, 10, 40], index)
    index.drop_before(10)
    assert loaded(disk, [10, 40], index, start=10)


def test_files_may_lead_the_recovery_point_but_never_lag() -> None:
    disk = disk_with_folder()
    index = index_of(entry(0, 5), disk=disk)
    vouched = index_of(entry(0, 5))
    index.add(entry(6, 20))
    save(index, disk, [0])

    again = AbortedIndex(disk, FOLDER)
    assert again.load([0], start_offset=0, end_offset=10, vouched=vouched.checksum())
    assert again.between(0, 100) == [(1, 0)]
    # A crash has taken the second one back, so the file must not go on to speak of it.
    save(again, disk, [0])
    assert loaded(disk, [0], again)


def test_a_damaged_file_is_not_believed_and_can_be_rebuilt() -> None:
    disk = disk_with_folder()
    index = index_of(entry(0, 5), disk=disk)
    save(index, disk, [0])
    path = aborted_index_path(FOLDER, 0)
    data = bytearray(disk.read_whole(path) or b"")
    data[10] ^= 1
    disk.replace(path, bytes(data))

    again = AbortedIndex(disk, FOLDER)
    assert not again.load([0], start_offset=0, end_offset=10, vouched=index.checksum())
    again.rebuild([entry(0, 5)])
    save(again, disk, [0])
    assert loaded(disk, [0], index)


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[int, int, bool]]:
    """Transactions as (first offset, marker's offset, was aborted), by their markers, no offset twice."""
    count = draw(st.integers(0, 8))
    offsets = draw(st.permutations(range(2 * count)))
    pairs = [sorted(offsets[at : at + 2]) for at in range(0, 2 * count, 2)]
    return sorted(
        ((first, last, draw(st.booleans())) for first, last in pairs), key=lambda transaction: transaction[1]
    )


def aborted_of(history: list[tuple[int, int, bool]]) -> Iterator[AbortedTransaction]:
    for number, (first, last, is_aborted) in enumerate(history):
        if is_aborted:
            open_then = [f for f, later, _ in history[number + 1 :] if f < last < later]
            yield AbortedTransaction(number, first, last, min(open_then, default=last + 1))


@given(histories(), st.integers(0, 16), st.integers(0, 16))
def test_no_aborted_transaction_of_a_range_is_missed(
    history: list[tuple[int, int, bool]], first_offset: int, end_offset: int
) -> None:
    entries = list(aborted_of(history))
    index = index_of(*entries, disk=NO_DISK)

    found = index.between(first_offset, end_offset)

    expected = [e for e in entries if e.last_offset >= first_offset and e.first_offset < end_offset]
    assert found == sorted(((e.producer_id, e.first_offset) for e in expected), key=lambda pair: pair[1])
