"""Options of the source and of the sink for doors that speak TLS and ask who is there."""

import pickle
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from goqueue.client import Denied
from goqueue.client.calls import admin, topics
from goqueue.edge.authentication import AuthConfig
from goqueue.model.errors import Invalid
from goqueue.spark.sink.options import SinkOptions, sink_options
from goqueue.spark.source.options import SourceOptions, source_options
from tests.doors.certificates import Certificates, tls_listener
from tests.doors.http.running_door import RunningDoor

KEY = "the-key-of-all-keys"
Takes = Callable[..., SourceOptions | SinkOptions]


def _source(**given: str) -> SourceOptions:
    return source_options({"topic": "orders", **given}, is_streaming=True)


def _sink(**given: str) -> SinkOptions:
    return sink_options({"topic": "orders", **given}, is_streaming=True)


@pytest.fixture(params=[_source, _sink], ids=["source", "sink"])
def takes(request: pytest.FixtureRequest) -> Takes:
    takes: Takes = request.param
    return takes


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("locks")


@pytest.fixture(scope="module")
def certificates(folder: Path) -> Certificates:
    return Certificates(folder)


@pytest.fixture(scope="module")
def door(folder: Path, certificates: Certificates) -> Iterator[RunningDoor]:
    (folder / "data").mkdir()
    (folder / "api.key").write_text(f"{KEY}\n")
    listener = tls_listener(certificates.shown(), asks_who=True)
    with RunningDoor(folder / "data", listener=listener, auth=AuthConfig(root_key=KEY)) as running:
        yield running


def test_files_open_the_door(takes: Takes, door: RunningDoor, folder: Path) -> None:
    options = takes(bootstrap=door.url, caFile=str(folder / "ca.pem"), apiKeyFile=str(folder / "api.key"))

    client = options.connect()
    assert client.carry(topics.list_topics()) == []
    client.close()


def test_who_names_no_key_is_refused(takes: Takes, door: RunningDoor, folder: Path) -> None:
    client = takes(bootstrap=door.url, caFile=str(folder / "ca.pem")).connect()
    with pytest.raises(Denied):
        client.carry(topics.list_topics())
    client.close()


def test_neither_options_nor_a_client_take_secrets_along_when_they_are_pickled(
    takes: Takes, door: RunningDoor, folder: Path, certificates: Certificates
) -> None:
    cert_file, key_file = certificates.of("alice")
    options = takes(
        bootstrap=door.url,
        caFile=str(folder / "ca.pem"),
        certFile=str(cert_file),
        keyFile=str(key_file),
        apiKeyFile=str(folder / "api.key"),
    )
    client = options.connect()
    client.carry(admin.version())
    packed = pickle.dumps((options, client))
    client.close()

    for text in (packed, repr(options).encode()):
        assert KEY.encode() not in text
        assert b"PRIVATE KEY" not in text
    _, copy = pickle.loads(packed)
    assert copy.carry(topics.list_topics()) == []
    copy.close()


def test_a_key_in_sight_is_refused_and_not_repeated(takes: Takes) -> None:
    for name in ("apiKey", "apiKeyFile"):
        with pytest.raises(Invalid) as refused:
            takes(bootstrap="https://a:1", **{name: KEY})

        assert "apiKeyFile" in str(refused.value)
        assert KEY not in str(refused.value)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"bootstrap": "https://a:1", "caFile": "/nowhere/ca.pem"}, "No such file"),
        ({"bootstrap": "https://a:1", "apiKeyFile": "/nowhere/key"}, "No such file"),
        ({"bootstrap": "https://a:1", "caFile": "ca.pem"}, "caFile: that is no absolute path"),
        ({"bootstrap": "https://a:1", "keyFile": "/key.pem"}, "with a certificate only"),
        ({"bootstrap": "https://a:1", "insecureSkipVerify": "yes"}, "neither true nor false"),
        ({"bootstrap": "https://a:1,b:2"}, "before each of them"),
        ({"bootstrap": "a:1", "insecureSkipVerify": "true"}, "begin with https://"),
    ],
)
def test_what_opens_nothing_is_told_of_before_anything_is_read(
    takes: Takes, given: dict[str, str], problem: str
) -> None:
    with pytest.raises(Invalid, match=problem):
        takes(**given)
