"""A real broker with certificates: made by itself, or had from files that change."""

import hashlib
import os
import signal
import ssl
import stat
from pathlib import Path

import httpx
import pytest

from tests.doors.certificates import Certificates
from tests.integration.conftest import StartBroker
from tests.integration.running_broker import RunningBroker, goqueue

pytestmark = pytest.mark.slow


def shown_by(broker: RunningBroker, port: str) -> bytes:
    host, _, number = port.removeprefix("http://").partition(":")
    return ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate((host, int(number))))


def test_a_broker_makes_a_certificate_and_keeps_it(start_broker: StartBroker, tmp_path: Path) -> None:
    flags = ("--tls-enabled=true", "--tls-self-signed=true")
    broker = start_broker(*flags)
    files = tmp_path / "data" / "tls"

    trusting = ssl.create_default_context(cafile=files / "self-signed.crt")
    told = httpx.get(broker.http.replace("http:", "https:") + "/health", verify=trusting)
    first = shown_by(broker, broker.kafka)

    assert told.status_code == 200
    assert hashlib.sha256(first).hexdigest().upper() == _fingerprint(broker.printed).replace(":", "")
    assert stat.S_IMODE((files / "self-signed.key").stat().st_mode) == 0o600
    assert stat.S_IMODE(files.stat().st_mode) == 0o700
    assert broker.stop() == 0
    assert shown_by(broker.start(), broker.http) == first


def test_a_certificate_that_has_changed_is_shown_after_a_signal(
    start_broker: StartBroker, tmp_path: Path
) -> None:
    certificates = Certificates(tmp_path)
    broker = start_broker(
        "--tls-enabled=true", f"--tls-cert-file={tmp_path}/door.pem", f"--tls-key-file={tmp_path}/door.key"
    )
    before = shown_by(broker, broker.http)
    certificates.show_anew()

    broker.send(signal.SIGHUP)
    broker.wait_until_logged("certificate_reloaded")

    assert shown_by(broker, broker.http) != before
    assert shown_by(broker, broker.kafka) == shown_by(broker, broker.http)


def test_files_that_hold_no_certificate_are_told_and_nothing_is_started(tmp_path: Path) -> None:
    (tmp_path / "bad.pem").write_text("nothing")
    told = goqueue(
        f"--data-dir={tmp_path}/data", "--listeners-kafka=127.0.0.1:0", "--listeners-http=127.0.0.1:0",
        "--tls-enabled=true", f"--tls-cert-file={tmp_path}/bad.pem", f"--tls-key-file={tmp_path}/bad.pem",
    )  # fmt: skip

    assert told.returncode == 1
    assert "no certificate can be had from" in told.stderr
    assert "Traceback" not in told.stderr


def test_a_door_that_others_reach_is_refused_in_one_sentence(tmp_path: Path) -> None:
    told = goqueue(f"--data-dir={tmp_path}/data", "--listeners-kafka=:0")

    assert told.returncode == 1
    assert "other machines can reach 0.0.0.0:0, and nothing there is locked" in told.stderr
    assert not os.path.exists(tmp_path / "data")


def _fingerprint(printed: str) -> str:
    [line] = [line for line in printed.splitlines() if "fingerprint" in line]
    return line.rpartition(" ")[2]
