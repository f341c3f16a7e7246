"""Where partitions are: `goqueue-cli cluster reassign` and its kin, `goqueue-admin cluster decommission`."""

import time
from typing import Annotated

import msgspec
import typer

from goqueue.cli.operators.call import connect as connect_as_admin
from goqueue.cli.parts.arguments import Force
from goqueue.cli.parts.asking import confirm
from goqueue.cli.parts.calling import connect
from goqueue.cli.parts.exit_codes import ExitCode, WrongCommand
from goqueue.cli.parts.frame import invocation
from goqueue.cli.parts.output import Columns, counted, show_done, show_rows, show_value
from goqueue.cli.parts.values import parse_size
from goqueue.client.calls.cluster import Reassignment

_LOOK_S = 0.5
_UNTHROTTLED = -1
_OVER = ("completed", "failed", "canceled")

Wait = Annotated[bool, typer.Option("--wait", help="Come back when it is over; exit code 1 if it failed.")]
Throttle = Annotated[
    str | None,
    typer.Option("--throttle", metavar="SIZE", help="What a node sends a second, like 50MB, or `none`."),
]


class ReassignmentRow(msgspec.Struct):
    """A reassignment in short."""

    id: str
    state: str
    partitions: int
    over: int
    started: str
    error: str


class MoveRow(msgspec.Struct):
    """One partition of it."""

    partition: str
    state: str
    old: str
    new: str
    percent: float
    error: str


_LIST: Columns = {
    "ID": "id",
    "STATE": "state",
    "PARTITIONS": "partitions",
    "OVER": "over",
    "STARTED": "started",
    "ERROR": "error",
}
_MOVES: Columns = {
    "PARTITION": "partition",
    "STATE": "state",
    "FROM": "old",
    "TO": "new",
    "%": "percent",
    "ERROR": "error",
}


def reassign(
    context: typer.Context,
    targets: Annotated[
        list[str],
        typer.Argument(
            metavar="WHAT…",
            help="Partitions and their nodes, orders/0=node-2,node-3; or topics to be spread evenly.",
        ),
    ],
    to: Annotated[
        str, typer.Option("--to", metavar="NODES", help="Spread topics over these; else over all.")
    ] = "",
    copies: Annotated[
        int, typer.Option("--copies", min=0, help="Copies of each partition of a topic; 0: as it has.")
    ] = 0,
    throttle: Throttle = None,
    timeout_s: Annotated[
        int | None, typer.Option("--partition-timeout", min=1, help="Seconds a partition may take.")
    ] = None,
    wait: Wait = False,
) -> None:
    """Move partitions to other nodes while everybody goes on reading and writing.

    Who should lead a partition stands first among its nodes. Twenty partitions move at a time.
    """
    moves: dict[tuple[str, int], list[str]] = {}
    spread: dict[str, list[str]] = {}
    for target in targets:
        place, equals, nodes = target.partition("=")
        if equals:
            moves[_place(place)] = _names(nodes)
        else:
            spread[place] = _names(to)
    if to and moves:
        raise WrongCommand("--to is for topics; a partition says its nodes itself, like orders/0=node-2")
    rate = _rate(throttle)
    with connect(context) as queue:
        ordered = queue.cluster.reassign(
            moves, spread=spread, copies=copies, throttle_bytes_per_s=rate, timeout_s=timeout_s
        )
        if not wait:
            show_done(invocation(context).output, f"{ordered.reassignment_id} is ordered", ordered)
            return
        while (told := queue.cluster.reassignment(ordered.reassignment_id)).state not in _OVER:
            time.sleep(_LOOK_S)
    _show_one(context, told)
    if told.state != "completed":
        raise typer.Exit(ExitCode.FAILED)


def reassignments(
    context: typer.Context,
    reassignment_id: Annotated[str, typer.Argument(metavar="[ID]", help="Show this one alone.")] = "",
) -> None:
    """Show what is being moved and what was moved last, or how far one reassignment is."""
    with connect(context) as queue:
        if reassignment_id:
            _show_one(context, queue.cluster.reassignment(reassignment_id))
            return
        told = queue.cluster.reassignments()
    rows = [
        ReassignmentRow(
            one.id,
            one.state,
            len(one.progress),
            sum(move.state in _OVER for move in one.progress.values()),
            f"{one.started_at:%Y-%m-%d %H:%M:%S}",
            one.error,
        )
        for one in told
    ]
    show_rows(invocation(context).output, rows, _LIST, empty="nothing was moved lately")


def cancel_reassignment(
    context: typer.Context,
    reassignment_id: Annotated[str, typer.Argument(metavar="ID", help="The reassignment, like reassign-1.")],
) -> None:
    """Call back what is not there yet; what has moved stays where it is now."""
    with connect(context) as queue:
        done = queue.cluster.cancel_reassignment(reassignment_id)
    show_done(invocation(context).output, done.message, done)


def elect(
    context: typer.Context,
    places: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TOPIC/PARTITION…]", help="Which; else all that are led by another."),
    ] = None,
    unclean: Annotated[
        bool, typer.Option("--unclean", help="Where nobody leads: let a copy lead that may lack messages.")
    ] = False,
    force: Force = False,
) -> None:
    """Have partitions led by the node that should lead them: the first of their replicas."""
    if unclean:
        confirm("Messages that the copies which are alive do not have will be lost.", is_forced=force)
    with connect(context) as queue:
        named = None if not places else [_place(place) for place in places]
        elections = queue.cluster.elect_leaders(named, unclean=unclean)
    columns: Columns = {
        "TOPIC": "topic",
        "PARTITION": "partition",
        "ELECTED": "elected",
        "ERROR": "error",
    }
    empty = "every partition is led by who should lead it"
    show_rows(invocation(context).output, elections.results, columns, empty=empty)
    if any(not one.elected and one.code != "election_not_needed" for one in elections.results):
        raise typer.Exit(ExitCode.FAILED)


def decommission(
    context: typer.Context,
    node: Annotated[str, typer.Argument(help="The node's id.")],
    allow_fewer_copies: Annotated[
        bool, typer.Option("--allow-fewer-copies", help="Where too few nodes stay, go on with fewer copies.")
    ] = False,
    throttle: Throttle = None,
    status: Annotated[bool, typer.Option("--status", help="Only tell how far it is.")] = False,
    cancel: Annotated[bool, typer.Option("--cancel", help="Let the node stay.")] = False,
    wait: Wait = False,
    force: Force = False,
) -> None:
    """Move all that a node holds to others, then retire it: it never comes back under this id.

    Stop the node when its state is `retired`.
    """
    output = invocation(context).output
    with connect_as_admin(context) as queue:
        if cancel:
            done = queue.cluster.cancel_decommission(node)
            show_done(output, done.message, done)
            return
        if not status:
            confirm(f"All partitions leave {node}, and it will be retired for good.", is_forced=force)
            queue.cluster.decommission(
                node, allow_fewer_copies=allow_fewer_copies, throttle_bytes_per_s=_rate(throttle)
            )
        told = queue.cluster.retirement(node)
        while wait and told.state == "in_progress":
            time.sleep(_LOOK_S)
            told = queue.cluster.retirement(node)
    left = counted(told.partitions_left, "partition")
    show_done(output, f"{node}: {told.state}, {left} left, {told.partitions_moving} moving", told)
    if wait and told.state != "retired":
        raise typer.Exit(ExitCode.FAILED)


def _show_one(context: typer.Context, told: Reassignment) -> None:
    output = invocation(context).output
    asked = {(move.topic, move.partition): move for move in told.request.partitions}
    rows = []
    for move in told.progress.values():
        wanted = asked[move.topic, move.partition]
        old, new = ",".join(wanted.old_replicas), ",".join(wanted.new_replicas)
        name = f"{move.topic}/{move.partition}"
        rows.append(MoveRow(name, move.state, old, new, move.catchup_percent, move.error))
    if output.value == "table":
        print(f"{told.id}: {told.state}")
        show_rows(output, rows, _MOVES)
    else:
        show_value(output, told)


def _place(text: str) -> tuple[str, int]:
    topic, slash, number = text.rpartition("/")
    if not slash or not number.isdecimal():
        raise WrongCommand(f"{text!r} names no partition, like orders/0")
    return topic, int(number)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _rate(text: str | None) -> int | None:
    if text is None:
        return None
    return _UNTHROTTLED if text == "none" else parse_size(text)
