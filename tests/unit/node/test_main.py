"""The `goqueue` command, as far as it starts nothing."""

from pathlib import Path

import pytest

from goqueue.node.main import run


def test_settings_can_be_checked_without_starting_anything(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "goqueue.yaml"
    file.write_text("log: {segment_bytes: 1MiB}")

    code = run(["--check", "--data-dir", str(tmp_path / "data"), "--config", str(file)], {})

    assert (code, capsys.readouterr().out) == (0, "the settings are good; nothing was started\n")
    assert not (tmp_path / "data").exists()


def test_a_check_tells_every_problem(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = run(["--check", "--data-dir", str(tmp_path / "no/where")], {"GOQUEUE_BROKER_NODID": "n"})

    told = capsys.readouterr().err
    assert code == 1
    assert "GOQUEUE_BROKER_NODID: there is no such setting; did you mean GOQUEUE_BROKER_NODEID?" in told
    assert "does not exist; create it first" in told
