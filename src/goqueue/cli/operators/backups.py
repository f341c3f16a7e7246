"""`goqueue-admin backup`: keep what a broker knows of topics, groups and schemas, and bring it back."""

import re
from pathlib import Path
from typing import Annotated

import typer

from goqueue.cli.operators.call import connect
from goqueue.cli.operators.whole_backups import list_whole, make_whole, recover, verify
from goqueue.cli.parts.exit_codes import WrongCommand
from goqueue.cli.parts.frame import Output, invocation, noun
from goqueue.cli.parts.output import (
    Columns,
    as_size,
    counted,
    fields_of,
    show_done,
    show_fields,
    show_rows,
    show_value,
)

app = noun("Keep what a broker knows of topics, groups and schemas, and bring it back.")

BackupId = Annotated[str, typer.Argument(metavar="ID", help="The backup, by its id.")]
Whole = Annotated[bool, typer.Option("--whole", help="Of whole backups.")]
_ID = re.compile(r"\d{4}-\d\d-\d\d-\d{6}(-\d+)?", re.ASCII)
_COLUMNS: Columns = {
    "BACKUP ID": "backup_id",
    "TIMESTAMP": "timestamp",
    "TOPICS": "topics",
    "GROUPS": "consumer_groups",
    "SCHEMAS": "schemas",
}
_FIELDS: Columns = {
    "Backup ID": "backup_id",
    "Timestamp": "timestamp",
    "Broker": "broker_id",
    "Cluster": "cluster_id",
    "Version": "version",
    "Topics": "topic_count",
    "Partitions": "partition_count",
    "Messages": "total_messages",
    "Size": as_size("total_bytes"),
    "Groups": "consumer_group_count",
    "Schemas": "schema_count",
    "Tenants": "tenant_count",
}


@app.command("create")
def create(
    context: typer.Context,
    topics: Annotated[bool, typer.Option(help="Topics, their settings and offsets.")] = True,
    offsets: Annotated[bool, typer.Option(help="The offsets of consumer groups.")] = True,
    schemas: Annotated[bool, typer.Option(help="Schemas with their ids, and how they must fit.")] = True,
    config: Annotated[bool, typer.Option(help="The broker's settings, to be looked at.")] = True,
    whole: Annotated[bool, typer.Option("--whole", help="All that the node holds, messages too.")] = False,
) -> None:
    """Make a backup of what the broker knows, on its disk; with --whole of all, where its settings say."""
    if whole:
        make_whole(context)
        return
    with connect(context) as queue:
        created = queue.backups.create(topics=topics, offsets=offsets, schemas=schemas, config=config)
    stats = created.stats
    text = (
        f"backup {created.backup_id} holds {counted(stats.topic_count, 'topic')}, "
        f"{counted(stats.consumer_group_count, 'group')} and {counted(stats.schema_count, 'schema')}"
    )
    show_done(invocation(context).output, text, created)


@app.command("list")
def list_backups(context: typer.Context, whole: Whole = False) -> None:
    """List the backups, the newest first."""
    if whole:
        list_whole(context)
        return
    with connect(context) as queue:
        rows = queue.backups.list()
    show_rows(invocation(context).output, rows, _COLUMNS, empty="there is no backup")


@app.command("get")
def get(context: typer.Context, backup_id: BackupId) -> None:
    """Show what a backup holds."""
    with connect(context) as queue:
        backup = queue.backups.get(backup_id)
    output = invocation(context).output
    if output is not Output.TABLE:
        show_value(output, backup)
        return
    show_fields(output, {**fields_of(backup), **fields_of(backup.stats)}, _FIELDS)
    if backup.topics:
        print()
        show_rows(output, backup.topics, {"TOPIC": "name", "PARTITIONS": "num_partitions"})
    if backup.consumer_groups:
        print()
        show_rows(output, backup.consumer_groups, {"GROUP": "group_id", "STATE": "state"})
    if backup.schemas:
        print()
        show_rows(output, backup.schemas, {"SUBJECT": "subject", "VERSION": "version"})


@app.command("delete")
def delete(context: typer.Context, backup_id: BackupId, whole: Whole = False) -> None:
    """Delete a backup."""
    with connect(context) as queue:
        (queue.backups.delete_whole if whole else queue.backups.delete)(backup_id)
    show_done(
        invocation(context).output,
        f"backup {backup_id} is deleted",
        {"backup_id": backup_id, "deleted": True},
    )


@app.command("restore")
def restore(
    context: typer.Context,
    backup_id: BackupId,
    skip_existing: Annotated[
        bool, typer.Option("--skip-existing", help="Leave what is there and differs as it is.")
    ] = False,
    data_follows: Annotated[
        bool,
        typer.Option(
            "--data-follows",
            help="Messages will be restored before anybody uses the topics: keep the offsets of old.",
        ),
    ] = False,
) -> None:
    """Bring back topics, schemas and offsets that are not there. Do it again if it was broken off."""
    with connect(context) as queue:
        restored = queue.backups.restore(backup_id, skip_existing=skip_existing, data_follows=data_follows)
    text = (
        f"backup {backup_id}: {counted(restored.topics_restored, 'topic')}, "
        f"{counted(restored.groups_restored, 'group')}, {counted(restored.schemas_restored, 'schema')} and "
        f"{counted(restored.tenants_restored, 'tenant')} restored, {len(restored.skipped)} skipped"
    )
    for reason in restored.skipped:
        text += f"\n  skipped: {reason}"
    show_done(invocation(context).output, text, restored)


@app.command("download")
def download(
    context: typer.Context,
    backup_id: BackupId,
    file: Annotated[
        Path | None,
        typer.Argument(
            help="Where to; default: ID.json here (encrypted: ID.sealed). A file that is there stays."
        ),
    ] = None,
) -> None:
    """Fetch the file of a backup, to keep it elsewhere."""
    with connect(context) as queue:
        document = queue.backups.download(backup_id)
    ending = "json" if document.lstrip().startswith(b"{") else "sealed"
    target = Path(f"{backup_id}.{ending}") if file is None else file
    with target.open("xb") as opened:
        opened.write(document)
    show_done(
        invocation(context).output,
        f"backup {backup_id} is in {target}",
        {"backup_id": backup_id, "file": str(target)},
    )


@app.command("upload")
def upload(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="The file of a backup.")],
    backup_id: Annotated[
        str | None, typer.Option("--id", help="Its id; default: as the file or its folder is called.")
    ] = None,
) -> None:
    """Bring the file of a backup to this broker, to restore it there."""
    found = backup_id or _id_in(file)
    with connect(context) as queue:
        uploaded = queue.backups.upload(found, file.read_bytes())
    text = f"backup {found} is there; bring it back with `goqueue-admin backup restore {found}`"
    show_done(invocation(context).output, text, uploaded)


app.command("verify")(verify)
app.command("recover")(recover)


def _id_in(file: Path) -> str:
    match = _ID.search(file.name) or _ID.search(file.absolute().parent.name)
    if match is None:
        raise WrongCommand(f"{file} is not called like a backup; say which one it is with --id")
    return match.group()
