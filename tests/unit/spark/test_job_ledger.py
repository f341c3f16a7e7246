"""The manifest of a job: always whole, one run at a time, honest about a step whose end it did not see."""

from pathlib import Path

import msgspec
import pytest

from goqueue.model.errors import Busy, Invalid
from goqueue.spark.jobs.ledger import open_ledger, read_ledger

ABOUT = {"topic": "orders"}


class Told(msgspec.Struct, frozen=True):
    """A row as an item would tell it."""

    rows: int


def row(count: int) -> bytes:
    return msgspec.json.encode(Told(count))


def test_what_is_noted_is_there_for_the_next_run(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    with open_ledger(path, job="archive", about=ABOUT) as ledger:
        first_id = ledger.id
        ledger.note(0, {"orders/0": 10}, [row(10)])
        ledger.note(1, {"orders/1": 5}, [row(5)])

    with open_ledger(path, job="archive", about=ABOUT) as ledger:
        assert (ledger.epoch, ledger.positions) == (1, {"orders/0": 10, "orders/1": 5})
        assert ledger.rows(Told) == [Told(10), Told(5)]
        assert ledger.id == first_id


@pytest.mark.parametrize("is_done", [True, False])
def test_a_pending_step_counts_only_once_it_is_known_to_be_done(tmp_path: Path, is_done: bool) -> None:
    path = tmp_path / "manifest.json"
    with open_ledger(path, job="mirror", about=ABOUT) as ledger:
        ledger.prepare(0, {"orders/0": 10}, [row(10)])
        assert (ledger.epoch, ledger.positions) == (-1, {})

    with open_ledger(path, job="mirror", about=ABOUT) as ledger:
        assert (ledger.pending_epoch, ledger.pending_rows(Told)) == (0, [Told(10)])
        ledger.finish(is_done=is_done)

    found = read_ledger(path)
    assert found is not None and found.pending_epoch is None
    assert found.positions == ({"orders/0": 10} if is_done else {})
    assert found.rows(Told) == ([Told(10)] if is_done else [])


def test_two_runs_cannot_share_a_manifest(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    with (
        open_ledger(path, job="archive", about=ABOUT),
        pytest.raises(Busy, match="another run works on"),
        open_ledger(path, job="archive", about=ABOUT),
    ):
        pass


def test_a_manifest_of_another_job_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    with open_ledger(path, job="archive", about=ABOUT):
        pass

    with (
        pytest.raises(Invalid, match="is the manifest of a job archive with topic orders"),
        open_ledger(path, job="archive", about={"topic": "clicks"}),
    ):
        pass


@pytest.mark.parametrize("content", [b"", b"{}", b'{"version": 9, "job": "archive", "about": {}}'])
def test_a_file_that_is_no_manifest_is_never_overwritten(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "manifest.json"
    path.write_bytes(content)

    with (
        pytest.raises(Invalid, match=r"is not the manifest|is of version 9"),
        open_ledger(path, job="archive", about=ABOUT),
    ):
        pass

    assert path.read_bytes() == content
