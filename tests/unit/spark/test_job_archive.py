"""An archive on the disk: files by day, slices of ranges, times, and no gap between it and the log."""

import os
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

from goqueue.client.log import Extent
from goqueue.model.errors import NotFound
from goqueue.spark.jobs.archive import DatedFiles, sweep
from goqueue.spark.jobs.archive_store import (
    COLUMNS,
    MANIFEST,
    Archive,
    ArchivedRange,
    Slice,
    open_archive,
    read_in_order,
    read_slice,
    slices,
)
from goqueue.spark.jobs.ledger import open_ledger
from goqueue.spark.source.archive import check_without_gap
from goqueue.spark.source.offsets import Place

DAY_S = 24 * 3600
FIRST_S = 1_767_225_600  # 2026-01-01
PLACE = Place("orders", "0")


def rows(offsets: range, *, second: int = DAY_S // 4) -> pa.RecordBatch:
    """Messages, so many seconds apart."""
    return pa.RecordBatch.from_pylist(
        [
            {
                "topic": "orders",
                "partition": 0,
                "offset": offset,
                "timestamp": datetime.fromtimestamp(FIRST_S + offset * second, UTC),
                "key": None,
                "value": b"%d" % offset,
                "headers": [],
                "priority": 2,
            }
            for offset in offsets
        ],
        COLUMNS.schema,
    )


def archived(folder: Path, offsets: range) -> ArchivedRange:
    """A range whose files are written."""
    files = DatedFiles(folder, f"0-{offsets.start}", compression="zstd")
    files.add(rows(offsets))
    files.close()
    return ArchivedRange(partition=0, first_offset=offsets.start, end_offset=offsets.stop, files=files.done)


def kept(folder: Path, *offsets: range) -> Archive:
    """An archive with these ranges in its manifest."""
    with open_ledger(folder / "orders" / MANIFEST, job="archive", about={}) as ledger:
        told = [msgspec.json.encode(archived(folder / "orders", each)) for each in offsets]
        ledger.note(0, {"orders/0": offsets[-1].stop}, told)
    return open_archive(folder, "orders")


def test_each_day_has_a_file_of_its_own(tmp_path: Path) -> None:
    found = archived(tmp_path, range(10))

    assert [file.path.split("/")[0] for file in found.files] == [
        "date=2026-01-01",
        "date=2026-01-02",
        "date=2026-01-03",
    ]
    assert [file.rows for file in found.files] == [4, 4, 2]
    assert found.files[1].time_min_ms == (FIRST_S + DAY_S) * 1000


def test_many_days_do_not_keep_many_files_open(tmp_path: Path) -> None:
    files = DatedFiles(tmp_path, "0-0", compression="none")

    files.add(rows(range(40), second=DAY_S))
    files.close()

    assert len(files.done) == 40
    assert sum(file.rows for file in files.done) == 40


def test_a_range_is_read_in_the_order_of_its_offsets(tmp_path: Path) -> None:
    files = DatedFiles(tmp_path, "0-0", compression="none")
    # Times that jump back and forth over midnight, as producers' clocks do.
    late, early = rows(range(8), second=DAY_S), rows(range(8), second=1)
    mixed = [(late if offset % 2 else early).slice(offset, 1) for offset in range(8)]
    for each in mixed:
        files.add(each)
    files.close()
    whole = ArchivedRange(partition=0, first_offset=0, end_offset=8, files=files.done)

    in_order = read_in_order(tmp_path, Slice.whole(whole))
    found = [offset for each in in_order for offset in each.column("offset").to_pylist()]

    assert len(files.done) > 1
    assert found == list(range(8))


def test_a_slice_has_only_its_offsets_and_columns(tmp_path: Path) -> None:
    archive = kept(tmp_path, range(10), range(10, 20))
    schema = pa.schema([COLUMNS.schema.field("value")])

    wanted = slices(archive.partition(0), 7, 12)
    found = [
        value
        for each in wanted
        for batch in read_slice(archive.folder, each, schema)
        for value in batch.column("value").to_pylist()
    ]

    assert [(each.first_offset, each.end_offset) for each in wanted] == [(7, 10), (10, 12)]
    assert sorted(map(int, found)) == [7, 8, 9, 10, 11]


@pytest.mark.parametrize(
    ("seconds", "offset"),
    [(0, 0), (1, 1), (DAY_S // 4, 1), (3 * DAY_S, 12), (19 * DAY_S // 4, 19), (9 * DAY_S, None)],
)
def test_a_time_is_found_in_the_archive(tmp_path: Path, seconds: int, offset: int | None) -> None:
    archive = kept(tmp_path, range(10), range(10, 20))

    assert archive.offset_at(0, (FIRST_S + seconds) * 1000) == offset


def test_a_topic_without_an_archive_is_told_plainly(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="holds no archive of topic orders"):
        open_archive(tmp_path, "orders")


def span(*ends: tuple[int, int]) -> list[ArchivedRange]:
    return [ArchivedRange(partition=0, first_offset=first, end_offset=end, files=[]) for first, end in ends]


@pytest.mark.parametrize(
    ("ranges", "live", "start", "end"),
    [
        (span((0, 50)), Extent(50, 80), 0, 80),
        (span((0, 50)), Extent(20, 80), 0, 80),
        (span((0, 30), (30, 50)), Extent(0, 50), 0, 50),
        (span((0, 50)), Extent(60, 80), 60, 80),
        (span((0, 50)), Extent(60, 80), 10, 40),
        ([], Extent(5, 80), 5, 80),
        ([], Extent(0, 0), 0, 0),
    ],
)
def test_archive_and_log_meet(ranges: list[ArchivedRange], live: Extent, start: int, end: int) -> None:
    check_without_gap(PLACE, ranges, live, start, end)


@pytest.mark.parametrize(
    ("ranges", "live", "start", "end", "problem"),
    [
        (span((0, 50)), Extent(60, 80), 0, 80, r"offsets 50 to 60 \(exclusive\) of orders/0"),
        (span((0, 20), (30, 50)), Extent(50, 80), 0, 80, r"offsets 20 to 30 \(exclusive\)"),
        (span((10, 50)), Extent(50, 80), 0, 80, r"offsets 0 to 10 \(exclusive\)"),
        (span((0, 50)), Extent(0, 40), 0, 50, "it was made anew"),
    ],
)
def test_a_gap_is_told(ranges: list[ArchivedRange], live: Extent, start: int, end: int, problem: str) -> None:
    with pytest.raises(NotFound, match=problem):
        check_without_gap(PLACE, ranges, live, start, end)


def test_old_files_that_no_manifest_names_are_removed(tmp_path: Path) -> None:
    archive = kept(tmp_path, range(4))
    lost = archived(archive.folder, range(4, 8))
    fresh = archived(archive.folder, range(8, 12))
    for file in [*archive.ranges[0].files, *lost.files]:
        os.utime(archive.folder / file.path, (0, 0))

    with open_ledger(archive.folder / MANIFEST, job="archive", about={}) as ledger:
        sweep(archive.folder, ledger)

    exists = [(archive.folder / each.files[0].path).exists() for each in (archive.ranges[0], lost, fresh)]
    assert exists == [True, False, True]
