"""`goqueue-cli trace`: what has become of a message. `trace orders/0/17` tells the story of any message."""

import re
from typing import Annotated, Any, Literal

import typer

from goqueue.cli.messages.trace_view import STAGES, number_text, stage_rows, took_text
from goqueue.cli.parts.calling import connect
from goqueue.cli.parts.completing import group_names, topic_names
from goqueue.cli.parts.exit_codes import WrongCommand
from goqueue.cli.parts.frame import Commands, Output, invocation, noun
from goqueue.cli.parts.output import Columns, show_fields, show_rows, show_value
from goqueue.cli.parts.times import now, parse_moment
from goqueue.client.calls.traces import Trace

_STORY = "story"
_PLACE = re.compile(r"(.+)/(\d{1,10})/(\d{1,19})", re.ASCII)
_TRACE_ID = re.compile(r"[0-9a-fA-F]{32}", re.ASCII)


class TraceCommands(Commands):
    """`trace orders/0/17` stands for `trace story orders/0/17`: no command has a slash in its name."""

    # The library's own name for its context is private, so this method cannot spell its types out.
    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        return super().resolve_command(ctx, [_STORY, *args] if args and "/" in args[0] else args)


app = noun(
    "Tell the story of a message: trace TOPIC/PARTITION/OFFSET. Or find messages by their stories.",
    cls=TraceCommands,
)

Status = Literal["in_progress", "completed", "failed", "retrying", "delayed", "expired", "error", "pending"]
"""The last two are the words of other clients: what went wrong, and what is not over."""
Limit = Annotated[int, typer.Option("-n", "--limit", min=1, max=1_000, help="At most so many.")]

_LISTED: Columns = {
    "TRACE ID": "trace_id",
    "TOPIC": "topic",
    "PARTITION": lambda row: number_text(row["partition"]),
    "OFFSET": lambda row: number_text(row["offset"]),
    "STATUS": "state",
    "DURATION": took_text,
}
_FIELDS: Columns = {
    "Trace ID": "trace_id",
    "Message": lambda row: "/".join(
        (str(row["topic"]), number_text(row["partition"]), number_text(row["offset"]))
    ),
    "Status": "state",
    "Start": "start_time",
    "Duration": took_text,
}
_STATS: Columns = {
    "Enabled": "enabled",
    "Sampling Rate": "sampling_rate",
    "Traces": "total_traces",
    "Active": "active_traces",
    "Completed": "completed_traces",
    "Failed": "error_traces",
    "Events Held": lambda row: f"{row['spans_in_buffer']} of {row['buffer_capacity']}",
    "Exporters": "exporters_enabled",
}


@app.command(_STORY)
def story(
    context: typer.Context,
    place: Annotated[str, typer.Argument(metavar="TOPIC/PARTITION/OFFSET", help="The message.")],
) -> None:
    """Tell the story of any message that is there, as far as the broker knows it."""
    match = _PLACE.fullmatch(place)
    if match is None:
        raise WrongCommand(f"{place!r} is no message: write TOPIC/PARTITION/OFFSET, like orders/0/17")
    with connect(context) as queue:
        found = queue.traces.of(match[1], int(match[2]), int(match[3]))
    _show(invocation(context).output, found)


@app.command("get")
def get(
    context: typer.Context,
    trace_id: Annotated[str, typer.Argument(metavar="ID", help="The id: 32 hexadecimal digits.")],
) -> None:
    """Tell the story that has an id."""
    if not _TRACE_ID.fullmatch(trace_id):
        raise WrongCommand(f"{trace_id!r} is no trace id: it has 32 hexadecimal digits")
    with connect(context) as queue:
        found = queue.traces.get(trace_id.lower())
    _show(invocation(context).output, found)


@app.command("list")
def list_traces(context: typer.Context, limit: Limit = 100) -> None:
    """List the newest stories."""
    with connect(context) as queue:
        rows = queue.traces.list(limit=limit)
    show_rows(invocation(context).output, rows, _LISTED, empty="nothing was traced")


@app.command("search")
def search(
    context: typer.Context,
    topic: Annotated[
        str | None, typer.Option("--topic", help="Of this topic.", autocompletion=topic_names)
    ] = None,
    partition: Annotated[int, typer.Option("--partition", min=-1, help="Of this one; -1: of all.")] = -1,
    consumer_group: Annotated[
        str | None,
        typer.Option("--consumer-group", help="Delivered to this group.", autocompletion=group_names),
    ] = None,
    start: Annotated[
        str | None, typer.Option("--start", metavar="TIME", help="Since 2026-01-31T12:00:00Z, or 15m ago.")
    ] = None,
    end: Annotated[
        str | None, typer.Option("--end", metavar="TIME", help="Until then; now by default.")
    ] = None,
    status: Annotated[
        Status | None, typer.Option("--status", case_sensitive=False, help="How it stands.")
    ] = None,
    limit: Limit = 100,
) -> None:
    """Find stories by what happened in them."""
    moment = now()
    first = None if start is None else parse_moment(start, now=moment)
    last = (
        moment
        if end is None and first is not None
        else None
        if end is None
        else parse_moment(end, now=moment)
    )
    with connect(context) as queue:
        rows = queue.traces.search(
            topic=topic,
            partition=partition if partition >= 0 else None,
            consumer_group=consumer_group,
            start=first,
            end=last,
            status=status,
            limit=limit,
        )
    show_rows(invocation(context).output, rows, _LISTED, empty="no story is like that")


@app.command("stats")
def stats(context: typer.Context) -> None:
    """Count the stories, and say whether more are written."""
    with connect(context) as queue:
        found = queue.traces.stats()
    output = invocation(context).output
    show_fields(output, found, _STATS)
    if output is Output.TABLE and found.by_topic:
        print()
        rows = [{"topic": topic, "traces": count} for topic, count in sorted(found.by_topic.items())]
        show_rows(output, rows, {"TOPIC": "topic", "TRACES": "traces"})


def _show(output: Output, trace: Trace) -> None:
    if output is not Output.TABLE:
        show_value(output, trace)
        return
    show_fields(output, trace, _FIELDS)
    print()
    show_rows(output, stage_rows(trace), STAGES, empty="nothing is known of it")
