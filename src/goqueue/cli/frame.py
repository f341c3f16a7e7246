"""What all commands share: options that may stand anywhere, and one way to tell what went wrong.

A noun (`pipeline`, `job`, `topic` …) is one module with an `app = noun("…")`, hung into `cli/main.py`. Its
commands take a `typer.Context`, ask `invocation(context)` for the global options, and simply raise: an error
of the house becomes `Error: …` on standard error and exit code 1. A wrong command line is exit code 2.
"""

import copy
import sys
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import typer
from typer.core import TyperGroup, TyperOption

from goqueue.client.connection import Refused
from goqueue.model.errors import GoQueueError, Unavailable

FAILED = 1
GLOBAL_OPTIONS = ("server", "context_name", "output", "timeout_s")


class Output(StrEnum):
    """How an answer is printed."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """The global options of one call, as they were given."""

    server: str | None = None
    context_name: str | None = None
    output: Output = Output.TABLE
    timeout_s: int | None = None


def invocation(context: typer.Context) -> Invocation:
    """The global options that this command was called with."""
    taken = context.obj
    assert isinstance(taken, Invocation), "a command was called without the frame around it"
    return taken


class Commands(TyperGroup):
    """A group whose commands take the global options too, behind as well as before their own names."""

    # The library's own name for its context is private, so these two methods cannot spell their types out.
    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            _add_global_options(command, ctx.find_root().command)
        return command

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (GoQueueError, Refused, OSError) as problem:
            tell_error(problem)
            raise typer.Exit(FAILED) from problem


def noun(help_text: str) -> typer.Typer:
    """An app for the commands about one kind of thing."""
    return typer.Typer(cls=Commands, no_args_is_help=True, help=help_text, pretty_exceptions_enable=False)


def tell_error(problem: BaseException) -> None:
    """Say on standard error what went wrong, and what to do next where we know it."""
    print(f"Error: {problem}", file=sys.stderr)
    for kind, advice in _ADVICE:
        if isinstance(problem, kind):
            print(advice, file=sys.stderr)
            return


def done(text: str) -> None:
    """Say that something was done."""
    print(f"✓ {text}")


_ADVICE: tuple[tuple[type[BaseException], str], ...] = (
    (Unavailable, "Start a broker with `goqueue`, or name another one with --server or --context."),
)


def _add_global_options(command: Any, root: Any) -> None:
    known = {spelling for option in command.params for spelling in option.opts}
    for option in root.params:
        is_global = isinstance(option, TyperOption) and option.name in GLOBAL_OPTIONS
        # An option of the command's own that is spelt the same goes first, as people expect.
        if is_global and known.isdisjoint(option.opts):
            command.params.append(_as_given_late(option))


def _as_given_late(option: TyperOption) -> TyperOption:
    late = copy.copy(option)
    late.default = None
    late.envvar = None
    late.expose_value = False
    late.callback = _remember
    late.rich_help_panel = "Options of every command"
    return late


def _remember(ctx: Any, option: Any, value: Any) -> None:
    if value is not None:
        ctx.obj = replace(ctx.obj, **{option.name: value})
