"""A question before something is gone for good."""

import sys

import typer

from goqueue.cli.parts.exit_codes import WrongCommand
from goqueue.model.errors import Invalid


def confirm(question: str, *, is_forced: bool) -> None:
    """Go on only if whoever sits at the terminal types yes, or said --force."""
    if is_forced:
        return
    if not sys.stdin.isatty():
        raise WrongCommand("nothing was changed: there is no terminal to ask on, so say --force")
    # Asked on standard error: an answer on standard output may be on its way to a file.
    if typer.prompt(f"{question} Type yes to go on", default="no", show_default=False, err=True) != "yes":
        raise Invalid("nothing was changed: only yes counts as yes")
