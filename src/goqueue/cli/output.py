"""Answers as a table for people, or as JSON or YAML for programs."""

import sys
from collections.abc import Mapping, Sequence

import msgspec
import yaml
from rich.console import Console
from rich.table import Table

from goqueue.cli.frame import Output

Columns = Mapping[str, str]
"""The heading of each column, and the field of a row that stands in it."""
_WIDTH_MAX = 1_000


def show_rows(output: Output, rows: Sequence[object], columns: Columns, *, empty: str = "") -> None:
    """Print rows: all their fields for programs, the columns for people."""
    plain = [msgspec.to_builtins(row) for row in rows]
    if output is not Output.TABLE:
        show_value(output, plain)
        return
    if not plain:
        print(empty or "nothing to show")
        return
    table = plain_table(*columns)
    for row in plain:
        table.add_row(*(cell(row.get(field)) for field in columns.values()))
    # Only a terminal has an edge; what is piped elsewhere has a line a row, however long.
    Console(highlight=False, width=None if sys.stdout.isatty() else _WIDTH_MAX).print(table)


def show_value(output: Output, value: object) -> None:
    """Print one value for programs; as YAML, which people can read too, when a table was asked for."""
    plain = msgspec.to_builtins(value)
    if output is Output.JSON:
        print(msgspec.json.format(msgspec.json.encode(plain), indent=2).decode())
    else:
        print(yaml.safe_dump(plain, indent=2, sort_keys=False, allow_unicode=True), end="")


def plain_table(*headings: str) -> Table:
    """A table without lines, so that it can be cut and searched with the usual tools."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        # Long cells are folded and never cut short: a name that is half there helps nobody.
        table.add_column(heading, overflow="fold")
    return table


def cell(value: object) -> str:
    """A value as people read it in a table."""
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(cell, value)) or "-"
    return str(value)
