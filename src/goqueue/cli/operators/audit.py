"""`goqueue-admin audit`: whether anybody has touched what was written down of who did what."""

import subprocess
import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from goqueue.cli.operators.call import connect
from goqueue.cli.parts.exit_codes import ExitCode
from goqueue.cli.parts.frame import Output, invocation, noun
from goqueue.cli.parts.output import counted, show_done, show_fields
from goqueue.model.errors import NotFound, Unavailable

app = noun("Look at the audit log: who was refused, and who changed what.")


class Checked(msgspec.Struct):
    """What was found."""

    files: int
    lines: int
    problems: list[str]


_TOPIC = "__audit"
_decoder = msgspec.json.Decoder(Checked)


@app.command("verify")
def verify(
    context: typer.Context,
    folder: Annotated[
        Path | None, typer.Argument(help="The data folder of a node, which may be running; else the topic.")
    ] = None,
) -> None:
    """See that no line of the audit log was changed or taken out. Exit code 1 if one was.

    Without a folder the topic `__audit` is read, with the lines of all nodes.
    """
    lines = None
    if folder is None:
        with connect(context) as queue:
            lines = b"".join((message.value or b"") + b"\n" for message in queue.read(_TOPIC))
    command = [sys.executable, "-m", "goqueue.node.audit_check", "-" if folder is None else str(folder)]
    ended = subprocess.run(command, capture_output=True, check=False, input=lines)
    if not ended.stdout:
        text = ended.stderr.decode().strip().rpartition("\n")[2] or "the check ended without a word"
        raise (NotFound if ended.returncode == ExitCode.NOT_FOUND else Unavailable)(text)
    found = _decoder.decode(ended.stdout)
    output = invocation(context).output
    if output is not Output.TABLE:
        show_fields(output, found, {})
    elif not found.problems:
        of = "file" if folder is not None else "chain"
        where = f"{counted(found.lines, 'line')} in {counted(found.files, of)}"
        show_done(output, f"{where}: nobody has touched them", found)
    for problem in found.problems if output is Output.TABLE else ():
        print(problem)
    if found.problems:
        raise typer.Exit(ExitCode.FAILED)
