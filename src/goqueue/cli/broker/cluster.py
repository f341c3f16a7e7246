"""`goqueue-cli health`, `cluster` and `version`: how the broker is."""

from collections.abc import Callable

import msgspec
import typer

from goqueue import __version__
from goqueue.cli.broker import cluster_state, moving
from goqueue.cli.parts.calling import connect
from goqueue.cli.parts.contexts import target
from goqueue.cli.parts.exit_codes import ExitCode
from goqueue.cli.parts.frame import Output, invocation, noun, tell_error
from goqueue.cli.parts.output import Columns, as_size, show_fields, show_rows, show_value
from goqueue.client import GoQueue
from goqueue.client.calls.admin import Readiness
from goqueue.model.errors import GoQueueError

app = noun("Look at the broker: its size, its health, its nodes; and say which nodes hold what.")
app.command("reassign")(moving.reassign)
app.command("reassignments")(moving.reassignments)
app.command("cancel-reassignment")(moving.cancel_reassignment)
app.command("elect")(moving.elect)
app.command("state")(cluster_state.state)
app.command("partition")(cluster_state.partition)
Connect = Callable[[typer.Context], GoQueue]


class CheckRow(msgspec.Struct, omit_defaults=True):
    """One thing that was looked at."""

    check: str
    status: str
    latency: str = ""
    message: str = ""


class Info(msgspec.Struct):
    """A broker in short."""

    node_id: str
    version: str
    uptime: str
    topics: int
    total_size_bytes: int
    nodes: int
    controller: str


class NodeRow(msgspec.Struct):
    """A node of the cluster."""

    id: str
    client_address: str
    peer_address: str
    status: str
    controller: bool


class Versions(msgspec.Struct):
    """Of this tool and of the broker, where one answers."""

    client: str
    server: str | None


_CHECKS: Columns = {"CHECK": "check", "STATUS": "status", "LATENCY": "latency", "MESSAGE": "message"}
_INFO: Columns = {
    "Node ID": "node_id",
    "Version": "version",
    "Uptime": "uptime",
    "Topics": "topics",
    "Total Size": as_size("total_size_bytes"),
    "Nodes": "nodes",
    "Controller": "controller",
}
_NODES: Columns = {
    "ID": "id",
    "CLIENT ADDRESS": "client_address",
    "PEER ADDRESS": "peer_address",
    "STATUS": "status",
    "CONTROLLER": "controller",
}


def health(context: typer.Context) -> None:
    """Say whether the broker can work, check by check. Exit code 0 if so, and 1 if not or nobody answers."""
    tell_health(context, connect)


def tell_health(context: typer.Context, connect: Connect) -> None:
    """The same for a tool that finds its broker in another way."""
    try:
        with connect(context) as queue:
            ready = queue.admin.ready(verbose=True)
    except GoQueueError as problem:
        # Those who watch containers know two answers only.
        tell_error(problem)
        raise typer.Exit(ExitCode.FAILED) from problem
    _show_health(invocation(context).output, ready)


@app.command("health")
def cluster_health(context: typer.Context) -> None:
    """The same as `goqueue-cli health`."""
    health(context)


@app.command("info")
def info(context: typer.Context) -> None:
    """Show what runs, for how long, and how much it holds."""
    tell_info(context, connect)


def tell_info(context: typer.Context, connect: Connect) -> None:
    """The same for a tool that finds its broker in another way."""
    with connect(context) as queue:
        stats = queue.admin.stats()
        version = queue.admin.version().version
        state = queue.admin.cluster_state()
    shown = Info(
        stats.node_id,
        version,
        stats.uptime,
        stats.topics,
        stats.total_size_bytes,
        len(state.nodes),
        state.controller_id,
    )
    show_fields(invocation(context).output, shown, _INFO)


@app.command("nodes")
def nodes(context: typer.Context) -> None:
    """List the nodes."""
    with connect(context) as queue:
        state = queue.admin.cluster_state()
        is_ready = queue.admin.ready(verbose=False).is_ready
    where = target(invocation(context)).bootstrap
    rows = []
    for node in state.nodes:
        # The one that answers knows best how it is, and has just been reached.
        is_here = node.id == state.node_id
        status = "not ready" if is_here and not is_ready else node.status
        client_address = node.client_address or (where if is_here else "")
        rows.append(NodeRow(node.id, client_address, node.peer_address, status, node.is_controller))
    show_rows(invocation(context).output, rows, _NODES)


def version(context: typer.Context) -> None:
    """Print the version of this tool, and of the broker where one answers."""
    server = None
    try:
        with connect(context) as queue:
            server = queue.admin.version().version
    except GoQueueError as problem:
        absence = f"none ({problem})"
    else:
        absence = ""
    output = invocation(context).output
    if output is not Output.TABLE:
        show_value(output, Versions(__version__, server))
        return
    print(f"Client Version: {__version__}")
    print(f"Server Version: {server or absence}")


def _show_health(output: Output, ready: Readiness) -> None:
    if output is not Output.TABLE:
        show_value(output, ready)
    else:
        rows = [
            CheckRow(name, check.status, check.latency or "", check.message or "")
            for name, check in ready.checks.items()
        ]
        if rows:
            show_rows(output, rows, _CHECKS)
            print()
        print(f"{ready.status}{f': {ready.message}' if ready.message else ''}, up for {ready.uptime or '-'}")
    if not ready.is_ready:
        raise typer.Exit(ExitCode.FAILED)
