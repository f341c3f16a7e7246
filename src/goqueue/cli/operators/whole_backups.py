"""`goqueue-admin backup … --whole`, `verify` and `recover`: all that a node holds, and how it comes back.

A running broker makes them. Checking one and bringing it back is the work of `goqueue.node.bring_back`, in a
process of its own, on the folder in which they lie: the broker that made them may be gone.
"""

import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from goqueue.cli.operators.call import connect
from goqueue.cli.parts.exit_codes import ExitCode
from goqueue.cli.parts.frame import invocation
from goqueue.cli.parts.output import Columns, as_size, counted, show_done, show_rows
from goqueue.client.calls.backups import WholeBackup
from goqueue.model.errors import Invalid, NotFound, Unavailable

LATEST = "latest"
_ID_FORMAT = "%Y-%m-%d-%H%M%S"
_LOOK_EVERY_S = 0.5
_TELL_EVERY_S = 5.0
_COLUMNS: Columns = {
    "BACKUP ID": "backup_id",
    "STATE": "state",
    "TIMESTAMP": "timestamp",
    "PARTITIONS": "partitions",
    "SIZE": as_size("size_bytes"),
    "NEW": as_size("new_bytes"),
    "FAILURE": "failure",
}
Folder = Annotated[Path, typer.Argument(exists=True, file_okay=False, help="Where whole backups are.")]
Chosen = Annotated[str, typer.Argument(metavar="[ID]", help="Which one; default: the newest.")]


class _Line(msgspec.Struct):
    """What the other process prints: how far it is, and at last what came of it."""

    done_bytes: int = 0
    total_bytes: int = 0
    backup_id: str = ""
    taken_ms: int = 0
    partitions: int = 0
    size_bytes: int = 0
    problems: list[str] = []


_decoder = msgspec.json.Decoder(_Line)


def make_whole(context: typer.Context) -> None:
    """Have the broker make one, and tell how far it is until it is done."""
    with connect(context) as queue:
        backup = queue.backups.begin_whole()
        told_at_s = time.monotonic()
        while backup.state == "running":
            time.sleep(_LOOK_EVERY_S)
            listed = {each.backup_id: each for each in queue.backups.list_whole()}
            backup = listed.get(backup.backup_id, backup)
            if backup.state == "running" and time.monotonic() - told_at_s >= _TELL_EVERY_S:
                told_at_s = time.monotonic()
                _tell(backup.size_bytes, backup.total_bytes)
    if backup.state != "done":
        raise Unavailable(f"backup {backup.backup_id} failed: {backup.failure}")
    text = f"backup {backup.backup_id} holds {counted(backup.partitions, 'partition')}, {_sizes(backup)}"
    show_done(invocation(context).output, text, backup)


def list_whole(context: typer.Context) -> None:
    with connect(context) as queue:
        rows = queue.backups.list_whole()
    show_rows(invocation(context).output, rows, _COLUMNS, empty="there is no whole backup")


def verify(context: typer.Context, folder: Folder, backup_id: Chosen = LATEST) -> None:
    """Read a whole backup back and check every byte of it. No broker is needed."""
    ended = _run(str(folder), backup_id)
    for problem in ended.problems:
        print(problem, file=sys.stderr)
    if ended.problems:
        raise typer.Exit(ExitCode.FAILED)
    text = f"backup {ended.backup_id} is whole: {counted(ended.partitions, 'partition')}"
    show_done(invocation(context).output, text, ended)


def recover(
    context: typer.Context,
    folder: Folder,
    into: Annotated[Path, typer.Option(help="The data folder to make. It must be empty, or not be there.")],
    backup_id: Chosen = LATEST,
    to: Annotated[
        datetime | None, typer.Option(help="The newest backup of this moment or before, in UTC.")
    ] = None,
) -> None:
    """Bring a whole backup back into a new data folder. Start a broker on it: it goes on from that moment."""
    words = [str(folder), backup_id, "--into", str(into)]
    if to is not None:
        words += ["--before", (to if to.tzinfo is None else to.astimezone(UTC)).strftime(_ID_FORMAT)]
    ended = _run(*words)
    text = (
        f"backup {ended.backup_id} is in {into}: {counted(ended.partitions, 'partition')}; "
        f"start it with `goqueue --broker-datadir={into}`"
    )
    show_done(invocation(context).output, text, ended)


def _run(*words: str) -> _Line:
    process = subprocess.Popen(
        [sys.executable, "-m", "goqueue.node.bring_back", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    last = _Line()
    with process:
        for line in process.stdout:
            last = _decoder.decode(line)
            if not last.backup_id:
                _tell(last.done_bytes, last.total_bytes)
        assert process.stderr is not None
        said = process.stderr.read().decode().strip().rpartition("\n")[2]
    if not last.backup_id:
        kinds = {ExitCode.NOT_FOUND: NotFound, ExitCode.WRONG_COMMAND: Invalid}
        raise kinds.get(ExitCode(process.returncode), Unavailable)(said or "it ended without a word")
    return last


def _tell(done_bytes: int, total_bytes: int) -> None:
    share = 100 * done_bytes // total_bytes if total_bytes else 0
    print(f"{share} % of {total_bytes / 1e6:,.0f} MB", file=sys.stderr, flush=True)


def _sizes(backup: WholeBackup) -> str:
    return f"{backup.size_bytes / 1e6:,.1f} MB, of which {backup.new_bytes / 1e6:,.1f} MB were copied"
