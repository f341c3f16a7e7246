"""The frame of the commands: options anywhere, contexts, answers in three forms, errors that help."""

import json
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
import yaml
from typer.testing import CliRunner

from goqueue import __version__
from goqueue.cli.main import app
from goqueue.cli.parts.contexts import (
    Context,
    Contexts,
    Target,
    config_path,
    read_contexts,
    target,
    write_contexts,
)
from goqueue.cli.parts.exit_codes import MEANINGS, ExitCode, WrongCommand, exit_code
from goqueue.cli.parts.frame import Invocation
from goqueue.client.errors import NobodyAnswers, RefusedNotFound, RefusedUnavailable
from goqueue.model.errors import Invalid, NotFound

runner = CliRunner()


def printed(*arguments: str) -> str:
    result = runner.invoke(app, arguments)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def refused(*arguments: str, code: ExitCode = ExitCode.FAILED) -> str:
    result = runner.invoke(app, arguments)
    assert result.exit_code == code, result.stdout
    return result.stderr


def test_without_a_file_the_local_broker_is_meant() -> None:
    assert target(Invocation()) == Target("http://localhost:8080", 30)
    assert target(Invocation()).bootstrap == "localhost:8080"


def test_the_flag_goes_before_the_variable_and_the_variable_before_the_context(home: Path) -> None:
    context = Context(server="http://kept:1", timeout=5)
    write_contexts(config_path(), Contexts(current_context="here", contexts={"here": context}))
    environment = {"HOME": str(home), "GOQUEUE_SERVER": "http://variable:2"}

    assert target(Invocation()) == Target("http://kept:1", 5)
    assert target(Invocation(), environment).server == "http://variable:2"
    assert target(Invocation(server="http://flag:3", timeout_s=9), environment) == Target("http://flag:3", 9)


def test_a_context_that_was_asked_for_must_be_there(home: Path) -> None:
    with pytest.raises(NotFound, match="no context nowhere"):
        target(Invocation(context_name="nowhere"))
    with pytest.raises(NotFound, match="no context nowhere"):
        target(Invocation(), {"HOME": str(home), "GOQUEUE_CONTEXT": "nowhere"})


def test_a_current_context_that_is_gone_does_not_become_the_local_broker(home: Path) -> None:
    write_contexts(config_path(), Contexts(current_context="prod", contexts={}))

    with pytest.raises(NotFound, match="no context prod"):
        target(Invocation())
    assert target(Invocation(server="http://a:1")).server == "http://a:1"


def test_contexts_are_kept_for_their_owner_alone(home: Path) -> None:
    printed("config", "set-context", "prod", "--server", "http://prod:8080", "--api-key", "secret")
    printed("config", "use-context", "prod")

    path = home / ".goqueue" / "config.yaml"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    kept = yaml.safe_load(path.read_text())
    assert kept["current-context"] == "prod"
    assert kept["contexts"]["prod"] == {"server": "http://prod:8080", "api-key": "secret"}
    assert "secret" not in printed("config", "view")


def test_a_context_is_changed_in_what_is_given_and_forgotten() -> None:
    printed("config", "set-context", "prod", "--server", "http://prod:8080", "--timeout", "7")
    printed("config", "set-context", "prod", "--api-key", "new")
    changed = read_contexts(config_path()).contexts["prod"]
    assert (changed.server, changed.timeout, changed.api_key) == ("http://prod:8080", 7, "new")

    printed("config", "delete-context", "prod")

    assert "no context prod" in refused("config", "use-context", "prod", code=ExitCode.NOT_FOUND)


def test_a_new_context_needs_a_server_that_is_an_address() -> None:
    assert "--server" in refused("config", "set-context", "prod")
    assert "not an address" in refused("config", "set-context", "prod", "--server", "nowhere")


def test_a_file_that_cannot_be_understood_is_told_with_its_name(home: Path) -> None:
    config_path().parent.mkdir()
    config_path().write_text("contexts: [1, 2]\n")

    with pytest.raises(Invalid, match=r"config\.yaml cannot be understood"):
        read_contexts(config_path())


def test_an_answer_is_a_table_json_or_yaml_wherever_the_option_stands() -> None:
    row = {"name": "local", "server": "http://localhost:8080", "current": True}

    assert printed("config", "get-contexts").split() == [
        "NAME",
        "SERVER",
        "CURRENT",
        "local",
        "http://localhost:8080",
        "yes",
    ]
    assert json.loads(printed("-o", "json", "config", "get-contexts")) == [row]
    assert json.loads(printed("config", "-o", "json", "get-contexts")) == [row]
    assert yaml.safe_load(printed("config", "get-contexts", "--output=yaml")) == [row]


def test_a_commands_own_option_goes_before_a_global_one_of_the_same_name() -> None:
    printed("config", "set-context", "prod", "--server", "http://prod:8080", "--timeout", "7")

    assert read_contexts(config_path()).contexts["prod"].timeout == 7


def test_an_error_is_one_line_and_what_to_do_next() -> None:
    told = refused("config", "use-context", "nowhere", code=ExitCode.NOT_FOUND)

    assert told.startswith("Error: there is no context nowhere")
    assert "set-context" in told
    assert "Traceback" not in told


def test_a_wrong_command_line_is_told_apart_by_its_exit_code() -> None:
    result = runner.invoke(app, ["config", "get-context"], prog_name="goqueue-cli")

    assert result.exit_code == 2
    assert result.stderr.startswith("Error: No such command 'get-context'")
    assert "get-contexts" in result.stderr
    assert result.stderr.endswith("`goqueue-cli config --help` tells what there is.\n")


def test_a_wrong_option_is_told_before_and_behind_a_command() -> None:
    for words in (
        ["--wrong"],
        ["topic", "list", "--wrong"],
        ["topic", "create"],
        ["-o", "xml", "topic", "list"],
    ):
        result = runner.invoke(app, words, prog_name="goqueue-cli")

        assert result.exit_code == 2
        assert result.stderr.startswith("Error: ")
        assert result.stdout == ""


def test_the_key_is_the_variable_s_or_that_of_the_context_and_never_shown_elsewhere(home: Path) -> None:
    context = Context(server="http://kept:1", api_key="kept")
    write_contexts(config_path(), Contexts(current_context="here", contexts={"here": context}))
    environment = {"HOME": str(home), "GOQUEUE_API_KEY": "variable"}

    assert target(Invocation()).api_key == "kept"
    assert target(Invocation(context_name="here")).api_key == "kept"
    assert target(Invocation(), environment).api_key == "variable"
    assert target(Invocation(server="http://another:2")).api_key is None
    assert target(Invocation(server="http://another:2", context_name="here")).api_key == "kept"


def test_the_key_is_shown_and_an_answer_of_something_else_than_a_broker_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    keys: list[str | None] = []
    monkeypatch.setenv("GOQUEUE_API_KEY", "secret")

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            keys.append(self.headers["X-API-Key"])
            self.send_response(200)
            self.send_header("content-length", "6")
            self.end_headers()
            self.wfile.write(b"<html>")

        def log_message(self, format: str, *arguments: object) -> None:
            """Tests are quiet."""

    with HTTPServer(("127.0.0.1", 0), Page) as server:
        Thread(target=server.handle_request).start()
        told = refused("-s", f"127.0.0.1:{server.server_port}", "topic", "list")

    assert keys == ["secret"]
    assert "not a broker's" in told


def test_every_family_of_errors_has_its_exit_code() -> None:
    for problem, code in (
        (WrongCommand("x"), 2),
        (NotFound("x"), 3),
        (RefusedNotFound("x", code="topic_not_found", status=404), 3),
        (NobodyAnswers("x"), 4),
        (RefusedUnavailable("x", code="storage_full", status=507), 1),
        (Invalid("x"), 1),
        (OSError("x"), 1),
        (BrokenPipeError(), 141),
    ):
        assert exit_code(problem) == code
    assert set(MEANINGS) == set(ExitCode)


def test_a_broker_that_is_not_there_is_told_apart_by_its_exit_code() -> None:
    told = refused("-s", "127.0.0.1:1", "topic", "list", code=ExitCode.UNREACHABLE)

    assert told.startswith("Error: no node answers at 127.0.0.1:1")
    assert told.endswith("or say where it is with --server.\n")


def test_the_version_is_told_without_a_broker() -> None:
    assert printed("--version") == f"goqueue {__version__}\n"


def test_the_command_line_starts_without_spark() -> None:
    heavy = "{'pyspark', 'pyarrow', 'numpy', 'pandas', 'pyiceberg', 'matplotlib'}"
    code = f"import sys, goqueue.cli.main; sys.exit(', '.join({heavy} & set(sys.modules)) or 0)"

    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert ran.returncode == 0, ran.stderr
