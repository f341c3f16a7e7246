"""Commands typed to a broker of the tests."""

import json
from typing import TypeVar

import msgspec
import typer
import yaml
from typer.testing import CliRunner, Result

from goqueue.cli.main import app
from goqueue.cli.parts.exit_codes import ExitCode

T = TypeVar("T")


class CommandLine:
    """Types commands to one broker."""

    def __init__(self, url: str, commands: typer.Typer = app) -> None:
        self.url = url
        self._commands = commands

    def ends(self, code: ExitCode, *words: str, given: str | bytes | None = None) -> Result:
        """Run a command that ends with this code, and never with a traceback."""
        result = CliRunner().invoke(self._commands, ["-s", self.url, *words], input=given)
        assert result.exit_code == code, f"{result.exit_code}: {result.stdout}{result.stderr}"
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result

    def printed(self, *words: str, given: str | bytes | None = None) -> str:
        """What a command that goes well prints."""
        return self.ends(ExitCode.OK, *words, given=given).stdout

    def rows(self, *words: str) -> list[list[str]]:
        """The words of each line of a table, its headings first."""
        return [line.split() for line in self.printed(*words).splitlines()]

    def told(self, kind: type[T], *words: str, given: str | bytes | None = None) -> T:
        """What a command tells programs, as JSON."""
        return msgspec.json.decode(self.printed(*words, "-o", "json", given=given), type=kind)

    def told_alike(self, kind: type[T], *words: str) -> T:
        """The same of a command that only looks: YAML must say what JSON says."""
        told = self.printed(*words, "-o", "json")
        assert yaml.safe_load(self.printed(*words, "-o", "yml")) == json.loads(told)
        return msgspec.json.decode(told, type=kind)
