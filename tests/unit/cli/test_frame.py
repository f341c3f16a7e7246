"""The frame of the commands: options anywhere, contexts, answers in three forms, errors that help."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from goqueue.cli.contexts import Context, Contexts, Target, config_path, read_contexts, target, write_contexts
from goqueue.cli.frame import Invocation
from goqueue.cli.main import app
from goqueue.model.errors import Invalid, NotFound

runner = CliRunner()


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Each test has a home of its own, and none of the user's variables."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("GOQUEUE_SERVER", raising=False)
    monkeypatch.delenv("GOQUEUE_CONTEXT", raising=False)
    return tmp_path


def printed(*arguments: str) -> str:
    result = runner.invoke(app, arguments)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def refused(*arguments: str) -> str:
    result = runner.invoke(app, arguments)
    assert result.exit_code == 1, result.stdout
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

    assert "no context prod" in refused("config", "use-context", "prod")


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
    told = refused("config", "use-context", "nowhere")

    assert told.startswith("Error: there is no context nowhere")
    assert "set-context" in told
    assert "Traceback" not in told


def test_a_wrong_command_line_is_told_apart_by_its_exit_code() -> None:
    result = runner.invoke(app, ["config", "get-context"])

    assert result.exit_code == 2
    assert "get-contexts" in result.stderr


def test_the_version_is_printed() -> None:
    assert printed("version").startswith("goqueue-cli 0.")


def test_the_command_line_starts_without_spark() -> None:
    heavy = "{'pyspark', 'pyarrow', 'numpy', 'pandas', 'pyiceberg', 'matplotlib'}"
    code = f"import sys, goqueue.cli.main; sys.exit(', '.join({heavy} & set(sys.modules)) or 0)"

    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert ran.returncode == 0, ran.stderr
