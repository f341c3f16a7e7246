"""`goqueue-cli pipeline`: check, run and look after the pipelines that Spark runs."""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from goqueue.cli.parts.arguments import Force
from goqueue.cli.parts.asking import confirm
from goqueue.cli.parts.contexts import target
from goqueue.cli.parts.frame import FAILED, Output, invocation, noun
from goqueue.cli.parts.output import counted, show_done, show_rows, show_value
from goqueue.cli.pipelines.view import LISTED, SINK_COLUMNS, listed, sink_row
from goqueue.model.errors import Busy, Invalid, Unavailable
from goqueue.spark.pipelines.driving import open_session, parse_settings
from goqueue.spark.pipelines.parsing import read_pipeline
from goqueue.spark.pipelines.spec import Pipeline, once
from goqueue.spark.pipelines.status import PipelineStatus, State, believed
from goqueue.spark.pipelines.storage import (
    DEFAULT_STORAGE,
    PipelineFolder,
    PipelineLock,
    Storage,
    is_running,
)
from goqueue.spark.pipelines.topics import missing_topics
from goqueue.spark.pipelines.yaml_nodes import InvalidPipeline, Problem

app = noun("Run SQL and Python over topics, into topics and lake tables, on Spark.")

File = Annotated[Path, typer.Argument(help="The YAML file of the pipeline.")]
Which = Annotated[str, typer.Argument(metavar="FILE|NAME", help="The pipeline's file, or its name.")]
StorageFolder = Annotated[
    Path, typer.Option("--storage", help="Where checkpoints and status are kept.", show_default=True)
]
Offline = Annotated[
    bool, typer.Option("--offline", help="Do not ask the broker whether the topics are there.")
]
Master = Annotated[str, typer.Option(help="Spark's master: local[*], spark://…, k8s://….")]
Conf = Annotated[
    list[str] | None,
    typer.Option("--conf", metavar="NAME=VALUE", help="A setting of Spark; may be repeated."),
]
Memory = Annotated[str, typer.Option(help="Memory of Spark's driver.")]
_STORAGE = Path(DEFAULT_STORAGE)
_WAIT_S = 60.0
_LOOK_S = 0.2


@app.command("validate")
def validate(
    context: typer.Context,
    files: Annotated[list[Path], typer.Argument(help="Files of pipelines.")],
    offline: Offline = False,
    spark: Annotated[
        bool, typer.Option("--spark", help="Let Spark check the SQL too; takes some ten seconds to start.")
    ] = False,
    master: Master = "local[*]",
    memory: Memory = "2g",
) -> None:
    """List every problem of the files, with its line, before anything runs."""
    bootstrap = target(invocation(context)).bootstrap
    problems: list[str] = []
    good: list[Pipeline] = []
    for file in files:
        try:
            pipeline = read_pipeline(file, bootstrap=bootstrap)
        except InvalidPipeline as invalid:
            problems += invalid.lines()
        else:
            good.append(pipeline)
            problems += InvalidPipeline(file, _missing_topics(pipeline, offline=offline)).lines()
    if spark and good:
        problems += _problems_of_sql(good, master=master, memory=memory)
    output = invocation(context).output
    if problems:
        if output is Output.TABLE:
            print(*problems, sep="\n")
        else:
            show_value(output, problems)
        raise typer.Exit(FAILED)
    checked = "" if spark else "; SQL is checked when it runs, or now with --spark"
    show_done(output, f"{counted(len(files), 'file')} without a problem{checked}", problems)


@app.command("run")
def run(
    context: typer.Context,
    file: File,
    storage: StorageFolder = _STORAGE,
    offline: Offline = False,
    reset: Annotated[
        bool, typer.Option("--reset", help="Begin anew: forget positions and state. Rows are written again.")
    ] = False,
    run_once: Annotated[
        bool, typer.Option("--once", help="Only what is there now, whatever the triggers say.")
    ] = False,
    restarts: Annotated[
        int | None, typer.Option(min=0, help="How often a sink that fails is begun again (default: always).")
    ] = None,
    master: Master = "local[*]",
    memory: Memory = "2g",
    conf: Conf = None,
) -> None:
    """Run one pipeline here, until it is done or you stop it."""
    settings = parse_settings(conf or ())
    pipeline = read_pipeline(file, bootstrap=target(invocation(context)).bootstrap)
    if problems := _missing_topics(pipeline, offline=offline):
        raise InvalidPipeline(file, problems)
    from goqueue.cli.pipelines.run import run_here

    state = run_here(
        once(pipeline) if run_once else pipeline,
        Storage(storage),
        lambda: open_session(master=master, memory=memory, settings=settings),
        reset=reset,
        restarts_max=restarts,
    )
    if state in (State.FAILED, State.REFUSED):
        raise typer.Exit(FAILED)


@app.command("list")
def list_pipelines(context: typer.Context, storage: StorageFolder = _STORAGE) -> None:
    """List the pipelines that have run with this storage."""
    kept = Storage(storage)
    statuses = [_status(kept.pipeline(name)) for name in kept.names()]
    rows = [listed(status, now_ms=_now_ms()) for status in statuses if status is not None]
    show_rows(invocation(context).output, rows, LISTED, empty=f"no pipeline has run with {kept.folder}")


@app.command("status")
def status_of(context: typer.Context, which: Which, storage: StorageFolder = _STORAGE) -> None:
    """Show how far a pipeline is: rows a second, lag, the last batch, the last error."""
    status = _status(_folder(which, storage))
    if status is None:
        raise Invalid(f"pipeline {which} has not told anything yet")
    output = invocation(context).output
    if output is not Output.TABLE:
        show_value(output, status)
        return
    age_s = max(_now_ms() - status.heartbeat_ms, 0) // 1_000
    print(f"{status.name}: {status.state} (process {status.process_id}, told {age_s} s ago) {status.file}")
    for problem in status.problems:
        print(problem)
    if status.sinks:
        rows = [sink_row(sink, now_ms=_now_ms()) for sink in status.sinks]
        show_rows(output, rows, SINK_COLUMNS)
    for sink in status.sinks:
        for note in [*sink.notes, *([f"last error: {sink.last_error}"] if sink.last_error else [])]:
            print(f"{sink.id}: {note}")


@app.command("stop")
def stop(context: typer.Context, which: Which, storage: StorageFolder = _STORAGE) -> None:
    """Stop a pipeline. It stays so until `start` or `run`, also when its driver is started anew."""
    folder = _folder(which, storage)
    folder.ask_to_stop()
    name = folder.path.name
    was_running = is_running(folder)
    if was_running:
        _wait_until(lambda: _has_stopped(folder), f"pipeline {name} has not stopped")
    text = "has stopped" if was_running else "was not running; it rests until `pipeline start`"
    show_done(
        invocation(context).output, f"pipeline {name} {text}", {"name": name, "was_running": was_running}
    )


@app.command("start")
def start(context: typer.Context, which: Which, storage: StorageFolder = _STORAGE) -> None:
    """Let the driver go on with a pipeline that was stopped."""
    folder = _folder(which, storage)
    folder.ask_to_start()
    name = folder.path.name
    has_driver = is_running(folder)
    text = "goes on" if has_driver else "may run; no driver has it now (`goqueue pipelines`)"
    show_done(invocation(context).output, f"pipeline {name} {text}", {"name": name, "is_running": has_driver})


@app.command("reset")
def reset(
    context: typer.Context,
    which: Which,
    sinks: Annotated[
        list[str] | None, typer.Option("--sink", help="Only this sink; may be repeated.")
    ] = None,
    force: Force = False,
    storage: StorageFolder = _STORAGE,
) -> None:
    """Forget positions and state, so that a pipeline begins anew. Its rows are written again."""
    folder = _folder(which, storage)
    known = folder.sink_ids()
    if unknown := sorted(set(sinks or ()) - set(known)):
        raise Invalid(f"there is no sink {', '.join(unknown)}; there is {', '.join(known) or 'none'}")
    chosen = sinks or known
    confirm(f"{', '.join(chosen)} of {folder.path.name} will begin anew.", is_forced=force)
    lock = PipelineLock(folder)
    try:
        lock.take()
    except Busy:
        folder.ask_to_reset(chosen)
        _wait_until(lambda: folder.asked_to_reset() is None, "the driver has not begun anew")
    else:
        folder.forget(chosen)
        lock.release()
    text = f"{', '.join(chosen) or 'nothing'} of {folder.path.name} begins anew"
    show_done(invocation(context).output, text, {"name": folder.path.name, "sinks": list(chosen)})


def _missing_topics(pipeline: Pipeline, *, offline: bool) -> list[Problem]:
    """The topics that the source lacks, where the broker can be asked."""
    if offline:
        return []
    try:
        return missing_topics(pipeline)
    except Unavailable as unavailable:
        print(f"{pipeline.path}: topics were not looked up: {unavailable}", file=sys.stderr)
        return []


def _problems_of_sql(pipelines: list[Pipeline], *, master: str, memory: str) -> list[str]:
    session = open_session(master=master, memory=memory)
    from goqueue.spark.pipelines.building import build

    problems: list[str] = []
    for pipeline in pipelines:
        try:
            build(pipeline, session)
        except InvalidPipeline as invalid:
            problems += invalid.lines()
    session.stop()
    return problems


def _folder(which: str, storage: Path) -> PipelineFolder:
    """The folder of a pipeline that is named, or whose file is."""
    path = Path(which)
    # Only the name is wanted here, so any address does.
    name = read_pipeline(path, bootstrap="127.0.0.1:8080").name if path.is_file() else which
    return Storage(storage).known(name)


def _status(folder: PipelineFolder) -> PipelineStatus | None:
    status = folder.read_status()
    return None if status is None else believed(status, now_ms=_now_ms())


def _has_stopped(folder: PipelineFolder) -> bool:
    status = folder.read_status()
    return not is_running(folder) or (status is not None and status.state is State.STOPPED)


def _wait_until(is_so: Callable[[], bool], otherwise: str) -> None:
    deadline = time.monotonic() + _WAIT_S
    while not is_so():
        if time.monotonic() > deadline:
            raise Unavailable(f"{otherwise} after {_WAIT_S:.0f} s; it will when its driver gets to it")
        time.sleep(_LOOK_S)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
