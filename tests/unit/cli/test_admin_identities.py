"""`goqueue-admin user` and `goqueue-admin key`, typed to a broker that asks who is there."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from goqueue.cli.admin import app
from goqueue.cli.parts.exit_codes import ExitCode
from goqueue.client import GoQueue
from goqueue.client.calls.identities import Key, KeyCreated, User
from goqueue.edge.authentication import AuthConfig
from goqueue.edge.listening import Listener, SecurityProtocol
from goqueue.wire.identities import UserSaved
from tests.doors.http.running_door import RunningDoor
from tests.unit.cli.command_line import CommandLine

ROOT_KEY = "the key of all keys"
ASKING = Listener(name="sasl_plaintext", protocol=SecurityProtocol.SASL_PLAINTEXT)


@pytest.fixture
def door(tmp_path: Path) -> Iterator[RunningDoor]:
    (tmp_path / "data").mkdir()
    with RunningDoor(tmp_path / "data", listener=ASKING, auth=AuthConfig(root_key=ROOT_KEY)) as running:
        yield running


@pytest.fixture
def admin(door: RunningDoor, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    monkeypatch.setenv("GOQUEUE_ADMIN_API_KEY", ROOT_KEY)
    return CommandLine(door.url, app)


def is_let_in(door: RunningDoor, key: str) -> bool:
    return door.client.get("/topics", headers={"X-API-Key": key}).status_code == 200


def test_who_shows_no_key_is_told_to(door: RunningDoor) -> None:
    told = CommandLine(door.url, app).ends(ExitCode.FAILED, "key", "list")

    assert "key" in told.stderr


def test_a_key_is_made_rotated_and_revoked(admin: CommandLine, door: RunningDoor) -> None:
    made = admin.told(KeyCreated, "key", "create", "reports", "--role", "consumer", "--expires-in", "1h")
    assert is_let_in(door, made.key)
    with GoQueue(door.url, api_key=made.key) as queue:
        assert queue.topics.list() == []

    new = admin.told(KeyCreated, "key", "rotate", made.id, "--keep-old-for", "1h")
    assert is_let_in(door, made.key) and is_let_in(door, new.key)
    assert new.id in admin.printed("key", "revoke", new.id)

    assert not is_let_in(door, new.key)
    listed = admin.told_alike(list[Key], "key", "list")
    assert [(key.name, key.roles, key.revoked) for key in listed] == [
        ("reports", ["consumer"], False),
        ("reports", ["consumer"], True),
    ]


def test_a_user_is_made_changed_disabled_and_deleted(admin: CommandLine, door: RunningDoor) -> None:
    def comes_in(password: str) -> bool:
        return door.client.get("/topics", auth=("ann", password)).status_code == 200

    first = admin.told(UserSaved, "user", "create", "ann", "--service")
    assert comes_in(first.password)
    second = admin.told(UserSaved, "user", "password", "ann")
    assert comes_in(second.password) and not comes_in(first.password)

    admin.printed("user", "disable", "ann")
    [ann] = admin.told_alike(list[User], "user", "list")
    assert (ann.name, ann.disabled, ann.service) == ("ann", True, True)
    assert not comes_in(second.password)
    admin.printed("user", "enable", "ann")
    assert comes_in(second.password)

    admin.printed("user", "delete", "ann")
    assert admin.told(list[User], "user", "list") == []
    admin.ends(ExitCode.NOT_FOUND, "user", "delete", "ann")
