"""Jobs that keep, copy and check topics as they are: archive, restore, mirror, verify."""

from pathlib import Path
from typing import Annotated

import msgspec
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
from goqueue.cli.parts.exit_codes import WrongCommand
from goqueue.cli.parts.frame import FAILED, invocation
from goqueue.cli.parts.output import show_rows
from goqueue.spark.jobs.formats import Compression
from goqueue.spark.options.values import parse_size


class DamageRow(msgspec.Struct, kw_only=True):
    """Messages that cannot be read any more, as they are listed."""

    topic: str
    partition: int
    offset: int
    end_offset: int
    problem: str


def archive(
    context: typer.Context,
    topic: Topic,
    folder: Annotated[Path, typer.Argument(help="The folder of the archive; it may hold many topics.")],
    table: Annotated[
        str,
        typer.Option("--table", help="Also an Iceberg table of this name, lake.orders, of the same files."),
    ] = "",
    catalog: Annotated[
        str,
        typer.Option("--catalog", help="Address of its SQL catalog; default: a SQLite file in the folder."),
    ] = "",
    compression: Annotated[
        Compression, typer.Option("--compression", case_sensitive=False, help="How the files are compressed.")
    ] = Compression.ZSTD,
    since: Since = "",
    until: Until = "",
    allow_gaps: Annotated[
        bool, typer.Option("--allow-gaps", help="Go on behind messages that retention deleted unarchived.")
    ] = False,
    piece_bytes: PieceBytes = PIECE,
    bootstrap: Bootstrap = "",
    master: Master = LOCAL,
) -> None:
    """Keep what is new in a topic as Parquet files by day."""
    with running("archive", master) as (spark, progress):
        from goqueue.spark.jobs.archive import ArchiveJob
        from goqueue.spark.jobs.archive_store import MANIFEST, topic_folder
        from goqueue.spark.source.options import source_options

        given = source_of(context, bootstrap, topic, since=since, until=until)
        given["failOnDataLoss"] = "false" if allow_gaps else "true"
        source = source_options(given, is_streaming=False)
        root = folder.resolve()
        job = ArchiveJob(
            topic=topic,
            source=source,
            archive=root,
            table=table,
            catalog=catalog,
            compression=str(compression),
            item_bytes=parse_size(piece_bytes),
        )
        job.run(spark, planned=progress.planned, told=progress.told)
        sum_up(context, "archive", progress, topic_folder(root, topic) / MANIFEST)


def restore(
    context: typer.Context,
    topic: Topic,
    folder: Annotated[Path, typer.Argument(help="The folder of the archive.")],
    to: Annotated[
        str, typer.Option("--to", help="The topic to fill; default: the archived one's name.")
    ] = "",
    by_key: Annotated[
        bool, typer.Option("--by-key", help="Keys choose the partitions, instead of the archived ones.")
    ] = False,
    keep_offsets: Annotated[
        bool,
        typer.Option(
            "--keep-offsets", help="Every message at the offset it had, into partitions without messages."
        ),
    ] = False,
    manifest: Manifest = None,
    bootstrap: Bootstrap = "",
    master: Master = LOCAL,
) -> None:
    """Bring an archive back into a topic, each message once."""
    if by_key and keep_offsets:
        raise WrongCommand("--by-key and --keep-offsets do not go together: keys choose other partitions")
    with running("restore", master) as (spark, progress):
        from goqueue.spark.jobs.restore import RestoreJob
        from goqueue.spark.sink.options import sink_options

        path = manifest_path(manifest, "restore", to or topic)
        given = {**door_of(context, bootstrap), "topic": to or topic}
        job = RestoreJob(
            topic=topic,
            archive=folder.resolve(),
            target=sink_options(given, is_streaming=False),
            manifest=path,
            by_key=by_key,
            keep_offsets=keep_offsets,
        )
        job.run(spark, planned=progress.planned, told=progress.told)
        sum_up(context, "restore", progress, path)


def mirror(
    context: typer.Context,
    topic: Topic,
    to: Annotated[str, typer.Option("--to", help="Addresses of the other broker's HTTP door.")],
    name: Annotated[str, typer.Option("--as", help="The topic's name there; default: the same.")] = "",
    ca_file: Annotated[
        Path | None, typer.Option("--to-ca-file", help="Who vouches for the other broker at https://.")
    ] = None,
    cert_file: Annotated[
        Path | None, typer.Option("--to-cert-file", help="The certificate to show there.")
    ] = None,
    key_file: Annotated[Path | None, typer.Option("--to-key-file", help="Its key.")] = None,
    api_key_file: Annotated[
        Path | None, typer.Option("--to-api-key-file", help="A file with the API key to show there.")
    ] = None,
    manifest: Manifest = None,
    piece_bytes: PieceBytes = PIECE,
    bootstrap: Bootstrap = "",
    master: Master = LOCAL,
) -> None:
    """Copy what is new in a topic to another broker, batches as they are."""
    with running("mirror", master) as (spark, progress):
        from goqueue.spark.jobs.mirror import MirrorJob
        from goqueue.spark.sink.options import sink_options
        from goqueue.spark.source.options import source_options

        path = manifest_path(manifest, "mirror", topic)
        locks = locks_of(ca_file, cert_file, key_file, api_key_file)
        job = MirrorJob(
            topic=topic,
            source=source_options(source_of(context, bootstrap, topic), is_streaming=False),
            target=sink_options({"bootstrap": to, "topic": name or topic, **locks}, is_streaming=False),
            manifest=path,
            item_bytes=parse_size(piece_bytes),
        )
        job.run(spark, planned=progress.planned, told=progress.told)
        sum_up(context, "mirror", progress, path)


def locks_of(
    ca_file: Path | None = None,
    cert_file: Path | None = None,
    key_file: Path | None = None,
    api_key_file: Path | None = None,
) -> dict[str, str]:
    """Spark's options for those files that are named."""
    named = {"caFile": ca_file, "certFile": cert_file, "keyFile": key_file, "apiKeyFile": api_key_file}
    return {option: str(file.resolve()) for option, file in named.items() if file is not None}


def verify(
    context: typer.Context,
    topics: Topics,
    manifest: Manifest = None,
    piece_bytes: PieceBytes = PIECE,
    bootstrap: Bootstrap = "",
    master: Master = LOCAL,
) -> None:
    """Check the checksums of every frame; exit code 1 where something is damaged."""
    with running("verify", master) as (spark, progress):
        from goqueue.spark.jobs.verify import VerifyJob
        from goqueue.spark.source.options import source_options

        path = manifest_path(manifest, "verify", "-".join(topics))
        source = source_options(source_of(context, bootstrap, *topics), is_streaming=False)
        found = VerifyJob(source=source, manifest=path, item_bytes=parse_size(piece_bytes)).run(
            spark, planned=progress.planned, told=progress.told
        )
        damage = [
            DamageRow(
                topic=each.topic,
                partition=each.partition,
                offset=bad.offset,
                end_offset=bad.end_offset,
                problem=bad.problem,
            )
            for each in found
            for bad in each.damaged
        ]
        if damage:
            columns = {
                "TOPIC": "topic",
                "PARTITION": "partition",
                "OFFSET": "offset",
                "GOOD AGAIN AT": "end_offset",
                "PROBLEM": "problem",
            }
            show_rows(invocation(context).output, damage, columns)
            raise typer.Exit(FAILED)
        sum_up(context, "verify", progress, path)
