"""Answers as a table for people, or as JSON or YAML for programs."""

import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

import msgspec
import yaml
from rich.console import Console
from rich.table import Table
from rich.text import Text

from goqueue.cli.parts.frame import Output, done
from goqueue.cli.parts.times import time_text

Row = Mapping[str, object]
Columns = Mapping[str, str | Callable[[Row], object]]
"""The heading of each column, and the field of a row that stands in it, or what makes its text of the row."""
_WIDTH_MAX = 1_000
_UNITS = ("B", "KB", "MB", "GB", "TB", "PB")


def show_rows(output: Output, rows: Sequence[object], columns: Columns, *, empty: str = "") -> None:
    """Print rows: all their fields for programs, the columns for people."""
    if output is not Output.TABLE:
        show_value(output, list(rows))
        return
    if not rows:
        print(empty or "nothing to show")
        return
    show_table(rows_table(rows, columns))


def rows_table(rows: Sequence[object], columns: Columns) -> Table:
    """Rows as a table."""
    table = plain_table(*columns)
    for row in map(fields_of, rows):
        # As plain text: a value with square brackets in it is no mark-up of ours.
        table.add_row(*map(Text, cells(row, columns)))
    return table


def show_fields(output: Output, value: object, fields: Columns) -> None:
    """Print one thing: all of it for programs, a line a field for people."""
    if output is not Output.TABLE:
        show_value(output, value)
        return
    width = max(map(len, fields)) + 1
    texts = cells(fields_of(value), fields)
    for heading, text in zip(fields, texts, strict=True):
        print(f"{heading + ':':{width}} {text}")


def show_done(output: Output, text: str, value: object) -> None:
    """Say that something was done: a line for people, what came of it for programs."""
    if output is Output.TABLE:
        done(text)
    else:
        show_value(output, value)


def show_value(output: Output, value: object) -> None:
    """Print one value for programs; as YAML, which people can read too, when a table was asked for."""
    plain = msgspec.to_builtins(value)
    if output is Output.JSON:
        print(msgspec.json.format(msgspec.json.encode(plain), indent=2).decode())
    else:
        print(yaml.safe_dump(plain, indent=2, sort_keys=False, allow_unicode=True), end="")


def show_line(output: Output, value: object) -> None:
    """Print one of many values that follow each other: a line of JSON, or a document of YAML.

    Whoever prints the last of those that came together flushes them.
    """
    if output is Output.JSON:
        print(msgspec.json.encode(value).decode())
    else:
        print("---")
        show_value(output, value)


def is_screen(output: Output) -> bool:
    """Whether somebody sits there who can be shown a picture that changes."""
    return output is Output.TABLE and sys.stdout.isatty()


def show_table(table: Table) -> None:
    """Print a table. Only a terminal has an edge; elsewhere a row is a line, however long, and no longer."""
    if sys.stdout.isatty():
        Console(highlight=False).print(table)
        return
    console = Console(highlight=False, width=_WIDTH_MAX)
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        print(line.rstrip())


def plain_table(*headings: str) -> Table:
    """A table without lines, so that it can be cut and searched with the usual tools."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        # Long cells are folded and never cut short: a name that is half there helps nobody.
        table.add_column(heading, overflow="fold")
    return table


def fields_of(value: object) -> Row:
    """The fields of a value by name. Times stay times, so that a table can show them its own way."""
    plain: Row = msgspec.to_builtins(value, builtin_types=(datetime,))
    return plain


def cells(row: Row, columns: Columns) -> list[str]:
    """What stands in the columns for a row."""
    return [cell(field(row) if callable(field) else row.get(field)) for field in columns.values()]


def cell(value: object) -> str:
    """A value as people read it in a table."""
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return time_text(value)
    if isinstance(value, list | tuple):
        return ", ".join(map(cell, value)) or "-"
    return printable(str(value))


def printable(text: str) -> str:
    """Text in one line, whoever wrote it: what would move a terminal's cursor is spelt out."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def counted(count: int, thing: str) -> str:
    """So many of a thing: 1 message, 1,234 messages."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def as_size(field: str) -> Callable[[Row], object]:
    """A column of bytes, shown as people read sizes."""

    def show(row: Row) -> object:
        value = row.get(field)
        return size_text(value) if isinstance(value, int) else value

    return show


def size_text(size_bytes: int) -> str:
    """Bytes for people, in steps of 1024: 512 B, 1.5 KB."""
    if size_bytes < 1024:
        return f"{size_bytes} B"
    size, unit = float(size_bytes), 0
    # 1023.95 KB would be shown as 1024.0 KB, which nobody writes.
    while round(size, 1) >= 1024 and unit < len(_UNITS) - 1:
        size, unit = size / 1024, unit + 1
    return f"{size:.1f} {_UNITS[unit]}"
