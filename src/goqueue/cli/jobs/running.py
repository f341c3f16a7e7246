"""What the commands of `goqueue-cli job` share: their options, a Spark session with a bar, and a summary."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from goqueue.cli.jobs.progress import JobProgress, job_progress
from goqueue.cli.parts.contexts import target
from goqueue.cli.parts.frame import FAILED, invocation, tell_error
from goqueue.cli.parts.output import show_done
from goqueue.model.errors import NotFound

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Topic = Annotated[str, typer.Argument(help="The topic.")]
Topics = Annotated[list[str], typer.Argument(help="The topics.")]
Bootstrap = Annotated[
    str, typer.Option("--bootstrap", help="Addresses of the HTTP door, host:8080,…; default: --server.")
]
Master = Annotated[str, typer.Option("--master", help="Where Spark runs: local[*], spark://host:7077, …")]
Since = Annotated[str, typer.Option("--from", help="Messages of that time or later: 2026-01-31T12:00:00Z.")]
Until = Annotated[str, typer.Option("--until", help="Up to the first message of that time or later.")]
Manifest = Annotated[
    Path | None,
    typer.Option("--manifest", help="The file that keeps what is done; name another to begin anew."),
]
PieceBytes = Annotated[
    str, typer.Option("--piece-bytes", help="About how much of the log a task takes at a time.")
]
LOCAL = "local[*]"
PIECE = "64MiB"
_TOLD_BY_A_WORKER = re.compile(r"^\s*goqueue\.[\w.]+: (.+)$", re.MULTILINE)


class Summary(msgspec.Struct, kw_only=True):
    """What a job came to."""

    job: str
    items: int
    messages: int
    manifest: str


@contextmanager
def running(name: str, master: str) -> Iterator[tuple["SparkSession", JobProgress]]:
    """A Spark session and a bar; what a worker has told of a failure, without Java's story around it."""
    try:
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession

        from goqueue.spark.sessions import session
    except ModuleNotFoundError as error:
        raise NotFound(
            f"jobs run on Spark, which is not installed: pip install 'goqueue[spark]' ({error})"
        ) from error
    is_ours = SparkSession.getActiveSession() is None
    spark = session(f"goqueue-{name}", master=master)
    try:
        with job_progress(name) as progress:
            yield spark, progress
    except PySparkException as problem:
        told = _TOLD_BY_A_WORKER.findall(str(problem))
        tell_error(RuntimeError(told[-1] if told else str(problem).splitlines()[0]))
        raise typer.Exit(FAILED) from problem
    finally:
        if is_ours:
            spark.stop()


def source_of(
    context: typer.Context, bootstrap: str, *topics: str, since: str = "", until: str = ""
) -> dict[str, str]:
    """Options of the source for some topics."""
    options = {**door_of(context, bootstrap), "topics": ",".join(topics)}
    if since:
        options["startingTimestamp"] = since
    if until:
        options["endingTimestamp"] = until
    return options


def door_of(context: typer.Context, given: str) -> dict[str, str]:
    """Where the broker is and how it is reached: as said for this job, else as for every command."""
    call = invocation(context)
    return target(replace(call, server=given) if given else call).spark_options


def manifest_path(given: Path | None, job: str, about: str) -> Path:
    """The manifest as it was named, else one in this folder."""
    return (given or Path(f"goqueue-{job}-{about}.json")).resolve()


def sum_up(context: typer.Context, name: str, progress: JobProgress, manifest: Path) -> None:
    """Say what a job came to."""
    summary = Summary(
        job=name, items=progress.items, messages=progress.messages, manifest=str(manifest.resolve())
    )
    text = f"{name}: {summary.messages:,} messages; manifest {summary.manifest}"
    show_done(invocation(context).output, text, summary)
