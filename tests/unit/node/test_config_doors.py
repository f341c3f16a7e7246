"""Listeners and certificates in the settings: what is opened, and what is refused before anything is."""

import ssl
from pathlib import Path

import pytest

from goqueue.edge.listening import SecurityProtocol
from goqueue.edge.tls import ClientAuth
from goqueue.node.config import ConfigProblems, NodeConfig, load_config


@pytest.fixture(autouse=True)
def _in_a_folder_with_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("cert.pem", "key.pem", "ca.pem"):
        (tmp_path / name).write_text("")


FILES = ("--tls-cert-file=cert.pem", "--tls-key-file=key.pem")


def configured(*flags: str) -> NodeConfig:
    return load_config(flags, {})


def problems_of(*flags: str) -> tuple[str, ...]:
    with pytest.raises(ConfigProblems) as refusal:
        configured(*flags)
    return refusal.value.problems


@pytest.mark.parametrize("door", ["kafka", "http"])
@pytest.mark.parametrize("address", [":9500", "10.1.2.3:9500", "broker.example:9500", "[2001:db8::1]:9500"])
def test_a_door_that_others_reach_is_not_opened_without_a_lock(door: str, address: str) -> None:
    (problem,) = problems_of(f"--listeners-{door}", address)

    assert problem.startswith(f"--listeners-{door}: other machines can reach ")
    assert "set GOQUEUE_TLS_ENABLED=true" in problem
    assert "GOQUEUE_INSECURE=true (--insecure)" in problem


@pytest.mark.parametrize(
    "address", ["127.0.0.1:9500", "127.9.9.9:9500", "localhost:9500", "[::1]:9500", "off"]
)
def test_a_door_of_this_machine_alone_needs_no_lock(address: str) -> None:
    configured("--listeners-kafka", address)


def test_who_says_so_may_open_a_door_without_a_lock() -> None:
    assert configured("--listeners-kafka", ":9500", "--insecure").kafka_listeners
    assert configured("--listeners-kafka", ":9500", "--insecure=true").kafka_listeners
    assert load_config(["--listeners-kafka", ":9500"], {"GOQUEUE_INSECURE": "true"}).kafka_listeners


def test_tls_is_a_lock_and_is_spoken_where_no_protocol_is_named() -> None:
    config = configured("--listeners-kafka=:9500,PLAINTEXT://127.0.0.1:9501", "--tls-enabled=true", *FILES)

    protocols = [listener.protocol for listener in (*config.kafka_listeners, *config.http_listeners)]
    assert protocols == [SecurityProtocol.SSL, SecurityProtocol.PLAINTEXT, SecurityProtocol.SSL]


def test_a_listener_that_names_tls_speaks_it_whatever_the_others_do() -> None:
    config = configured(
        "--listeners-kafka=127.0.0.1:9500,SSL://:9501", "--tls-min-version=1.3", "--tls-client-auth=require",
        "--tls-ca-file=ca.pem", *FILES,
    )  # fmt: skip

    assert config.tls is not None
    assert (config.tls.client_auth, config.tls.min_version) == (ClientAuth.REQUIRE, ssl.TLSVersion.TLSv1_3)


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (
            (),
            "name it, and its key with GOQUEUE_TLS_KEY_FILE, or set GOQUEUE_TLS_SELF_SIGNED=true",
        ),
        (("--tls-cert-file=cert.pem",), "GOQUEUE_TLS_KEY_FILE: a certificate and its key are named together"),
        ((*FILES, "--tls-ca-file=none.pem"), "--tls-ca-file: there is no file none.pem"),
        ((*FILES, "--tls-client-auth=verify"), "name GOQUEUE_TLS_CA_FILE"),
        (
            (*FILES, "--tls-client-auth=perhaps"),
            "is not one of none, request, require, verify, require-verify",
        ),
        ((*FILES, "--tls-min-version=1.1"), "is not one of 1.2, 1.3"),
        ((*FILES, "--tls-principal-rules=RULE:(x/$1/"), "is no pattern"),
        ((*FILES, "--tls-handshake-ms=1"), "out of range"),
    ],
)
def test_what_tls_cannot_be_spoken_with_is_a_problem(flags: tuple[str, ...], problem: str) -> None:
    (told,) = problems_of("--tls-enabled", "true", *flags)

    assert problem in told


def test_settings_of_tls_are_not_looked_at_where_nobody_speaks_it() -> None:
    assert configured("--tls-cert-file", "none.pem").tls is None


def test_nodes_do_not_make_their_own_certificates() -> None:
    problems = problems_of(
        "--cluster-enabled=true", "--cluster-tls-enabled=true", "--cluster-tls-self-signed=true"
    )

    assert any("have them made by one authority" in problem for problem in problems)
