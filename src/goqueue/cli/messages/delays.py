"""`goqueue-cli delay`: messages that wait for their time."""

from typing import Annotated

import msgspec
import typer

from goqueue.cli.parts.arguments import Delay, DeliverAt, Topic
from goqueue.cli.parts.calling import connect
from goqueue.cli.parts.exit_codes import WrongCommand
from goqueue.cli.parts.frame import Output, done, invocation, noun
from goqueue.cli.parts.output import Columns, show_fields, show_rows, show_value
from goqueue.cli.parts.times import parse_duration, parse_time, time_text

app = noun("Look at messages that wait for their time, cancel them, move them.")

Number = Annotated[int, typer.Argument(min=0, help="The number that its publish was answered with.")]

_COLUMNS: Columns = {
    "PARTITION": "partition",
    "NUMBER": "offset",
    "DELIVER AT": "deliver_at",
    "IN": "time_remaining",
    "PRIORITY": "priority",
}
_FIELDS: Columns = {
    "Topic": "topic",
    "Partition": "partition",
    "Number": "offset",
    "Deliver At": "deliver_at",
    "In": "time_remaining",
    "Priority": "priority",
}
_STATS: Columns = {
    "Pending": "total_pending",
    "In Transactions": "in_transactions",
    "Delivered": "total_delivered",
    "Cancelled": "total_canceled",
    "Dropped": "total_dropped",
    "Average Delay": "avg_delay",
}


@app.command("list")
def list_delayed(
    context: typer.Context,
    topic: Topic,
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, help="At most so many.")] = 100,
    skip: Annotated[int, typer.Option("--skip", min=0, help="Begin behind so many.")] = 0,
) -> None:
    """List the messages that wait, the next one first."""
    with connect(context) as queue:
        # A topic that is not there has nothing that waits, and nobody would notice a misspelt name.
        queue.topics.partitions(topic)
        rows = queue.delayed.list(topic, limit=limit, skip=skip)
    show_rows(invocation(context).output, rows, _COLUMNS, empty=f"nothing waits for {topic}")


@app.command("get")
def get(context: typer.Context, topic: Topic, number: Number) -> None:
    """Show a message that waits."""
    with connect(context) as queue:
        show_fields(invocation(context).output, queue.delayed.get(topic, number), _FIELDS)


@app.command("cancel")
def cancel(
    context: typer.Context,
    topic: Topic,
    numbers: Annotated[
        list[int], typer.Argument(metavar="NUMBER...", min=0, help="The numbers of the messages.")
    ],
) -> None:
    """Cancel messages that wait: they are never delivered."""
    output = invocation(context).output
    cancelled = []
    with connect(context) as queue:
        for number in numbers:
            waiting = queue.delayed.get(topic, number)
            queue.delayed.cancel(topic, waiting.partition, number)
            cancelled.append(msgspec.structs.replace(waiting, state="cancelled"))
            if output is Output.TABLE:
                done(f"number {number} of {topic}, due {time_text(waiting.deliver_at)}, is cancelled")
    if output is not Output.TABLE:
        show_value(output, cancelled)


@app.command("move")
def move(
    context: typer.Context,
    topic: Topic,
    number: Number,
    delay: Delay = None,
    deliver_at: DeliverAt = None,
) -> None:
    """Give a message that waits another time."""
    if (delay is None) == (deliver_at is None):
        raise WrongCommand("say when: one of --delay and --deliver-at")
    with connect(context) as queue:
        moved = queue.delayed.move(
            topic,
            queue.delayed.get(topic, number).partition,
            number,
            delay=None if delay is None else parse_duration(delay),
            deliver_at=None if deliver_at is None else parse_time(deliver_at),
        )
    show_fields(invocation(context).output, moved, _FIELDS)


@app.command("stats")
def stats(context: typer.Context) -> None:
    """Count what waits, and has waited, in all topics."""
    with connect(context) as queue:
        show_fields(invocation(context).output, queue.delayed.stats(), _STATS)
