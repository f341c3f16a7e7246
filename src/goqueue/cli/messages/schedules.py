"""`goqueue-cli schedule`: messages that are published again and again."""

from typing import Annotated

import typer

from goqueue.cli.parts.arguments import Force, Headers, Key, Lane, Topic
from goqueue.cli.parts.asking import confirm
from goqueue.cli.parts.calling import connect
from goqueue.cli.parts.frame import invocation, noun
from goqueue.cli.parts.output import Columns, show_done, show_fields, show_rows
from goqueue.cli.parts.times import time_text
from goqueue.cli.parts.values import pairs

app = noun("Publish a message at all times that a cron expression names.")

Name = Annotated[str, typer.Argument(help="The schedule.")]

_COLUMNS: Columns = {
    "NAME": "name",
    "CRON": "cron",
    "TIME ZONE": "time_zone",
    "STATE": "state",
    "NEXT": "next_at",
    "LAST": "last_at",
    "FIRED": "fired",
}
_FIELDS: Columns = {
    "Name": "name",
    "Topic": "topic",
    "Cron": "cron",
    "Time Zone": "time_zone",
    "State": "state",
    "Next": "next_at",
    "Last": "last_at",
    "Fired": "fired",
}


@app.command("list")
def list_schedules(context: typer.Context, topic: Topic) -> None:
    """List the schedules of a topic."""
    with connect(context) as queue:
        rows = queue.schedules.list(topic)
    show_rows(invocation(context).output, rows, _COLUMNS, empty=f"{topic} has no schedule")


@app.command("get")
def get(context: typer.Context, topic: Topic, name: Name) -> None:
    """Show a schedule: its next time and its last."""
    with connect(context) as queue:
        show_fields(invocation(context).output, queue.schedules.get(topic, name), _FIELDS)


@app.command("create")
def create(
    context: typer.Context,
    topic: Topic,
    cron: Annotated[str, typer.Option("--cron", help="minute hour day month weekday: '0 9 * * MON-FRI'.")],
    message: Annotated[str, typer.Option("-m", "--message", help="The value to publish.")],
    name: Annotated[str | None, typer.Option("--name", help="Its name; made up when not given.")] = None,
    time_zone: Annotated[str, typer.Option("--time-zone", help="Like Europe/Vienna.")] = "UTC",
    key: Key = None,
    priority: Lane = None,
    headers: Headers = None,
) -> None:
    """Make a schedule."""
    with connect(context) as queue:
        made = queue.schedules.create(
            topic,
            cron,
            message,
            name=name,
            time_zone=time_zone,
            key=key,
            headers=pairs(headers or (), what="a header"),
            priority=priority,
        )
    next_at = "never" if made.next_at is None else time_text(made.next_at)
    text = f"schedule {made.name} of {topic} is there; its next time is {next_at}"
    show_done(invocation(context).output, text, made)


@app.command("pause")
def pause(context: typer.Context, topic: Topic, name: Name) -> None:
    """Let a schedule rest."""
    with connect(context) as queue:
        paused = queue.schedules.pause(topic, name)
    show_done(invocation(context).output, f"schedule {name} of {topic} rests", paused)


@app.command("resume")
def resume(context: typer.Context, topic: Topic, name: Name) -> None:
    """Let a schedule that rests go on with its next time."""
    with connect(context) as queue:
        resumed = queue.schedules.resume(topic, name)
    show_done(invocation(context).output, f"schedule {name} of {topic} goes on", resumed)


@app.command("delete")
def delete(
    context: typer.Context,
    topic: Topic,
    name: Name,
    force: Force = False,
) -> None:
    """Delete a schedule, with the message that waits."""
    confirm(f"Schedule {name} of {topic} will be gone.", is_forced=force)
    with connect(context) as queue:
        queue.schedules.delete(topic, name)
    gone = {"topic": topic, "name": name, "deleted": True}
    show_done(invocation(context).output, f"schedule {name} of {topic} is deleted", gone)
