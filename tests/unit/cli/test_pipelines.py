"""`goqueue-cli pipeline`: what it says and does without a broker and without Spark."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from goqueue.cli.main import app
from goqueue.cli.pipelines.view import listed, live_table
from goqueue.spark.pipelines.driving import parse_settings
from goqueue.spark.pipelines.status import PipelineStatus, SinkStatus, State
from goqueue.spark.pipelines.storage import PipelineLock, Storage

runner = CliRunner()
GOOD = """\
name: clean
source: {topic: orders}
sinks: [{topic: orders-clean}]
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the user's own is read, and the storage is the default one of a fresh folder."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return Storage(tmp_path / "goqueue-pipelines")


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def told_status(state: State = State.RUNNING, *, age_ms: int = 0) -> PipelineStatus:
    sink = SinkStatus(id="out", target="orders-clean", state=state, rows=40, rows_per_second=8.0, lag=10)
    sink.batch, sink.last_error = 3, "no node answers"
    return PipelineStatus(
        name="clean",
        file="/pipelines/clean.yaml",
        state=state,
        process_id=7,
        heartbeat_ms=now_ms() - age_ms,
        sinks=[sink],
    )


def printed(*arguments: str) -> str:
    result = runner.invoke(app, ["pipeline", *arguments])
    assert result.exit_code == 0, result.stderr + result.stdout
    return result.stdout


def test_a_file_without_a_problem_is_said_to_be_so(tmp_path: Path) -> None:
    (tmp_path / "clean.yaml").write_text(GOOD)

    told = printed("validate", "clean.yaml", "--offline")

    assert "1 file without a problem" in told
    assert "--spark" in told


def test_every_problem_of_every_file_is_printed_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(GOOD.replace("topic: orders}", "topik: orders}"))
    (tmp_path / "b.yaml").write_text(GOOD.replace("name: clean", "nam: clean"))

    result = runner.invoke(app, ["pipeline", "validate", "a.yaml", "b.yaml", "--offline"])

    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert [line.split(" ")[0] for line in lines] == [
        "a.yaml:2:9:",
        "a.yaml:2:10:",
        "b.yaml:1:1:",
        "b.yaml:1:1:",
    ]
    assert any("did you mean topic?" in line for line in lines)
    assert any("did you mean name?" in line for line in lines)


def test_a_broker_that_does_not_answer_is_no_problem_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "clean.yaml").write_text(GOOD)

    # Port 1 of the loopback: nobody listens there.
    result = runner.invoke(app, ["-s", "127.0.0.1:1", "pipeline", "validate", "clean.yaml"])

    assert result.exit_code == 0
    assert "topics were not looked up" in result.stderr


def test_a_broken_file_is_refused_before_spark_is_started(tmp_path: Path) -> None:
    (tmp_path / "clean.yaml").write_text("name: clean\n")

    result = runner.invoke(app, ["pipeline", "run", "clean.yaml", "--offline"])

    assert result.exit_code == 1
    assert "clean.yaml:1:1: a pipeline needs source" in result.stderr


def test_a_pipeline_that_somebody_runs_is_refused_before_spark_is_started(
    tmp_path: Path, storage: Storage
) -> None:
    (tmp_path / "clean.yaml").write_text(GOOD)
    lock = PipelineLock(storage.pipeline("clean"))
    lock.take()

    result = runner.invoke(app, ["pipeline", "run", "clean.yaml", "--offline"])

    lock.release()
    assert result.exit_code == 1
    assert "is being run by" in result.stderr
    assert "pipeline stop clean" in result.stderr


def test_pipelines_are_listed_with_what_they_last_said(storage: Storage) -> None:
    storage.pipeline("clean").write_status(told_status())

    assert printed("list").split()[7:12] == ["clean", "running", "1", "8.0", "10"]
    assert json.loads(printed("list", "-o", "json"))[0]["state"] == "running"


def test_a_driver_that_was_killed_is_not_believed_for_ever(storage: Storage) -> None:
    storage.pipeline("clean").write_status(told_status(age_ms=60_000))

    assert "lost" in printed("list")
    assert "clean: lost" in printed("status", "clean")


def test_status_shows_progress_and_the_last_error(tmp_path: Path, storage: Storage) -> None:
    (tmp_path / "clean.yaml").write_text(GOOD)
    storage.pipeline("clean").write_status(told_status(State.WAITING))

    told = printed("status", "clean.yaml")

    assert "clean: waiting (process 7" in told
    assert "orders-clean" in told
    assert "out: last error: no node answers" in told
    assert json.loads(printed("status", "clean", "-o", "json"))["sinks"][0]["lag"] == 10


def test_a_pipeline_that_never_ran_is_told_with_those_that_did(storage: Storage) -> None:
    storage.pipeline("clean").write_status(told_status())

    result = runner.invoke(app, ["pipeline", "status", "clear"])

    assert result.exit_code == 3
    assert "there is clean" in result.stderr


def test_what_is_stopped_rests_until_it_is_started(storage: Storage) -> None:
    folder = storage.pipeline("clean")
    folder.write_status(told_status(State.DONE))

    assert "rests until" in printed("stop", "clean")
    assert folder.is_to_rest
    assert "may run" in printed("start", "clean")
    assert not folder.is_to_rest


def test_a_reset_forgets_the_named_sink_and_no_other(storage: Storage) -> None:
    folder = storage.pipeline("clean")
    for sink in ("out", "errors"):
        folder.checkpoint(sink).mkdir(parents=True)

    printed("reset", "clean", "--sink", "errors", "--force")

    assert folder.sink_ids() == ["out"]


def test_a_reset_is_not_done_unasked(storage: Storage) -> None:
    storage.pipeline("clean").checkpoint("out").mkdir(parents=True)

    unsure = runner.invoke(app, ["pipeline", "reset", "clean"])
    unknown = runner.invoke(app, ["pipeline", "reset", "clean", "--sink", "in", "--force"])

    assert (unsure.exit_code, unknown.exit_code) == (2, 1)
    assert "--force" in unsure.stderr
    assert "there is out" in unknown.stderr
    assert storage.pipeline("clean").sink_ids() == ["out"]


def test_the_live_table_has_a_row_and_a_bar_for_each_sink() -> None:
    table = live_table(told_status(), now_ms=now_ms())

    assert table.row_count == 1
    assert table.title == "clean: running"


def test_the_lag_of_a_pipeline_is_that_of_the_sink_furthest_behind() -> None:
    status = told_status()
    status.sinks.append(SinkStatus(id="slow", target="lake", lag=99))

    assert listed(status, now_ms=now_ms()).lag == 99


def test_the_broker_s_command_becomes_the_driver_of_pipelines() -> None:
    command = [sys.executable, "-m", "goqueue.node.main", "pipelines", "nowhere"]

    ran = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (ran.returncode, ran.stderr) == (1, "goqueue pipelines: nowhere is not a folder\n")


def test_a_setting_of_spark_has_a_name_and_a_value(tmp_path: Path) -> None:
    (tmp_path / "clean.yaml").write_text(GOOD)

    result = runner.invoke(app, ["pipeline", "run", "clean.yaml", "--offline", "--conf", "spark.cores"])

    assert result.exit_code == 1
    assert "name=value" in result.stderr
    assert parse_settings(["a=b=c"]) == {"a": "b=c"}
