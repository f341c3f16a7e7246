"""Both forms of the client over TLS: whom they trust, what they show, and where they go."""

import os
import pickle
import socket
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from goqueue.client import Address, AsyncGoQueue, Denied, GoQueue, Invalid, Unavailable
from goqueue.client.addresses import parse_addresses
from goqueue.client.call import Call
from goqueue.client.connection import Client
from goqueue.client.errors import NobodyAnswers, NotTrusted
from goqueue.client.leaders import Leaders
from goqueue.client.tls import Tls, Trust
from goqueue.edge.authentication import AuthConfig
from goqueue.edge.tls import ClientAuth
from tests.doors.certificates import Certificates, tls_listener
from tests.doors.http.running_door import RunningDoor
from tests.unit.client.conftest import RunAt

KEY = "the key of all keys"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory, certificates: Certificates) -> Iterator[RunningDoor]:
    """One that speaks TLS and asks who is there."""
    listener = tls_listener(certificates.shown(), asks_who=True)
    folder = tmp_path_factory.mktemp("client-tls")
    with RunningDoor(folder, listener=listener, auth=AuthConfig(root_key=KEY)) as running:
        yield running


def test_messages_go_in_and_out_over_tls(
    run_at: RunAt, door: RunningDoor, certificates: Certificates
) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        await queue.topics.create("orders", partitions=1, exist_ok=True)
        async with queue.producer() as producer:
            await (await producer.send("orders", "x" * 500_000))
        async with queue.consumer("orders", group="workers", limit=1) as consumer:
            [message] = await consumer.poll(wait=10)
            assert message.text == "x" * 500_000
            await message.ack(wait=True)

    run_at(door.url, body, ca_file=certificates.ca_file, api_key=KEY)


def test_who_shows_no_key_is_told_so_over_tls(
    run_at: RunAt, door: RunningDoor, certificates: Certificates
) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        with pytest.raises(Denied):
            await queue.topics.list()

    run_at(door.url, body, ca_file=str(certificates.ca_file))


def test_who_is_not_vouched_for_is_not_spoken_to_and_not_waited_for(run_at: RunAt, door: RunningDoor) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        with pytest.raises(NotTrusted, match=r"not trusted.*CA file"):
            await queue.topics.list()

    run_at(door.url, body, api_key=KEY, retry_for_s=3_600)


def test_a_certificate_for_another_name_is_not_trusted(tmp_path: Path, run_at: RunAt) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        with pytest.raises(NotTrusted):
            await queue.topics.list()

    certificates = Certificates(tmp_path, "elsewhere.example")
    (tmp_path / "data").mkdir()
    with RunningDoor(tmp_path / "data", listener=tls_listener(certificates.shown())) as door:
        run_at(door.url, body, ca_file=certificates.ca_file, retry_for_s=0)


def test_the_check_is_skipped_for_who_says_so(run_at: RunAt, door: RunningDoor) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        assert (await queue.admin.version()).version

    run_at(door.url, body, insecure_skip_verify=True, api_key=KEY)


def test_the_client_shows_its_certificate(tmp_path: Path, run_at: RunAt, certificates: Certificates) -> None:
    cert_file, key_file = certificates.of("alice")

    async def knows(queue: AsyncGoQueue) -> None:
        assert await queue.topics.list() == []

    async def is_refused(queue: AsyncGoQueue) -> None:
        with pytest.raises(Unavailable):
            await queue.topics.list()

    listener = tls_listener(certificates.shown(ClientAuth.REQUIRE))
    with RunningDoor(tmp_path, listener=listener) as door:
        shown = {"cert_file": cert_file, "key_file": key_file}
        run_at(door.url, knows, ca_file=certificates.ca_file, **shown)
        run_at(door.url, is_refused, ca_file=certificates.ca_file, retry_for_s=0)


def test_a_door_without_tls_is_told_of_as_one_that_does_not_answer(
    tmp_path: Path, run_at: RunAt, certificates: Certificates
) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        with pytest.raises(Unavailable):
            await queue.topics.list()

    with RunningDoor(tmp_path) as plain:
        server = f"https://127.0.0.1:{plain.port}"
        run_at(server, body, ca_file=certificates.ca_file, retry_for_s=0)


def test_a_client_has_one_context_whatever_number_of_threads_use_it(
    door: RunningDoor, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[object] = []
    real = Tls.__init__

    def counted(tls: Tls, *args: Any) -> None:
        made.append(args)
        real(tls, *args)

    monkeypatch.setattr(Tls, "__init__", counted)
    with GoQueue(door.url, ca_file=certificates.ca_file, api_key=KEY) as queue:
        together = threading.Barrier(4)

        def ask(_: int) -> None:
            together.wait(10)
            queue.topics.list()

        with ThreadPoolExecutor(4) as threads:
            list(threads.map(ask, range(4)))

    assert len(made) == 1


def test_a_copy_reads_the_files_where_it_is(door: RunningDoor, certificates: Certificates) -> None:
    cert_file, key_file = certificates.of("bob")
    with GoQueue(
        door.url, ca_file=certificates.ca_file, cert_file=cert_file, key_file=key_file, api_key=KEY
    ) as queue:
        packed = pickle.dumps(queue)
    assert b"PRIVATE KEY" not in packed

    with pickle.loads(packed) as copy:
        assert copy.admin.version().version


def test_a_call_that_waits_over_tls_ends_when_its_client_is_aborted(certificates: Certificates) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening, ThreadPoolExecutor(1) as threads:
        addresses = (Address("127.0.0.1", listening.getsockname()[1], is_tls=True),)
        client = Client(addresses, tls=Tls(addresses, Trust(ca_file=certificates.ca_file)))
        call = threads.submit(client.request, "GET", "/version")
        line, _ = listening.accept()
        with certificates.shown().context.wrap_socket(line, server_side=True) as mute:
            assert mute.recv(1_000).startswith(b"GET /version")
            client.abort()

            with pytest.raises(NobodyAnswers, match="closed while it waited"):
                call.result(20)
            assert mute.recv(1_000) == b"", "nothing was sent behind it"


def test_requests_go_over_one_connection(door: RunningDoor, certificates: Certificates) -> None:
    """Before those that may not be repeated the client looks whether the node has hung up: it has not."""
    addresses = parse_addresses(door.url)
    client = Client(addresses, api_key=KEY, tls=Tls(addresses, Trust(ca_file=certificates.ca_file)))
    call = Call(method="GET", path="/version", decode=lambda reply: reply.status, is_repeatable=False)
    ports: set[int] = set()
    for _ in range(3):
        assert client.carry(call) == 200
        assert client._connection is not None
        ports.add(client._connection.sock.getsockname()[1])
    client.close()

    assert len(ports) == 1


def test_a_hint_to_another_node_keeps_to_tls() -> None:
    nodes = parse_addresses("https://a:1,https://b:2")
    leaders = Leaders(nodes)
    for told in ("b:2", "http://b:2", "https://b:2"):
        leaders.learn("/groups/g/poll", told)

        assert leaders.of("/groups/g/poll") == Address("b", 2, is_tls=True)


@pytest.mark.parametrize("server", ["https://a:1,b:2", "http://a:1,https://b:2"])
def test_a_client_speaks_tls_to_all_nodes_or_to_none(server: str) -> None:
    for kind in (GoQueue, AsyncGoQueue):
        with pytest.raises(Invalid, match="before each of them"):
            kind(server)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"ca_file": "/nowhere/ca.pem"}, "/nowhere/ca.pem: No such file"),
        ({"ca_file": os.devnull}, "nobody who vouches"),
        ({"cert_file": "/nowhere/me.pem"}, "/nowhere/me.pem and nothing else: No such file"),
        ({"key_file": "me.key"}, "with a certificate only"),
        ({"ca_file": "ca.pem", "insecure_skip_verify": True}, "give one of them"),
    ],
)
def test_files_that_are_no_good_are_told_of_at_once(options: dict[str, Any], told: str) -> None:
    for kind in (GoQueue, AsyncGoQueue):
        with pytest.raises(Invalid, match=told):
            kind("https://127.0.0.1:1", **options)


def test_a_key_with_a_password_is_refused_and_nobody_is_asked(
    tmp_path: Path, certificates: Certificates
) -> None:
    cert_file, key_file = certificates.of("carol")
    locked = tmp_path / "locked.key"
    subprocess.run(
        ["openssl", "pkey", "-in", key_file, "-aes256", "-passout", "pass:secret", "-out", locked],
        check=True,
        timeout=20,
    )

    with pytest.raises(Invalid, match="locked with a password"):
        GoQueue("https://127.0.0.1:1", ca_file=certificates.ca_file, cert_file=cert_file, key_file=locked)


@pytest.mark.parametrize("server", ["127.0.0.1:8443", "http://127.0.0.1:8443"])
@pytest.mark.parametrize("options", [{"ca_file": "ca.pem"}, {"insecure_skip_verify": True}])
def test_who_names_whom_to_trust_does_not_go_in_the_clear(server: str, options: dict[str, Any]) -> None:
    for kind in (GoQueue, AsyncGoQueue):
        with pytest.raises(Invalid, match="begin with https://"):
            kind(server, **options)


def test_a_node_that_never_shakes_hands_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        queue = GoQueue(
            f"https://127.0.0.1:{silent.getsockname()[1]}",
            insecure_skip_verify=True,
            timeout_s=0.1,
            retry_for_s=0,
        )
        with pytest.raises(Unavailable):
            queue.topics.list()
