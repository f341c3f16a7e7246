"""`goqueue-admin repair`: look through the data folder of a broker that is stopped, and repair it.

The work is the server's (`goqueue.node.repair`), in a process of its own; here it is shown.
"""

import subprocess
import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from goqueue.cli.parts.exit_codes import ExitCode
from goqueue.cli.parts.frame import Output, invocation
from goqueue.cli.parts.output import Columns, Row, counted, show_done, show_fields, show_rows
from goqueue.model.errors import NotFound, Unavailable


class RepairedPartition(msgspec.Struct):
    """A partition that is not as it should be."""

    partition: str
    is_journal: bool
    problem: str
    lost: list[tuple[int, int]]
    lost_offsets: int
    bad_bytes: int
    torn_bytes: int
    end_offset: int
    is_repaired: bool


class Repair(msgspec.Struct):
    """What was found, and what was done."""

    partitions_looked_at: int
    damaged: list[RepairedPartition]
    derived: list[str]
    unknown_topics: list[str]
    kept_in: str
    commit_log: str
    is_commit_log_repaired: bool


_decoder = msgspec.json.Decoder(Repair)
_COLUMNS: Columns = {
    "PARTITION": "partition",
    "PROBLEM": "problem",
    "LOST OFFSETS": lambda row: _runs(row),
    "BAD BYTES": "bad_bytes",
    "REPAIRED": lambda row: "yes" if row["is_repaired"] else "no",
}


def repair(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(help="The data folder. No broker may work on it.")],
    apply: Annotated[
        bool, typer.Option("--apply", help="Repair it. Without this nothing is changed.")
    ] = False,
    no_backup: Annotated[
        bool, typer.Option("--no-backup", help="Do not keep what is replaced in FOLDER/repair.")
    ] = False,
) -> None:
    """Look through a data folder for what is lost or has gone bad, and with --apply make the rest usable.

    Exit code 0: all is well, or is so again; 1: something is damaged still.
    """
    command = [sys.executable, "-m", "goqueue.node.repair", str(folder)]
    command += ["--apply"] * apply + ["--no-backup"] * no_backup
    ended = subprocess.run(command, capture_output=True, check=False)
    if not ended.stdout:
        text = ended.stderr.decode().strip().rpartition("\n")[2] or "the repair ended without a word"
        raise (NotFound if ended.returncode == ExitCode.NOT_FOUND else Unavailable)(text)
    found = _decoder.decode(ended.stdout)
    output = invocation(context).output
    if output is Output.TABLE:
        _tell(found, is_applied=apply)
    else:
        show_fields(output, found, {})
    if ended.returncode:
        raise typer.Exit(ended.returncode)


def _tell(found: Repair, *, is_applied: bool) -> None:
    if found.commit_log:
        print(found.commit_log + ("; the next start begins a new one" if is_applied else ""))
    if not found.damaged:
        text = f"{counted(found.partitions_looked_at, 'partition')} looked at: nothing is lost"
        show_done(Output.TABLE, text, found)
    else:
        show_rows(Output.TABLE, found.damaged, _COLUMNS)
    for path in found.derived:
        print(f"{path} is spoilt; the next start makes it anew")
    for topic in found.unknown_topics:
        print(f"logs/{topic} belongs to no known topic; create {topic} to have its messages again")
    is_damaged = bool(found.damaged or found.commit_log)
    if is_damaged and not is_applied:
        print("nothing was changed; repair with --apply")
    elif is_damaged and found.kept_in:
        print(f"what was replaced is kept in {found.kept_in}")
    for each in found.damaged:
        if is_applied and not each.is_repaired:
            print(f"{each.partition}: start the broker, then goqueue-admin partition accept {each.partition}")


def _runs(row: Row) -> str:
    lost = row["lost"]
    assert isinstance(lost, list), "runs come as a list"
    return ", ".join(f"{first}-{end - 1}" for first, end in lost) or "-"
