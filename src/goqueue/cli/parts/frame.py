"""What all commands share: options that may stand anywhere, and one way to tell what went wrong.

A noun (`pipeline`, `job`, `topic` …) is one module with an `app = noun("…")`, hung into `cli/main.py`. Its
commands take a `typer.Context`, ask `invocation(context)` for the global options, and simply raise: an error
of the house becomes `Error: …` on standard error and an exit code of `cli/parts/exit_codes.py`.
"""

import copy
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from io import TextIOWrapper
from typing import Annotated, Any

import typer
from typer.core import TyperGroup, TyperOption

from goqueue import __version__
from goqueue.cli.parts.exit_codes import ExitCode, exit_code
from goqueue.client.errors import NobodyAnswers
from goqueue.model.errors import GoQueueError, Invalid

FAILED = ExitCode.FAILED
GLOBAL_OPTIONS = (
    "server",
    "context_name",
    "output",
    "timeout_s",
    "api_key",
    "ca_file",
    "cert_file",
    "key_file",
    "insecure_skip_verify",
)
CA_FILE_HELP = "Who vouches for brokers at https://, in PEM form; else whom the system trusts."
CERT_FILE_HELP = "The certificate to show to the broker."
KEY_FILE_HELP = "The key of that certificate, where it is not in the same file."
SKIP_VERIFY_HELP = "Take any certificate at https://: nobody then knows who answers."


class Output(StrEnum):
    """How an answer is printed."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"
    YML = "yml"


OutputOption = Annotated[
    Output, typer.Option("-o", "--output", case_sensitive=False, help="How answers are printed.")
]
TimeoutOption = Annotated[
    int | None, typer.Option("--timeout", min=1, help="Seconds that a request may take (default 30).")
]
SkipVerifyOption = Annotated[bool | None, typer.Option("--insecure-skip-verify", help=SKIP_VERIFY_HELP)]


def _tell_version(is_asked_for: bool) -> None:
    if is_asked_for:
        print(f"goqueue {__version__}")
        raise typer.Exit


VersionOption = Annotated[
    bool,
    typer.Option("--version", is_eager=True, callback=_tell_version, help="Print the version and end."),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """The global options of one call, as they were given."""

    server: str | None = None
    context_name: str | None = None
    output: Output = Output.TABLE
    timeout_s: int | None = None
    api_key: str | None = None
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    insecure_skip_verify: bool | None = None


def invocation(context: typer.Context) -> Invocation:
    """The global options that this command was called with."""
    taken = context.obj
    assert isinstance(taken, Invocation), "a command was called without the frame around it"
    return taken


class Commands(TyperGroup):
    """A group whose commands take the global options too, behind as well as before their own names."""

    # The library's own names for these things are private, so the methods cannot spell their types out.
    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command line and end the process; a wrong one is told like any other error."""
        try:
            ended = super().main(args, prog_name, complete_var, False, windows_expand_args, **extra)
        except typer.TyperException as wrong:
            _tell_wrong_command(wrong)
            sys.exit(wrong.exit_code)
        except typer.Abort as problem:
            # Ctrl-C or Ctrl-D where a question was asked.
            tell_error(Invalid("nothing was changed: there was no answer"))
            raise SystemExit(ExitCode.INTERRUPTED) from problem
        sys.exit(ended if isinstance(ended, int) else ExitCode.OK)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            _add_global_options(command, ctx.find_root().command)
        return command

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as problem:
            _forget_output()
            raise typer.Exit(ExitCode.PIPE_CLOSED) from problem
        except (GoQueueError, OSError) as problem:
            tell_error(problem)
            raise typer.Exit(exit_code(problem)) from problem


def noun(help_text: str, cls: type[Commands] = Commands) -> typer.Typer:
    """An app for the commands about one kind of thing."""
    return typer.Typer(cls=cls, no_args_is_help=True, help=help_text, pretty_exceptions_enable=False)


def run(app: typer.Typer) -> None:
    """Run one command line and end with its exit code."""
    # Who closes them, as `>&-` does, wants to hear nothing.
    sys.stdout = sys.stdout or os.fdopen(_nowhere(), "w")
    sys.stderr = sys.stderr or os.fdopen(_nowhere(), "w")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # A terminal that knows no check mark gets it spelt out.
            stream.reconfigure(errors="backslashreplace")
    code: object = ExitCode.OK
    try:
        app()
    except SystemExit as ended:
        code = ended.code
    try:
        sys.stdout.flush()
    except OSError as problem:
        # What was printed last got nowhere: the pipe is closed, or the disk is full.
        if not code and not isinstance(problem, BrokenPipeError):
            tell_error(problem)
        code = code or exit_code(problem)
        _forget_output()
    sys.exit(code if isinstance(code, int) else ExitCode.FAILED)


def tell_error(problem: BaseException) -> None:
    """Say on standard error what went wrong, and what to do next where we know it."""
    print(f"Error: {problem}", file=sys.stderr)
    advice = _WHERE if isinstance(problem, NobodyAnswers) else _ADVICE.get(getattr(problem, "code", ""))
    if advice:
        print(advice, file=sys.stderr)


def done(text: str) -> None:
    """Say that something was done."""
    print(f"✓ {text}")


def _tell_wrong_command(wrong: typer.TyperException) -> None:
    text = wrong.format_message()
    # Without one, help has been printed in its place.
    if text:
        print(f"Error: {text}", file=sys.stderr)
        context = getattr(wrong, "ctx", None)
        if context is not None:
            print(f"`{context.command_path} --help` tells what there is.", file=sys.stderr)


_WHERE = "Start a broker with `goqueue`, or say where it is with --server."
_ADVICE = {
    "topic_not_found": "`goqueue-cli topic list` shows what there is; `goqueue-cli topic create` makes one.",
    "partition_not_found": "`goqueue-cli topic describe` shows the partitions of a topic.",
    "group_not_found": "`goqueue-cli group list` shows what there is.",
    "group_not_empty": "Stop its consumers first; a reset of offsets can also be forced with --force.",
    "subject_not_found": "`goqueue-cli schema list` shows what there is.",
    "schedule_not_found": "`goqueue-cli schedule list` shows what there is.",
    "delayed_not_found": "`goqueue-cli delay list` shows what still waits.",
    "tenant_not_found": "`goqueue-admin tenant list` shows what there is.",
    "topic_suspended": "`goqueue-admin tenant activate` lets its tenant work again.",
    "group_suspended": "`goqueue-admin tenant activate` lets its tenant work again.",
    "quota_exceeded": "`goqueue-admin quota set` changes what a tenant may use.",
    "storage_quota_exceeded": "Shorten retention, delete topics, or allow more: `goqueue-admin quota set`.",
    "storage_full": "Free space on the broker's disk, or shorten the retention of its topics.",
    "401": "Show a key: GOQUEUE_API_KEY, or `goqueue-cli config set-context NAME --api-key KEY`.",
}
"""By the code of the problem. The text of most errors says it already."""


def _forget_output() -> None:
    """Write to nowhere from here on: the interpreter flushes once more at its end, and would complain."""
    os.dup2(_nowhere(), sys.stdout.fileno())


def _nowhere() -> int:
    return os.open(os.devnull, os.O_WRONLY)


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
        # While a shell completes a line nothing has been called yet, and so nothing taken.
        ctx.obj = replace(ctx.obj or Invocation(), **{option.name: value})
