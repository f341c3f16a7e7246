"""What is kept beside a checkpoint, and what of a status may be believed."""

from pathlib import Path

import pytest

from goqueue.model.errors import Busy, Invalid, NotFound
from goqueue.spark.pipelines.fingerprint import changes, fingerprint, read_fingerprint, write_fingerprint
from goqueue.spark.pipelines.parsing import read_pipeline
from goqueue.spark.pipelines.reporting import Reporter, short_error
from goqueue.spark.pipelines.spec import Pipeline
from goqueue.spark.pipelines.status import (
    SILENCE_MS,
    PipelineStatus,
    Rate,
    SinkStatus,
    State,
    believed,
    lag_of,
    overall,
    restart_delay_ms,
)
from goqueue.spark.pipelines.storage import PipelineLock, Storage, is_running
from goqueue.spark.pipelines.triggers import Trigger, parse_trigger

TEXT = """\
name: clean
source: {topic: orders, startingOffsets: earliest, maxRecordsPerBatch: 10}
steps: [{sql: SELECT value FROM source}]
sinks: [{id: out, topic: orders-clean}]
"""


def pipeline(folder: Path, text: str = TEXT) -> Pipeline:
    path = folder / "clean.yaml"
    path.write_text(text)
    return read_pipeline(path, bootstrap="127.0.0.1:8080")


def status(state: State = State.RUNNING, *, heartbeat_ms: int = 0) -> PipelineStatus:
    sink = SinkStatus(id="out", target="orders-clean", state=state, rows_per_second=5.0)
    return PipelineStatus(
        name="clean", file="clean.yaml", state=state, process_id=1, heartbeat_ms=heartbeat_ms, sinks=[sink]
    )


@pytest.mark.parametrize(
    ("what", "becomes", "name"),
    [
        ("topic: orders,", "topic: returns,", "source topics"),
        ("startingOffsets: earliest", "startingOffsets: latest", "source start"),
        ("maxRecordsPerBatch: 10", "maxRecordsPerBatch: 20", "source options"),
        ("SELECT value FROM source", "SELECT upper(value) value FROM source", "steps"),
        ("topic: orders-clean", "topic: orders-tidy", "target"),
        ("topic: orders-clean", "topic: orders-clean, value: key", "columns"),
        ("topic: orders-clean", "topic: orders-clean, where: key = 1", "where"),
        ("topic: orders-clean", "topic: orders-clean, delivery: at-least-once", "sink options"),
        ("topic: orders-clean", "topic: orders-clean, sinkId: mine", "sinkId"),
        ("topic: orders-clean", "topic: orders-clean, trigger: 5s", "trigger"),
    ],
)
def test_a_change_is_told_by_its_name(tmp_path: Path, what: str, becomes: str, name: str) -> None:
    before, now = pipeline(tmp_path), pipeline(tmp_path, TEXT.replace(what, becomes))

    first, second = fingerprint(before, before.sinks[0]), fingerprint(now, now.sinks[0])

    assert first.hash != second.hash
    found = changes(first, second, has_state=False)
    assert found.names == (name,)
    assert bool(found.refused) == (name in ("source topics", "target", "sinkId"))


def test_steps_may_change_only_while_spark_keeps_no_state(tmp_path: Path) -> None:
    before, now = pipeline(tmp_path), pipeline(tmp_path, TEXT.replace("SELECT", "SELECT DISTINCT"))
    first, second = fingerprint(before, before.sinks[0]), fingerprint(now, now.sinks[0])

    assert changes(first, second, has_state=False).refused == ()
    assert changes(first, second, has_state=True).refused == ("steps",)


def test_spaces_in_sql_are_no_change(tmp_path: Path) -> None:
    before, now = pipeline(tmp_path), pipeline(tmp_path, TEXT.replace("value FROM", "value   FROM"))

    assert fingerprint(before, before.sinks[0]) == fingerprint(now, now.sinks[0])


def test_a_changed_python_function_is_a_changed_step(tmp_path: Path) -> None:
    text = TEXT.replace("sql: SELECT value FROM source", 'python: "prices:enrich"')
    (tmp_path / "prices.py").write_text("def enrich(frame): return frame\n")
    read = pipeline(tmp_path, text)
    before = fingerprint(read, read.sinks[0])

    (tmp_path / "prices.py").write_text("def enrich(frame): return frame.limit(1)\n")

    assert changes(before, fingerprint(read, read.sinks[0]), has_state=False).names == ("steps",)


def test_a_fingerprint_is_kept_in_the_checkpoint(tmp_path: Path) -> None:
    read = pipeline(tmp_path)
    made = fingerprint(read, read.sinks[0])
    assert read_fingerprint(tmp_path / "checkpoint") is None

    write_fingerprint(tmp_path / "checkpoint", made)

    assert read_fingerprint(tmp_path / "checkpoint") == made


def test_a_driver_that_gives_no_sign_of_life_is_lost() -> None:
    told = status(heartbeat_ms=1_000)

    assert believed(told, now_ms=1_000 + SILENCE_MS).state is State.RUNNING
    lost = believed(told, now_ms=1_001 + SILENCE_MS)
    assert (lost.state, lost.sinks[0].state, lost.sinks[0].rows_per_second) == (State.LOST, State.LOST, 0.0)


def test_what_is_at_rest_needs_no_sign_of_life() -> None:
    assert believed(status(State.DONE), now_ms=10 * SILENCE_MS).state is State.DONE


def test_a_pipeline_is_as_well_as_its_worst_sink() -> None:
    assert overall([State.DONE, State.RUNNING]) is State.RUNNING
    assert overall([State.RUNNING, State.WAITING]) is State.WAITING
    assert overall([State.WAITING, State.FAILED]) is State.FAILED
    assert overall([State.DONE, State.DONE]) is State.DONE


def test_lag_counts_what_lies_behind_the_last_batch() -> None:
    end = {"orders": {"0": 10, "1": 5}}
    latest = {"orders": {"0": 12, "1": 5, "2": 7}}

    assert lag_of(end, latest) == 9


def test_pauses_before_a_restart_grow_to_a_minute() -> None:
    assert [restart_delay_ms(failures) for failures in (1, 2, 3, 7, 100)] == [
        1_000,
        2_000,
        4_000,
        60_000,
        60_000,
    ]


def test_the_rate_is_that_of_the_last_ten_seconds() -> None:
    rate = Rate()

    assert rate.note(0, now_ms=0) == 0
    assert rate.note(100, now_ms=5_000) == 20
    assert rate.note(100, now_ms=15_000) == 0


def test_two_drivers_never_run_one_pipeline(tmp_path: Path) -> None:
    folder = Storage(tmp_path).pipeline("clean")
    first, second = PipelineLock(folder), PipelineLock(folder)
    first.take()
    folder.write_status(replace_process(status(), 4711))

    with pytest.raises(Busy, match="process 4711"):
        second.take()

    assert is_running(folder)
    first.release()
    second.take()
    second.release()
    assert not is_running(folder)


def replace_process(told: PipelineStatus, process_id: int) -> PipelineStatus:
    told.process_id = process_id
    return told


def test_wishes_and_status_are_files_that_others_see(tmp_path: Path) -> None:
    folder, seen = Storage(tmp_path).pipeline("clean"), Storage(tmp_path).pipeline("clean")
    folder.ask_to_stop()
    folder.ask_to_reset(["out"])
    folder.write_status(status(heartbeat_ms=7))

    assert seen.is_to_rest
    assert seen.asked_to_reset() == ["out"]
    assert seen.read_status() == status(heartbeat_ms=7)
    seen.ask_to_start()
    seen.reset_is_done()
    assert not folder.is_to_rest
    assert folder.asked_to_reset() is None


def test_forgetting_a_sink_leaves_the_others(tmp_path: Path) -> None:
    folder = Storage(tmp_path).pipeline("clean")
    for sink in ("out", "errors"):
        folder.checkpoint(sink).mkdir(parents=True)

    folder.forget(["errors"])

    assert folder.sink_ids() == ["out"]


def test_a_pipeline_that_never_ran_is_not_found(tmp_path: Path) -> None:
    Storage(tmp_path).pipeline("clean").ask_to_stop()

    with pytest.raises(NotFound, match="there is clean"):
        Storage(tmp_path).known("clear")


@pytest.mark.parametrize(
    ("text", "every_ms"), [("every 5m", 300_000), ("60s", 60_000), ("every 250 ms", 250), ("1h", 3_600_000)]
)
def test_a_trigger_may_be_a_time(text: str, every_ms: int) -> None:
    assert parse_trigger(text) == Trigger(is_bounded=False, every_ms=every_ms)


@pytest.mark.parametrize("text", ["often", "every", "0s", "-5s", "5 parsecs"])
def test_a_trigger_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(Invalid, match="is not a trigger"):
        parse_trigger(text)


def test_news_are_told_at_once_and_progress_every_ten_seconds() -> None:
    lines: list[str] = []
    reporter = Reporter(lines.append)
    told = status(heartbeat_ms=20_000)

    reporter.report([told])
    told.sinks[0].batch, told.sinks[0].rows, told.sinks[0].lag = 0, 10, 5
    reporter.report([told])
    told.sinks[0].batch = 1
    reporter.report([told])
    told.sinks[0].state, told.sinks[0].last_error = State.WAITING, "no node answers"
    reporter.report([told])

    assert lines == [
        "clean running",
        "clean/out running",
        "clean/out batch 0, 10 rows, 5 rows/s, lag 5",
        "clean/out waiting: no node answers",
    ]


@pytest.mark.parametrize(
    ("told", "short"),
    [
        (
            "[PYTHON_EXCEPTION] An exception was thrown: Traceback (most recent call last):\n"
            '  File "sink.py", line 118, in write\n    return _write(rows)\n'
            "ConnectionRefusedError: [Errno 111] Connection refused\n\n"
            "The above exception was the direct cause of the following exception:\n\n"
            "Traceback (most recent call last):\n"
            "goqueue.model.errors.families.Unavailable: no node answers at 127.0.0.1:1\n SQLSTATE: 38000\n"
            "=== Streaming Query ===\nIdentifier: [id = 1]",
            "no node answers at 127.0.0.1:1",
        ),
        (
            "[CAST_INVALID_INPUT] The value 'x' cannot be cast. SQLSTATE: 22018\n== SQL (line 1) ==\ncast",
            "[CAST_INVALID_INPUT] The value 'x' cannot be cast.",
        ),
        (
            "[UNRESOLVED_COLUMN] No column kee. SQLSTATE: 42703; line 1 pos 7;\n'Project ['kee]",
            "[UNRESOLVED_COLUMN] No column kee. SQLSTATE: 42703; line 1 pos 7",
        ),
        ("", ""),
    ],
)
def test_of_an_error_the_line_is_kept_that_tells_what_went_wrong(told: str, short: str) -> None:
    assert short_error(told) == short
