"""`goqueue-cli topic`: make topics, look at them, delete them."""

from typing import Annotated

import msgspec
import typer

from goqueue.cli.parts.arguments import Force, Topic
from goqueue.cli.parts.asking import confirm
from goqueue.cli.parts.calling import connect
from goqueue.cli.parts.frame import Output, invocation, noun
from goqueue.cli.parts.output import Columns, as_size, counted, show_done, show_fields, show_rows
from goqueue.cli.parts.values import pairs

app = noun("Make topics, look at them, delete them.")


class TopicRow(msgspec.Struct):
    """A topic in a list."""

    name: str


class PartitionRow(msgspec.Struct):
    """A partition of a topic, from its first offset to its last."""

    partition: int
    earliest: int
    latest: int
    damage: str = ""


@app.command("list")
def list_topics(context: typer.Context) -> None:
    """List the topics."""
    with connect(context) as queue:
        rows = [TopicRow(name) for name in sorted(queue.topics.list())]
    show_rows(invocation(context).output, rows, {"NAME": "name"}, empty="there is no topic")


@app.command("create")
def create(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="The topic's name.")],
    partitions: Annotated[int, typer.Option("-p", "--partitions", min=1, help="How many partitions.")] = 3,
    retention_hours: Annotated[
        int | None,
        typer.Option(
            "-r",
            "--retention",
            min=1,
            metavar="HOURS",
            help="How long messages are kept; else as the broker says, 168 unless it was set otherwise.",
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A setting of the topic; may be repeated."),
    ] = None,
) -> None:
    """Make a topic."""
    with connect(context) as queue:
        created = queue.topics.create(
            name,
            partitions=partitions,
            retention_hours=retention_hours,
            settings=dict(pairs(settings or (), what="a setting")),
        )
    text = f"topic {created.name} is there, with {counted(created.partitions, 'partition')}"
    show_done(invocation(context).output, text, created)


@app.command("describe")
def describe(context: typer.Context, name: Topic) -> None:
    """Show a topic: its size, its offsets, its settings."""
    with connect(context) as queue:
        topic = queue.topics.describe(name)
    output = invocation(context).output
    show_fields(output, topic, _FIELDS)
    if output is not Output.TABLE:
        return
    print()
    offsets = {int(number): each for number, each in topic.partition_offsets.items()}
    damaged = topic.damaged_partitions
    rows = [
        PartitionRow(number, each.earliest, each.latest, damaged.get(str(number), ""))
        for number, each in sorted(offsets.items())
    ]
    columns: Columns = {"PARTITION": "partition", "EARLIEST": "earliest", "LATEST": "latest"}
    if damaged:
        columns = {**columns, "DAMAGED": "damage"}
    show_rows(output, rows, columns)
    print()
    settings = [{"setting": key, "value": value} for key, value in sorted(topic.settings.items())]
    show_rows(output, settings, {"SETTING": "setting", "VALUE": "value"})


@app.command("alter")
def alter(
    context: typer.Context,
    name: Topic,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A setting to change; may be repeated."),
    ] = None,
    reset: Annotated[
        list[str] | None,
        typer.Option("--reset", metavar="NAME", help="A setting to have the default again; may be repeated."),
    ] = None,
) -> None:
    """Change settings of a topic."""
    changes: dict[str, str | int | bool | None] = dict.fromkeys(reset or ())
    changes.update(pairs(settings or (), what="a setting"))
    if not changes:
        raise typer.BadParameter("say what to change: --set NAME=VALUE or --reset NAME")
    with connect(context) as queue:
        topic = queue.topics.alter(name, changes)
    shown = {key: topic.settings[key] for key in changes if key in topic.settings}
    text = ", ".join(f"{key}={value}" for key, value in shown.items())
    show_done(invocation(context).output, f"topic {name} has {text}", {"name": name, "settings": shown})


@app.command("delete")
def delete(context: typer.Context, name: Topic, force: Force = False) -> None:
    """Delete a topic and all it holds."""
    confirm(f"Topic {name} and all its messages will be gone.", is_forced=force)
    with connect(context) as queue:
        queue.topics.delete(name)
    show_done(invocation(context).output, f"topic {name} is deleted", {"name": name, "deleted": True})


@app.command("add-partitions")
def add_partitions(
    context: typer.Context,
    name: Topic,
    count: Annotated[int, typer.Option("-p", "--partitions", min=1, help="How many it has then, in all.")],
) -> None:
    """Give a topic more partitions. Keys may go to other partitions from then on."""
    with connect(context) as queue:
        added = queue.topics.add_partitions(name, count)
    text = f"topic {name} has {added.new_partition_count} partitions; it had {added.old_partition_count}"
    show_done(invocation(context).output, text, added)


@app.command("compact")
def compact(
    context: typer.Context,
    name: Topic,
    partition: Annotated[
        list[int] | None, typer.Option("--partition", min=0, help="Only this one; may be given again.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell what would go.")] = False,
    now: Annotated[bool, typer.Option("--now", help="Do not ask.")] = False,
) -> None:
    """Compact a topic now, instead of when it is due."""
    if not dry_run:
        confirm(f"Of each key of {name} only the newest message will stay.", is_forced=now)
    with connect(context) as queue:
        done = queue.topics.compact(name, partitions=partition or None, dry_run=dry_run)
    show_rows(invocation(context).output, done.results, _COMPACTED)
    if not done.success:
        raise typer.Exit(1)


_COMPACTED: Columns = {
    "PARTITION": "partition",
    "BEFORE": "records_before",
    "AFTER": "records_after",
    "REMOVED": "records_removed",
    "ERROR": "error",
}
_FIELDS: Columns = {
    "Name": "name",
    "Partitions": "partitions",
    "Total Messages": "total_messages",
    "Total Size": as_size("total_size_bytes"),
    "Created": "created_at",
}
