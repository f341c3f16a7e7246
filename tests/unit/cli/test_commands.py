"""The commands there are: all that the first edition had, and what it promised and lacked."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from goqueue.cli.main import app
from goqueue.cli.parts.exit_codes import MEANINGS, ExitCode

GLOBAL = {"-s", "--server", "-c", "--context", "-o", "--output", "--timeout"}
CONTRACT = {
    "topic list": "",
    "topic create": "-p --partitions -r --retention",
    "topic describe": "",
    "topic delete": "-f --force",
    "produce": "-m --message -k --key -p --partition -d --delay --deliver-at --priority -f --file",
    "consume": "-p --partition --offset -n --limit -f --follow --from-beginning --from-latest",
    "group list": "",
    "group describe": "",
    "group delete": "-f --force",
    "group offsets": "",
    "group reset-offsets": "--topic -p --partition --to-earliest --to-latest --to-timestamp --dry-run",
    "trace list": "-n --limit",
    "trace get": "",
    "trace search": "--topic --partition --consumer-group --start --end --status -n --limit",
    "trace stats": "",
    "cluster info": "",
    "cluster health": "",
    "cluster nodes": "",
    "config view": "",
    "config get-contexts": "",
    "config use-context": "",
    "config delete-context": "",
    "config set-context": "--server --api-key --timeout --ca-file --cert-file --key-file",
    "version": "",
}
PROMISED = {
    "consume": "--group --from-time --to-time",
    "health": "",
    "trace story": "",
    "dlq list": "",
    "dlq redrive": "--dry-run --rate",
    "delay list": "",
    "delay cancel": "",
    "group lag": "--watch",
    "top": "--once -n",
}


def all_commands(group: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every command by the words one types. The library's own types for them are private."""
    context = typer.Context(group, info_name="goqueue-cli")
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if hasattr(command, "list_commands"):
            yield from all_commands(command, f"{path}{name} ")
        else:
            yield f"{path}{name}", command


COMMANDS = dict(all_commands(typer.main.get_command(app)))


@pytest.mark.parametrize("wanted", [CONTRACT, PROMISED])
def test_every_command_of_the_contract_is_there_with_its_options(wanted: dict[str, str]) -> None:
    for words, options in wanted.items():
        known = {spelling for option in COMMANDS[words].params for spelling in option.opts}
        assert set(options.split()) <= known, words


def test_every_command_takes_the_global_options_and_tells_what_it_does() -> None:
    for words, command in COMMANDS.items():
        known = {spelling for option in command.params for spelling in option.opts}
        missing = {option for option in GLOBAL if option.startswith("--")} - known
        assert not missing, words
        assert command.help, words
        assert all(option.help for option in command.params if option.param_type_name == "option"), words


def test_every_command_and_every_exit_code_is_documented() -> None:
    page = (Path(__file__).parents[3] / "docs" / "cli.md").read_text(encoding="utf-8")

    undocumented = [
        words for words in COMMANDS if f"`{words}" not in page and f"goqueue-cli {words}" not in page
    ]
    assert undocumented == []
    for code, meaning in MEANINGS.items():
        assert f"| {code.value} | {meaning} |" in page


def test_help_is_there_for_every_noun() -> None:
    told = CliRunner().invoke(app, ["topic", "create", "--help"])

    assert told.exit_code == ExitCode.OK
    assert "--partitions" in told.stdout
    assert CliRunner().invoke(app, []).exit_code == ExitCode.WRONG_COMMAND
