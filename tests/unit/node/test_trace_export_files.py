"""Spans as lines of JSON: in files that stay small and few, and on standard output."""

import errno
import json
import os
from pathlib import Path
from random import Random

import pytest

from goqueue.model.ids import TopicName
from goqueue.model.telemetry import Span, Stage, Witness
from goqueue.node.disk import FolderDisk
from goqueue.node.tracing.files import JsonFiles
from goqueue.node.tracing.outgoing import Outgoing, line_of
from goqueue.node.tracing.stdout import JsonOutput
from goqueue.testing.world.disk import SimulatedDisk
from tests.unit.node.test_trace_export_outbox import span, spans

LINE_BYTES = len(line_of(span(0)))


def files(folder: Path, *, lines_max: int = 2, files_max: int = 3) -> JsonFiles:
    return JsonFiles(FolderDisk(folder), file_bytes=lines_max * LINE_BYTES, files_max=files_max)


def offsets_in(folder: Path) -> dict[str, list[int]]:
    return {
        path.name: [json.loads(line)["offset"] for line in path.read_text().splitlines()]
        for path in sorted((folder / "traces").iterdir())
    }


def test_a_line_holds_what_the_api_shows_of_a_span_and_its_trace_id() -> None:
    told = Span(
        Stage.ACKED,
        1_700_000_000_000_001,
        TopicName("orders"),
        2,
        7,
        Witness.RING,
        "00000000000000aa",
        "00000000000000bb",
        group="workers",
        consumer="c1",
        duration_us=1500,
        error="late",
        facts={"attempt": 2},
    )

    assert json.loads(line_of(Outgoing("ab" * 16, told))) == {
        "trace_id": "ab" * 16,
        "span_id": "00000000000000aa",
        "parent_span_id": "00000000000000bb",
        "event_type": "consume.acked",
        "timestamp": "2023-11-14T22:13:20.000001Z",
        "topic": "orders",
        "partition": 2,
        "offset": 7,
        "consumer_group": "workers",
        "consumer_id": "c1",
        "duration_ns": 1_500_000,
        "error": "late",
        "attributes": {"attempt": 2, "source": "ring"},
    }


def test_a_full_file_is_followed_by_the_next_and_the_oldest_goes(tmp_path: Path) -> None:
    target = files(tmp_path)
    for offset in range(7):
        target.send(spans(offset))

    assert offsets_in(tmp_path) == {
        "traces-00000002.jsonl": [2, 3],
        "traces-00000003.jsonl": [4, 5],
        "traces-00000004.jsonl": [6],
    }


def test_nothing_goes_before_there_are_too_many_files(tmp_path: Path) -> None:
    target = files(tmp_path, lines_max=1, files_max=9)
    for offset in range(5):
        target.send(spans(offset))

    assert list(offsets_in(tmp_path).values()) == [[0], [1], [2], [3], [4]]


def test_one_file_may_be_all_that_is_kept(tmp_path: Path) -> None:
    target = files(tmp_path, files_max=1)
    for offset in range(5):
        target.send(spans(offset))

    assert offsets_in(tmp_path) == {"traces-00000003.jsonl": [4]}


def test_a_batch_larger_than_a_file_is_kept_whole(tmp_path: Path) -> None:
    target = files(tmp_path)
    target.send(spans(1))
    target.send(spans(2, 3, 4))

    assert list(offsets_in(tmp_path).values()) == [[1], [2, 3, 4]]


def test_after_a_restart_the_last_file_goes_on(tmp_path: Path) -> None:
    before = files(tmp_path)
    before.send(spans(1))
    before.close()
    files(tmp_path).send(spans(2))

    assert offsets_in(tmp_path) == {"traces-00000001.jsonl": [1, 2]}


def test_half_a_line_that_a_crash_has_left_spoils_no_other(tmp_path: Path) -> None:
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces" / "traces-00000001.jsonl").write_bytes(b'{"trace_id": "ab')
    files(tmp_path, lines_max=9).send(spans(1))

    torn, whole = (tmp_path / "traces" / "traces-00000001.jsonl").read_text().splitlines()
    assert torn == '{"trace_id": "ab'
    assert json.loads(whole)["offset"] == 1


def test_a_full_disk_is_told_leaves_no_half_line_and_is_got_over() -> None:
    disk = SimulatedDisk(Random(1))
    target = JsonFiles(disk, file_bytes=100 * LINE_BYTES, files_max=2)
    target.send(spans(1))
    disk.faults.capacity_bytes = LINE_BYTES + LINE_BYTES // 2

    with pytest.raises(OSError) as failure:
        target.send(spans(2))
    assert failure.value.errno == errno.ENOSPC
    assert disk.open("traces/traces-00000001.jsonl").size() == LINE_BYTES

    disk.faults.heal()
    target.send(spans(2))
    assert disk.open("traces/traces-00000001.jsonl").size() == 2 * LINE_BYTES


def test_standard_output_gets_a_line_a_span() -> None:
    reading, writing = os.pipe()
    try:
        JsonOutput(writing).send(spans(1, 2))
        lines = os.read(reading, 65536).splitlines()
    finally:
        os.close(reading)
        os.close(writing)

    assert [json.loads(line)["offset"] for line in lines] == [1, 2]
