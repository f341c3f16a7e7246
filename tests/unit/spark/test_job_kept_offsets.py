"""Where archived messages may be restored to the offsets they had, and where nothing is written."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from goqueue.client.log import Extent
from goqueue.model.errors import Invalid
from goqueue.spark.jobs import restore
from goqueue.spark.jobs.archive_store import ArchivedFile, ArchivedRange, Slice
from goqueue.spark.jobs.kept_offsets import slices_to_append
from goqueue.spark.jobs.restore import RestoreJob
from goqueue.spark.sink.options import sink_options


def archived(first_offset: int, end_offset: int, *, partition: int = 0, missing: int = 0) -> ArchivedRange:
    rows = end_offset - first_offset - missing
    file = ArchivedFile(path="x.parquet", rows=rows, size_bytes=1, time_min_ms=0, time_max_ms=0)
    return ArchivedRange(partition=partition, first_offset=first_offset, end_offset=end_offset, files=[file])


def test_messages_from_the_beginning_of_a_partition_on_are_restored() -> None:
    ranges = [archived(0, 10), archived(10, 20), archived(20, 30), archived(0, 5, partition=1)]

    slices = slices_to_append(ranges, {0: Extent(13, 13), 1: Extent(5, 5)}, {})

    assert slices == [Slice(ranges[1], 13, 20), Slice(ranges[2], 20, 30)]


def test_a_run_that_was_broken_off_goes_on_at_the_end() -> None:
    ranges = [archived(0, 10), archived(10, 20)]

    assert slices_to_append(ranges, {0: Extent(0, 10)}, {0: 10}) == [Slice(ranges[1], 10, 20)]
    with pytest.raises(Invalid, match="ends at offset 11, and the restore had come to 10"):
        slices_to_append(ranges, {0: Extent(0, 11)}, {0: 10})


def test_a_partition_that_holds_messages_is_refused() -> None:
    with pytest.raises(Invalid, match="partition 0 holds messages"):
        slices_to_append([archived(0, 10)], {0: Extent(0, 3)}, {})


def test_what_would_move_a_message_to_another_offset_is_refused() -> None:
    with pytest.raises(Invalid, match=r"offsets 2 to 5 \(exclusive\) of partition 0 are not in the archive"):
        slices_to_append([archived(5, 10)], {0: Extent(2, 2)}, {})
    with pytest.raises(Invalid, match="have no message"):
        slices_to_append([archived(0, 10), archived(10, 20, missing=1)], {0: Extent(0, 0)}, {})


def test_nothing_is_restored_to_its_offsets_where_epochs_take_more_of_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    archive = SimpleNamespace(ranges=[archived(0, 10)], folder=tmp_path)
    monkeypatch.setattr(restore, "open_archive", lambda *given: archive)
    monkeypatch.setattr(restore, "ensure_topic", lambda *given, **more: None)
    monkeypatch.setattr(restore, "SinkTarget", lambda *given: SimpleNamespace(leaves_markers=True))
    options = sink_options({"bootstrap": "127.0.0.1:1", "topic": "orders"}, is_streaming=False)
    job = RestoreJob(
        archive=tmp_path, topic="orders", target=options, manifest=tmp_path / "m.json", keep_offsets=True
    )
    with pytest.raises(Invalid, match="a cluster gives each epoch an offset more"):
        job.run(None, planned=lambda *told: None, told=lambda *told: None)  # type: ignore[arg-type]
