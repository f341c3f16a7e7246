"""`goqueue-cli group`: consumer groups, whatever kind of clients their members are."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Literal

import msgspec
import typer

from goqueue.cli.broker import group_lag
from goqueue.cli.parts.arguments import Force
from goqueue.cli.parts.asking import confirm
from goqueue.cli.parts.calling import connect
from goqueue.cli.parts.completing import group_names, topic_names
from goqueue.cli.parts.exit_codes import WrongCommand
from goqueue.cli.parts.frame import Output, done, invocation, noun
from goqueue.cli.parts.output import counted, show_done, show_fields, show_rows, show_value
from goqueue.cli.parts.times import now, parse_moment, seconds_text

app = noun("Look at consumer groups, and set where they read on.")
app.command("lag")(group_lag.lag)

Group = Annotated[str, typer.Argument(metavar="ID", help="The group.", autocompletion=group_names)]

Goal = Literal["earliest", "latest"] | datetime | Mapping[str, Mapping[int, int]]

_LISTED = {"GROUP ID": "id", "STATE": "state", "KIND": "kind", "MEMBERS": "members", "TOPICS": "topics"}
_FIELDS = {
    "Group ID": "group_id",
    "State": "state",
    "Generation": "generation",
    "Kind": "kind",
    "Topics": "topics",
}
_MEMBERS = {"MEMBER ID": "member_id", "CLIENT ID": "client_id", "HOST": "client_host"} | {
    "PARTITIONS": "partitions",
    "LAST HEARTBEAT": "last_heartbeat",
}
_PASSED_OVER = {"TOPIC": "topic", "PARTITION": "partition", "FROM": "first_offset"} | {
    "BEFORE": "end_offset",
    "WHEN": "at",
    "WHY": "reason",
}
_OFFSETS = {"TOPIC": "topic", "PARTITION": "partition", "OFFSET": "offset", "LAG": "lag"}
_RESETS = {"TOPIC": "topic", "PARTITION": "partition", "FROM": "old_offset", "TO": "new_offset"}


class MemberRow(msgspec.Struct):
    """A member of a group in a table."""

    member_id: str
    client_id: str
    client_host: str
    partitions: list[str]
    last_heartbeat: datetime | None


@app.command("list")
def list_groups(
    context: typer.Context,
    internal: Annotated[
        bool, typer.Option("--internal", help="With those in whose names dead letters are sent back.")
    ] = False,
) -> None:
    """List the groups."""
    with connect(context) as queue:
        rows = sorted(queue.groups.list(internal=internal), key=lambda group: group.id)
    show_rows(invocation(context).output, rows, _LISTED, empty="there is no group")


@app.command("describe")
def describe(context: typer.Context, group: Group) -> None:
    """Show a group: its state, its members, how far it is behind."""
    with connect(context) as queue:
        found = queue.groups.describe(group)
    output = invocation(context).output
    show_fields(output, found, _FIELDS)
    if output is not Output.TABLE:
        return
    lag = found.lag
    print(f"Lag:        {counted(lag.total, 'message')}, {seconds_text(max(lag.max_seconds, 0))}")
    print()
    members = [
        MemberRow(
            member.member_id,
            member.client_id,
            member.client_host,
            [f"{place.topic}/{place.partition}" for place in member.assignment],
            member.last_heartbeat,
        )
        for member in found.members
    ]
    show_rows(output, members, _MEMBERS, empty="it has no members")
    if found.passed_over:
        print("\nLeft out, because nobody can read them:")
        show_rows(output, found.passed_over, _PASSED_OVER, empty="")


@app.command("delete")
def delete(context: typer.Context, group: Group, force: Force = False) -> None:
    """Forget a group and its offsets."""
    confirm(f"Group {group} will be gone, with how far it has read.", is_forced=force)
    with connect(context) as queue:
        queue.groups.delete(group)
    show_done(invocation(context).output, f"group {group} is deleted", {"group_id": group, "deleted": True})


@app.command("offsets")
def offsets(
    context: typer.Context,
    group: Group,
    topic: Annotated[
        str | None, typer.Option("--topic", help="Of this topic alone.", autocompletion=topic_names)
    ] = None,
) -> None:
    """Show how far a group has read: the next offset of each partition, and what is left behind it."""
    with connect(context) as queue:
        behind = queue.groups.lag(group)
    rows = [row for row in behind.partitions if topic in (None, row.topic)]
    show_rows(invocation(context).output, rows, _OFFSETS, empty="nothing was committed")


@app.command("reset-offsets")
def reset_offsets(
    context: typer.Context,
    group: Group,
    topic: Annotated[
        str, typer.Option("--topic", help="The topic whose offsets are set.", autocompletion=topic_names)
    ],
    partition: Annotated[
        int, typer.Option("-p", "--partition", min=-1, help="This one alone; -1: all.")
    ] = -1,
    to_earliest: Annotated[
        bool, typer.Option("--to-earliest", help="To the first message there is.")
    ] = False,
    to_latest: Annotated[bool, typer.Option("--to-latest", help="Behind the last message.")] = False,
    to_timestamp: Annotated[
        str | None,
        typer.Option(
            "--to-timestamp",
            metavar="TIME",
            help="To the first message of that time: 2026-01-31T12:00:00Z, or 15m ago.",
        ),
    ] = None,
    to_offset: Annotated[
        int | None, typer.Option("--to-offset", min=0, help="To this offset; needs --partition.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be.")] = False,
    force: Annotated[bool, typer.Option("-f", "--force", help="Also while the group has members.")] = False,
) -> None:
    """Set where a group reads on: all partitions of a topic, or none."""
    goals: list[Goal] = []
    if to_earliest:
        goals.append("earliest")
    if to_latest:
        goals.append("latest")
    if to_timestamp is not None:
        goals.append(parse_moment(to_timestamp, now=now()))
    if to_offset is not None:
        if partition < 0:
            raise WrongCommand("--to-offset is about one partition: say which with --partition")
        goals.append({topic: {partition: to_offset}})
    if len(goals) != 1:
        raise WrongCommand("say where to: one of --to-earliest, --to-latest, --to-timestamp and --to-offset")
    with connect(context) as queue:
        reset = queue.groups.reset_offsets(
            group,
            to=goals[0],
            topics=[topic],
            partition=partition if partition >= 0 else None,
            dry_run=dry_run,
            force=force,
        )
    output = invocation(context).output
    if output is not Output.TABLE:
        show_value(output, reset)
        return
    show_rows(output, reset.partitions, _RESETS, empty="no partition is touched")
    if dry_run:
        print(f"would be set: {counted(reset.reset_count, 'offset')} of {group}; nothing was changed")
    else:
        done(f"set: {counted(reset.reset_count, 'offset')} of {group}")
