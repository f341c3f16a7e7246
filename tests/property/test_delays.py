"""Sorted runs and fresh entries, walked together, are one sorted list."""

from itertools import pairwise
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from pytest import MonkeyPatch

from goqueue.broker.delays import runs as delay_runs
from goqueue.broker.delays.runs import InMemory, Runs, walk
from goqueue.core.delays.entries import ENTRY, Entries, Fresh, in_order, rows
from goqueue.testing.world.disk import SimulatedDisk

DUE_TIMES = st.integers(0, 30)


def entries_of(dues: list[int], first_offset: int) -> Entries:
    fresh = Fresh()
    for offset, due_ms in enumerate(dues, first_offset):
        fresh.add(due_ms, offset, offset % 3)
    return fresh.entries()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(DUE_TIMES, min_size=1, max_size=40), max_size=4), DUE_TIMES)
def test_a_walk_gives_every_entry_once_in_order_and_parts_no_due_time(
    groups: list[list[int]], from_due_ms: int
) -> None:
    with MonkeyPatch.context() as patch:
        patch.setattr(delay_runs, "BLOCK_ENTRIES", 3)
        patch.setattr(delay_runs, "PIECE_ENTRIES", 6)
        runs = Runs(SimulatedDisk(Random(1)), "delays")
        runs.open([])
        parts: list[delay_runs.SortedEntries] = []
        everything = []
        for number, dues in enumerate(groups):
            entries = entries_of(dues, 100 * number)
            everything += list(rows(entries))
            is_last = number == len(groups) - 1
            parts.append(
                InMemory(entries) if is_last else runs.write(walk([InMemory(entries)], from_due_ms=-1))
            )

        pieces = [list(rows(piece)) for piece in walk(parts, from_due_ms=from_due_ms)]

    walked = [row for piece in pieces for row in piece]
    assert walked == sorted(row for row in everything if row[0] >= from_due_ms)
    ends = [(piece[0][0], piece[-1][0]) for piece in pieces]
    assert all(before[1] < after[0] for before, after in pairwise(ends))


@settings(max_examples=50, deadline=None)
@given(st.lists(DUE_TIMES, min_size=1, max_size=200))
def test_a_run_is_read_back_as_it_was_written(dues: list[int]) -> None:
    disk = SimulatedDisk(Random(1))
    runs = Runs(disk, "delays")
    runs.open([])
    written = runs.write(walk([InMemory(entries_of(dues, 0))], from_due_ms=-1))

    [opened] = Runs(disk, "delays").open([written.name])

    assert opened.read(0, 1_000).tolist() == in_order(entries_of(dues, 0)).tolist()
    assert opened.name.entry_count * ENTRY.itemsize == len(disk.read_whole(opened.path) or b"")
