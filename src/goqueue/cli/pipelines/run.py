"""A pipeline run in the foreground, with a live table on a terminal and plain lines elsewhere."""

import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING

from rich.console import Console
from rich.live import Live

from goqueue.cli.pipelines.view import live_table
from goqueue.spark.pipelines.driving import drive, stop_on_signals
from goqueue.spark.pipelines.reporting import Reporter
from goqueue.spark.pipelines.spec import Pipeline
from goqueue.spark.pipelines.status import AT_REST, PipelineStatus, State
from goqueue.spark.pipelines.storage import PipelineLock, Storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Show = Callable[[PipelineStatus], None]


def run_here(
    pipeline: Pipeline,
    storage: Storage,
    open_spark: Callable[[], "SparkSession"],
    *,
    reset: bool,
    restarts_max: int | None,
) -> State:
    """Run until all is done, a signal comes or somebody stops it; gives the state it ended in."""
    # Asked before Spark takes its ten seconds to start, and held from then on.
    folder = storage.pipeline(pipeline.name)
    lock = PipelineLock(folder)
    lock.take()
    # Whoever runs it wants it to run: an old wish to stop it is over.
    folder.ask_to_start()
    with ExitStack() as stack:
        stack.callback(lock.release)
        print("starting Spark", file=sys.stderr, flush=True)
        spark = open_spark()
        stack.callback(spark.stop)
        # Behind the session, which takes the signals for itself when it is made.
        stop = stack.enter_context(stop_on_signals())
        # Only where Spark is installed: it imports pyspark.
        from goqueue.spark.pipelines.running import RunningPipeline

        running = RunningPipeline(pipeline, storage, lock, restarts_max=restarts_max)
        stack.callback(running.close)
        running.begin(spark, reset=reset)
        show = _live(stack) if sys.stdout.isatty() else _lines()
        state = State.STARTING

        def tick() -> bool:
            nonlocal state
            status = running.tick()
            state = status.state
            show(status)
            return state not in AT_REST

        drive(tick, stop)
    return state


def _live(stack: ExitStack) -> Show:
    live = stack.enter_context(Live(console=Console(), refresh_per_second=4))

    def show(status: PipelineStatus) -> None:
        live.update(live_table(status, now_ms=status.heartbeat_ms))
        for problem in status.problems:
            live.console.print(problem, markup=False)

    return show


def _lines() -> Show:
    reporter = Reporter(lambda line: print(line, flush=True))
    return lambda status: reporter.report([status])
