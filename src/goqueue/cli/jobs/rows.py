"""Jobs that open messages: export, import, replay, stats."""

from pathlib import Path
from typing import Annotated

import typer

from goqueue.cli.jobs.running import (
    LOCAL,
    PIECE,
    Bootstrap,
    Manifest,
    Master,
    PieceBytes,
    Since,
    Topic,
    Topics,
    Until,
    door_of,
    manifest_path,
    running,
    source_of,
    sum_up,
)
from goqueue.cli.parts.frame import invocation
from goqueue.cli.parts.output import show_rows
from goqueue.spark.jobs.formats import FileFormat
from goqueue.spark.options.values import parse_size


def export(
    context: typer.Context,
    topic: Topic,
    folder: Annotated[Path, typer.Argument(help="Where the files go; a later run adds what is new.")],
    file_format: Annotated[
        FileFormat, typer.Option("--format", case_sensitive=False, help="What kind of files.")
    ] = FileFormat.JSONL,
    since: Since = "",
    until: Until = "",
    piece_bytes: PieceBytes = PIECE,
    bootstrap: Bootstrap = "",
    master: Master = LOCAL,
) -> None:
    """Write the messages of a topic as JSON Lines, CSV or Parquet."""
    with running("export", master) as (spark, progress):
        from goqueue.spark.jobs.export import MANIFEST, ExportJob
        from goqueue.spark.source.options import source_options

        given = source_of(context, bootstrap, topic, since=since, until=until)
        source = source_options(given, is_streaming=False)
        job = ExportJob(
            source=source, folder=folder.resolve(), format=file_format, item_bytes=parse_size(piece_bytes)
        )
        job.run(spark, planned=progress.planned, told=progress.told)
        sum_up(context, "export", progress, folder / MANIFEST)


def import_files(
    context: typer.Context,
    topic: Topic,
    files: Annotated[list[Path], typer.Argument(help="Files or folders: .jsonl, .csv, .parquet.")],
    key: Annotated[str, typer.Option("--key", help="The field that is the messages' key.")] = "",
    keep_partitions: Annotated[
        bool, typer.Option("--keep-partitions", help="Take the partition from the files.")
    ] = False,
    manifest: Manifest = None,
    bootstrap: Bootstrap = "",
    master: Master = LOCAL,
) -> None:
    """Publish the rows of files, each once."""
    with running("import", master) as (spark, progress):
        from goqueue.spark.jobs.import_files import ImportJob
        from goqueue.spark.sink.options import sink_options

        path = manifest_path(manifest, "import", topic)
        given = {**door_of(context, bootstrap), "topic": topic}
        job = ImportJob(
            files=tuple(files),
            target=sink_options(given, is_streaming=False),
            manifest=path,
            key_field=key,
            keep_partitions=keep_partitions,
        )
        job.run(spark, planned=progress.planned, told=progress.told)
        sum_up(context, "import", progress, path)


def replay(
    context: typer.Context,
    topic: Topic,
    to: Annotated[str, typer.Option("--to", help="The topic that gets the messages again.")],
    where: Annotated[
        str, typer.Option("--where", help="Only these, in SQL: \"CAST(value AS STRING) LIKE '%failed%'\".")
    ] = "",
    since: Since = "",
    until: Until = "",
    archive_folder: Annotated[
        Path | None, typer.Option("--archive", help="Also messages that only this archive has.")
    ] = None,
    rate: Annotated[
        int | None, typer.Option("--rate", min=1, help="Read at most so many messages a second.")
    ] = None,
    keep_times: Annotated[
        bool, typer.Option("--keep-times", help="Keep the messages' times; else they are new.")
    ] = False,
    keep_partitions: Annotated[
        bool, typer.Option("--keep-partitions", help="Keep the messages' partitions.")
    ] = False,
    manifest: Manifest = None,
    bootstrap: Bootstrap = "",
    master: Master = LOCAL,
) -> None:
    """Send messages again: of a time, of an archive, or those that a predicate chooses."""
    with running("replay", master) as (spark, progress):
        from goqueue.spark.jobs.replay import ReplayJob
        from goqueue.spark.sink.options import sink_options

        path = manifest_path(manifest, "replay", f"{topic}-{to}")
        source = source_of(context, bootstrap, topic, since=since, until=until)
        if archive_folder is not None:
            source["archive"] = str(archive_folder.resolve())
        door = door_of(context, bootstrap)
        job = ReplayJob(
            source=source,
            target=sink_options({**door, "topic": to}, is_streaming=False),
            door=door,
            manifest=path,
            where=where,
            per_second=rate,
            keep_times=keep_times,
            keep_partitions=keep_partitions,
        )
        job.run(spark, planned=progress.planned, told=progress.told)
        sum_up(context, "replay", progress, path)


def stats(
    context: typer.Context,
    topics: Topics,
    since: Since = "",
    until: Until = "",
    latency_header: Annotated[
        str, typer.Option("--latency-header", help="A header with the event's time in unix ms.")
    ] = "",
    png: Annotated[Path | None, typer.Option("--png", help="Draw a chart into this file.")] = None,
    bootstrap: Bootstrap = "",
    master: Master = LOCAL,
) -> None:
    """Sizes, rates, key skew and latency by topic and hour."""
    with running("stats", master) as (spark, _):
        from goqueue.spark.jobs.stats import StatsJob

        source = source_of(context, bootstrap, *topics, since=since, until=until)
        found = StatsJob(source=source, latency_header=latency_header).run(spark)
        if png is not None:
            from goqueue.spark.jobs.stats_chart import draw

            draw(found, png)
    columns = {
        "TOPIC": "topic",
        "HOUR": "hour",
        "MESSAGES": "messages",
        "PER SECOND": "per_second",
        "BYTES": "size_bytes",
        "P50": "value_p50_bytes",
        "P99": "value_p99_bytes",
        "KEYS": "keys",
        "TOP KEY": "top_key",
        "SHARE": "top_key_share",
    }
    if latency_header:
        columns |= {"LATENCY P50": "latency_p50_ms", "P95": "latency_p95_ms", "P99 ": "latency_p99_ms"}
    show_rows(invocation(context).output, found, columns, empty="there are no messages")
