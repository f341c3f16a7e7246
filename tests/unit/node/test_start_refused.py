"""The `goqueue` command: what it says when it cannot start."""

import errno
import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from goqueue.model.errors import StorageFailed, StorageFull
from goqueue.node import main
from goqueue.node.config import NodeConfig


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    logging.captureWarnings(False)
    root.handlers[:] = handlers
    root.setLevel(level)


def refused(folder: Path, monkeypatch: pytest.MonkeyPatch, refusal: Exception, *flags: str) -> int:
    def serve(_: NodeConfig) -> None:
        raise refusal

    monkeypatch.setattr(main, "_serve", serve)
    return main.run(flags, {"GOQUEUE_BROKER_DATADIR": str(folder)})


@pytest.mark.parametrize(
    "refusal",
    [
        StorageFull("append to __metadata/0: No space left on device"),
        OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
    ],
)
def test_a_full_disk_is_refused_with_what_to_do(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    refusal: Exception,
) -> None:
    assert refused(tmp_path, monkeypatch, refusal) == 1

    told = capsys.readouterr().err
    assert "No space left on device; the disk is full" in told
    assert f"free at least 1 MiB where {tmp_path} lies, or move that folder" in told


def test_other_refusals_speak_for_themselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert refused(tmp_path, monkeypatch, StorageFailed("a journal is lost")) == 1

    assert capsys.readouterr().err == "goqueue: a journal is lost\n"


def test_a_program_that_reads_the_log_reads_why_it_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    refusal = StorageFailed("a journal is lost")

    assert refused(tmp_path, monkeypatch, refusal, "--logging-format", "json") == 1

    told = json.loads(capfd.readouterr().err)
    assert (told["level"], told["event"], told["reason"]) == ("critical", "gave_up", "a journal is lost")
