"""Secrets with a mark go in by every door, well and badly; the mark is then looked for everywhere."""

import base64
import re
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from confluent_kafka import KafkaException
from confluent_kafka import admin as confluent_admin

from tests.integration.conftest import StartBroker
from tests.integration.running_broker import RunningBroker

pytestmark = pytest.mark.slow
kafka_admin: Any = confluent_admin
"""Its stubs lack what deals with SCRAM."""

MARK = "zQ7marked7Qz"
ROOT = f"gq_root_{MARK}_0123456789"
PASSWORD = f"pass {MARK} word"
WRONG = f"wrong {MARK} word"
COLLECTOR = f"x-api-key=collector{MARK}"


def traces_of_the_mark() -> list[bytes]:
    """The mark as it is, as hex, and as it looks inside base64 at each of the three places it may begin."""
    plain = MARK.encode()
    coded = [base64.b64encode(b"\0" * shift + plain)[4 * bool(shift) : -4] for shift in range(3)]
    return [plain, plain.hex().encode(), *coded]


def marked(data: bytes) -> bool:
    return any(trace in data for trace in traces_of_the_mark())


@pytest.fixture
def broker(start_broker: StartBroker) -> RunningBroker:
    return start_broker(
        "--auth-enabled=true",
        f"--api-root-key={ROOT}",
        "--acl-enabled=true",
        "--audit-enabled=true",
        "--auth-query-keys=true",
        "--logging-level=debug",
        f"--tracing-export-headers={COLLECTOR}",
    )


@pytest.fixture
def root(broker: RunningBroker) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=broker.http, headers={"X-API-Key": ROOT}, timeout=30) as client:
        yield client


def test_a_marked_secret_is_found_wherever_it_hides() -> None:
    """The search itself can fail: each form is seen, and nothing else is."""
    for hidden in (PASSWORD, PASSWORD.encode().hex(), *(basic("a" * n, PASSWORD)[6:] for n in range(6))):
        assert marked(hidden.encode()), hidden
    assert not marked(b"nothing of the kind")


def test_no_secret_is_in_any_file_log_answer_metric_or_backup(
    broker: RunningBroker, root: httpx.Client, tmp_path: Path
) -> None:
    answers = [*well_over_http(root), *badly_over_http(broker), *administered(root), *over_kafka(broker)]
    by_hand(broker)
    answers += every_page(root)
    assert_nothing(answers)
    assert_nothing(told_by_tools(broker, tmp_path))
    assert broker.stop() == 0
    printed = [("standard output", broker.printed.encode()), ("the log", broker.log.encode())]
    files = [(str(path), path.read_bytes()) for path in tmp_path.rglob("*") if path.is_file()]
    assert any("audit" in name for name, _ in files)
    assert any("backups" in name for name, _ in files)
    assert_nothing([*printed, *files])


def assert_nothing(found: list[tuple[str, bytes]]) -> None:
    assert [name for name, data in found if marked(data)] == []


def basic(name: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


def well_over_http(root: httpx.Client) -> list[tuple[str, bytes]]:
    """Users and keys are made, used, changed. A made key is shown once, by the answer that made it."""
    answers = [
        root.post("/admin/users", json={"name": "ann", "password": PASSWORD}),
        root.post("/admin/users", json={"name": "bob", "password": PASSWORD, "service": True}),
        root.put("/admin/users/bob/password", json={"password": PASSWORD + "2", "keep_old_for": "1h"}),
        httpx.get(root.base_url.join("/topics"), headers={"Authorization": basic("ann", PASSWORD)}),
        httpx.get(root.base_url.join("/topics"), params={"api_key": ROOT}),
        httpx.get(root.base_url.join("/topics"), headers={"Authorization": f"Bearer {ROOT}"}),
        root.post("/topics", json={"name": "orders", "num_partitions": 1}),
        root.post("/topics/orders/messages", json={"messages": [{"value": "v"}]}),
    ]
    assert [answer.is_success for answer in answers] == [True] * len(answers), answers
    return told(answers)


def badly_over_http(broker: RunningBroker) -> list[tuple[str, bytes]]:
    """Whoever shows what does not open is not told it back, and bodies that cannot be read are not quoted."""
    address, key = broker.http, {"X-API-Key": ROOT}
    bodies = [
        f'{{"name": "eve", "password": "{PASSWORD}"',
        f'{{"name": "eve", "password": ["{PASSWORD}"]}}',
        f'{{"name": "eve", "password": "{PASSWORD * 100}"}}',
        f'{{"name": ["{PASSWORD}"], "password": "{PASSWORD}"}}',
        f'{{"name": "eve", "password": "{PASSWORD}", "expires_in": "soon"}}',
        f'{{"name": "eve", "password": "{PASSWORD}", "service": 7}}',
    ]
    with httpx.Client(base_url=address, timeout=30) as stranger:
        refused = [
            stranger.get("/topics", headers={"X-API-Key": f"gq_{WRONG}"}),
            stranger.get("/topics", headers={"Authorization": f"Bearer {WRONG}"}),
            stranger.get("/topics", headers={"Authorization": f"Bearer eyJhbGciOiJub25lIn0.{MARK}.{MARK}"}),
            stranger.get("/topics", headers={"Authorization": f"Digest {WRONG}"}),
            stranger.get("/topics", headers={"Authorization": basic("ann", WRONG)}),
            stranger.get(f"/topics?api_key={quote(WRONG)}"),
            stranger.get(f"/no/such/page?api_key={quote(WRONG)}"),
            *(stranger.post("/admin/users", content=body, headers=key) for body in bodies),
            *(stranger.put("/admin/users/ann/password", content=body, headers=key) for body in bodies[:3]),
        ]
    assert [answer.is_error for answer in refused] == [True] * len(refused), refused
    return told(refused)


def administered(root: httpx.Client) -> list[tuple[str, bytes]]:
    answers = [
        root.post("/admin/backup", json={}),
        root.post(
            "/admin/acls",
            json={
                "principal": "ann",
                "resource_type": "topic",
                "resource_name": "orders*",
                "operation": "all",
            },
        ),
    ]
    assert [answer.is_success for answer in answers] == [True] * len(answers), answers
    return told(answers)


def over_kafka(broker: RunningBroker) -> list[tuple[str, bytes]]:
    """Each mechanism with a password that opens and with one that does not; and Kafka's way to set one."""
    heard: list[str] = []
    for mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"):
        for password in (PASSWORD, WRONG):
            client = kafka_admin.AdminClient(
                login(broker, mechanism, "ann", password), error_cb=lambda error: heard.append(str(error))
            )
            try:
                client.list_topics(timeout=10 if password == PASSWORD else 2)
                assert password == PASSWORD
            except KafkaException as error:
                assert password == WRONG
                heard.append(str(error))
    admin = kafka_admin.AdminClient(login(broker, "PLAIN", "root", ROOT))
    info = kafka_admin.ScramCredentialInfo(kafka_admin.ScramMechanism.SCRAM_SHA_256, 4096)
    wanted = kafka_admin.UserScramCredentialUpsertion("carol", info, PASSWORD.encode())
    for done in admin.alter_user_scram_credentials([wanted]).values():
        done.result(timeout=20)
    described = admin.describe_user_scram_credentials(["carol", "ann"])
    heard += [str(future.result(timeout=20)) for future in described.values()]
    return [("what Kafka's clients hear", line.encode()) for line in heard]


def login(broker: RunningBroker, mechanism: str, name: str, password: str) -> dict[str, str]:
    return {
        "bootstrap.servers": broker.kafka,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": name,
        "sasl.password": password,
    }


def by_hand(broker: RunningBroker) -> None:
    """Logins that no library would send: a password where something else is asked for."""
    host, _, port = broker.kafka.partition(":")
    secret = PASSWORD.encode()

    def request(api: int, body: bytes) -> bytes:
        head = struct.pack(">hhih", api, 1, 7, -1)
        return struct.pack(">i", len(head) + len(body)) + head + body

    def text(of: bytes) -> bytes:
        return struct.pack(">h", len(of)) + of

    def block(of: bytes) -> bytes:
        return struct.pack(">i", len(of)) + of

    plain = request(17, text(b"PLAIN"))
    scram = request(17, text(b"SCRAM-SHA-256"))
    for sent in (
        request(17, text(secret)),
        plain + request(36, block(secret)),
        plain + request(36, block(b"\0ann\0" + secret + b"\0" + secret)),
        plain + request(36, block(b"\xff" + secret)),
        scram + request(36, block(secret)),
        scram + request(36, block(b"n,,n=ann,r=" + secret)),
        request(36, block(secret)),
        block(secret),
        secret,
    ):
        with socket.create_connection((host, int(port)), timeout=10) as connection:
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(1 << 16):
                pass


def every_page(root: httpx.Client) -> list[tuple[str, bytes]]:
    """All that can be looked at, by whoever may see everything."""
    pages = root.get("/openapi.json").raise_for_status().json()["paths"]
    things = {"topic": "orders", "topic_name": "orders", "partition": "0", "offset": "0", "name": "ann"}
    [backup] = root.get("/admin/backup").json()["backups"]
    answers = []
    for path, methods in pages.items():
        if "get" in methods and "profile" not in path:
            filled = re.sub(
                r"\{(\w+)[^}]*\}", lambda found: things.get(found[1], backup.get("id", "0")), path
            )
            answers.append(root.get(filled, params={"timeout": "0s", "seconds": "1"}))
    assert sum(answer.is_success for answer in answers) > 20
    return told(answers)


def told_by_tools(broker: RunningBroker, folder: Path) -> list[tuple[str, bytes]]:
    """Our own command lines say no more than that they were not let in."""
    words = ["--server", broker.http, "--api-key", f"gq_{WRONG}", "topic", "list"]
    ended = subprocess.run(
        [sys.executable, "-m", "goqueue.cli.main", *words], capture_output=True, check=False, cwd=folder
    )
    assert ended.returncode
    return [("goqueue-cli", ended.stdout + ended.stderr)]


def told(answers: list[httpx.Response]) -> list[tuple[str, bytes]]:
    return [
        (
            f"{answer.request.method} {answer.request.url.path}",
            repr(answer.headers.multi_items()).encode() + answer.content,
        )
        for answer in answers
    ]
