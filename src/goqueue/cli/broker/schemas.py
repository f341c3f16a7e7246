"""`goqueue-cli schema`: the schema registry."""

import sys
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import typer

from goqueue.cli.parts.arguments import Force
from goqueue.cli.parts.asking import confirm
from goqueue.cli.parts.calling import connect
from goqueue.cli.parts.completing import subject_names
from goqueue.cli.parts.exit_codes import WrongCommand
from goqueue.cli.parts.frame import FAILED, Output, done, invocation, noun
from goqueue.cli.parts.output import Columns, counted, show_done, show_fields, show_rows, show_value
from goqueue.client import GoQueue
from goqueue.client.calls.schemas import SchemaType
from goqueue.model.errors import Invalid

app = noun("Look at schemas, register them, and see beforehand whether one may follow.")

Subject = Annotated[
    str, typer.Argument(help="The subject, such as orders-value.", autocompletion=subject_names)
]
File = Annotated[Path, typer.Option("-f", "--file", help="The file of the schema; - is standard input.")]
Kind = Annotated[
    SchemaType | None,
    typer.Option("--type", case_sensitive=False, help="By the file's name when not given; else JSON."),
]
_KINDS: dict[str, SchemaType] = {".avsc": "AVRO", ".proto": "PROTOBUF", ".json": "JSON"}


class SubjectRow(msgspec.Struct):
    """A subject in a list."""

    subject: str
    versions: list[int]
    latest_id: int
    type: str
    compatibility: str


_COLUMNS: Columns = {
    "SUBJECT": "subject",
    "VERSIONS": "versions",
    "LATEST ID": "latest_id",
    "TYPE": "type",
    "COMPATIBILITY": "compatibility",
}
_FIELDS: Columns = {"Subject": "subject", "Version": "version", "Id": "id", "Type": "schemaType"}


@app.command("list")
def list_subjects(context: typer.Context) -> None:
    """List the subjects and their versions."""
    with connect(context) as queue:
        rows = [_row(queue, subject) for subject in sorted(queue.schemas.subjects())]
    show_rows(invocation(context).output, rows, _COLUMNS, empty="no schema is registered")


@app.command("get")
def get(
    context: typer.Context,
    subject: Subject,
    version: Annotated[str, typer.Option("--version", help="A number from 1 on, or latest.")] = "latest",
) -> None:
    """Show a version of a subject."""
    with connect(context) as queue:
        found = queue.schemas.get(subject, _version(version))
    output = invocation(context).output
    show_fields(output, found, _FIELDS)
    if output is Output.TABLE:
        print()
        print(found.schema)


@app.command("register")
def register(context: typer.Context, subject: Subject, file: File, kind: Kind = None) -> None:
    """Register a schema as the next version of a subject, unless it is registered there already."""
    text = _text(file)
    with connect(context) as queue:
        placed = queue.schemas.register(subject, text, schema_type=kind or _KINDS.get(file.suffix))
    text = f"{placed.subject} version {placed.version}, id {placed.id}"
    show_done(invocation(context).output, text, placed)


@app.command("check")
def check(
    context: typer.Context,
    subject: Subject,
    file: File,
    kind: Kind = None,
    version: Annotated[
        str | None, typer.Option("--version", help="Only against this one: a number, or latest.")
    ] = None,
) -> None:
    """Say whether a schema may follow what a subject has; exit code 1 and the broken rules if not."""
    text = _text(file)
    with connect(context) as queue:
        fit = queue.schemas.check(
            subject,
            text,
            schema_type=kind or _KINDS.get(file.suffix),
            version=None if version is None else _version(version),
        )
    output = invocation(context).output
    if output is not Output.TABLE:
        show_value(output, fit)
    elif fit.is_compatible:
        done(f"the schema may follow what {subject} has")
    else:
        for problem in fit.messages:
            print(problem)
    if not fit.is_compatible:
        print(f"Error: the schema may not follow what {subject} has", file=sys.stderr)
        raise typer.Exit(FAILED)


@app.command("delete")
def delete(
    context: typer.Context,
    subject: Subject,
    version: Annotated[str | None, typer.Option("--version", help="This version alone.")] = None,
    permanent: Annotated[
        bool, typer.Option("--permanent", help="For good; only what is deleted already.")
    ] = False,
    force: Force = False,
) -> None:
    """Delete a subject, or one of its versions."""
    what = f"{subject}" if version is None else f"{subject} version {version}"
    confirm(f"{what} will be deleted.", is_forced=force)
    with connect(context) as queue:
        gone = queue.schemas.delete(
            subject, None if version is None else _version(version), permanent=permanent
        )
    text = f"deleted: {counted(len(gone), 'version')} of {subject} ({', '.join(map(str, gone))})"
    show_done(invocation(context).output, text, {"subject": subject, "deleted": gone})


def _row(queue: GoQueue, subject: str) -> SubjectRow:
    latest = queue.schemas.get(subject)
    return SubjectRow(
        subject,
        queue.schemas.versions(subject),
        latest.id,
        latest.schema_type,
        queue.schemas.compatibility(subject),
    )


def _version(version: str) -> int | Literal["latest"]:
    if version == "latest":
        return "latest"
    if not (version.isascii() and version.isdigit()):
        raise WrongCommand(f"{version!r} is not a version: they count from 1, and the last is latest")
    return int(version)


def _text(file: Path) -> str:
    try:
        return sys.stdin.read() if file == Path("-") else file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise Invalid(f"{file} is no text: {error}") from error
