"""Commands to a broker at https://: whom they trust, as typed, as a variable, and as a context keeps it."""

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
import yaml

from goqueue.cli.admin import app as admin_app
from goqueue.cli.main import app
from goqueue.cli.parts.contexts import Context, Contexts, config_path, target, write_contexts
from goqueue.cli.parts.exit_codes import ExitCode
from goqueue.cli.parts.frame import Invocation
from goqueue.client.tls import Trust
from goqueue.edge.tls import ClientAuth
from tests.doors.certificates import Certificates, tls_listener
from tests.doors.http.running_door import RunningDoor
from tests.unit.cli.command_line import CommandLine

KEY = "a key for the broker"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory, certificates: Certificates) -> Iterator[RunningDoor]:
    """A door that speaks TLS and asks for a certificate."""
    listener = tls_listener(certificates.shown(ClientAuth.REQUIRE))
    with RunningDoor(tmp_path_factory.mktemp("cli-tls"), listener=listener) as running:
        yield running


@pytest.fixture
def files(certificates: Certificates) -> dict[str, str]:
    cert_file, key_file = certificates.of("alice")
    return {
        "--ca-file": str(certificates.ca_file),
        "--cert-file": str(cert_file),
        "--key-file": str(key_file),
    }


def typed(files: dict[str, str]) -> list[str]:
    return [word for pair in files.items() for word in pair]


@pytest.mark.parametrize("behind", [False, True])
def test_files_are_typed_before_or_behind_a_command(
    locked: RunningDoor, files: dict[str, str], behind: bool
) -> None:
    command = ["cluster", "info"]
    words = [*command, *typed(files)] if behind else [*typed(files), *command]

    assert "Version" in CommandLine(locked.url).printed(*words)


@pytest.mark.parametrize(("commands", "prefix"), [(app, "GOQUEUE"), (admin_app, "GOQUEUE_ADMIN")])
def test_files_are_named_by_variables(
    locked: RunningDoor,
    files: dict[str, str],
    commands: typer.Typer,
    prefix: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for flag, file in files.items():
        monkeypatch.setenv(f"{prefix}{flag.removeprefix('-').replace('-', '_').upper()}", file)

    assert "pass, up for" in CommandLine(locked.url, commands).printed("health")


def test_operators_type_them_too(locked: RunningDoor, files: dict[str, str]) -> None:
    line = CommandLine(locked.url, admin_app)

    assert "pass, up for" in line.printed("health", *typed(files))
    line.ends(ExitCode.FAILED, "health")


def test_a_context_keeps_them_for_its_owner_alone(
    locked: RunningDoor, files: dict[str, str], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(files["--ca-file"]).parent)
    names = {flag: Path(file).name for flag, file in files.items()}
    line = CommandLine(locked.url)
    line.printed("config", "set-context", "prod", "--server", locked.url, "--api-key", KEY, *typed(names))
    monkeypatch.chdir(home)

    kept = yaml.safe_load(config_path().read_text())["contexts"]["prod"]
    assert {flag: kept[flag.removeprefix("--")] for flag in files} == files
    assert stat.S_IMODE(config_path().stat().st_mode) == 0o600
    assert "no topic" in line.printed("topic", "list", "-c", "prod")
    assert KEY not in line.printed("config", "view")
    assert files["--ca-file"] in line.printed("config", "view", "-o", "json")


def test_another_server_is_not_trusted_as_the_context_trusts_its_own() -> None:
    kept = Context(server="https://a:1", ca_file="/ca", cert_file="/me", key_file="/key")
    write_contexts(config_path(), Contexts(current_context="prod", contexts={"prod": kept}))

    assert target(Invocation(), {}).trust == Trust(ca_file="/ca", cert_file="/me", key_file="/key")
    assert target(Invocation(server="https://b:2"), {}).trust == Trust()
    assert target(Invocation(insecure_skip_verify=True), {}).trust == Trust(
        cert_file="/me", key_file="/key", insecure_skip_verify=True
    )
    assert target(Invocation(ca_file="/other", cert_file="/you"), {}).trust == Trust(
        ca_file="/other", cert_file="/you"
    )
    assert target(Invocation(), {}).bootstrap == "https://a:1"


def test_a_context_that_could_not_be_used_is_not_kept() -> None:
    line = CommandLine("http://localhost:1")
    for words in (
        ["--server", "https://a:1", "--ca-file", "/nowhere"],
        ["--server", "http://a:1", "--insecure-skip-verify"],
        ["--server", "https://a:1", "--key-file", "key.pem"],
    ):
        line.ends(ExitCode.FAILED, "config", "set-context", "prod", *words)

    assert not config_path().exists()


def test_who_answers_and_is_not_trusted_is_told_of(locked: RunningDoor) -> None:
    ended = CommandLine(locked.url).ends(ExitCode.FAILED, "topic", "list")

    assert "not trusted" in ended.stderr
    assert "CA file" in ended.stderr


def test_the_check_is_skipped_by_name_alone(tmp_path: Path, certificates: Certificates) -> None:
    (tmp_path / "data").mkdir()
    with RunningDoor(tmp_path / "data", listener=tls_listener(certificates.shown())) as running:
        line = CommandLine(running.url)
        line.ends(ExitCode.FAILED, "topic", "list")

        assert "no topic" in line.printed("topic", "list", "--insecure-skip-verify")
        assert "no topic" in line.printed("--insecure-skip-verify", "topic", "list")


def test_spark_is_told_of_files_and_of_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "api.key").write_text(f"{KEY}\n")
    call = Invocation(server="https://a:1,https://b:2", ca_file="ca.pem", cert_file="/me.pem")

    where = target(call, {"GOQUEUE_API_KEY_FILE": "api.key"})

    assert where.api_key == KEY
    assert where.spark_options == {
        "bootstrap": "https://a:1,https://b:2",
        "caFile": str(tmp_path / "ca.pem"),
        "certFile": "/me.pem",
        "apiKeyFile": str(tmp_path / "api.key"),
    }
    assert target(Invocation(server="http://a:1"), {}).spark_options == {"bootstrap": "a:1"}


def test_a_key_that_is_typed_goes_before_one_in_a_file() -> None:
    where = target(Invocation(), {"GOQUEUE_API_KEY": KEY, "GOQUEUE_API_KEY_FILE": "/nowhere"})

    assert where.api_key == KEY
