"""What is written down of who did what, and how it survives."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest

from goqueue.broker.access import audit as module
from goqueue.broker.access.audit import FOLDER, AuditLog
from goqueue.broker.access.verbs import add_rules
from goqueue.broker.access.warden import ASKING
from goqueue.broker.broker import Broker
from goqueue.broker.forwarding.at_home import at_home
from goqueue.broker.topics.verbs import create_topic, delete_topic
from goqueue.core.access.audit_chain import problems_in
from goqueue.model.access import AddRules, Asking, Operation, ResourceKind, Rule
from goqueue.model.audit import AuditEvent
from goqueue.model.errors import TopicNotAllowed
from goqueue.model.settings import AccessConfig, AuditConfig, BrokerConfig
from goqueue.model.topics import CreateTopic, DeleteTopic
from goqueue.node.audit_check import main
from goqueue.node.disk import FolderDisk
from tests.unit.broker.running import running

ANN = Asking("User:ann", "10.0.0.1")


def walk(tmp_path: Path, work: Callable[[Broker], Awaitable[None]], **more: int | bool) -> None:
    access = AccessConfig(is_on=bool(more.pop("is_on", True)), audit=AuditConfig(is_on=True, **more))

    async def walk() -> None:
        async with running(FolderDisk(tmp_path), BrokerConfig(access=access)) as broker:
            token = ASKING.set(ANN)
            try:
                await work(broker)
            finally:
                ASKING.reset(token)

    asyncio.run(walk())


def lines(tmp_path: Path) -> list[bytes]:
    paths = sorted(Path(tmp_path, FOLDER).glob("*.jsonl"))
    return [line for path in paths for line in path.read_bytes().splitlines()]


def told(tmp_path: Path) -> list[tuple[str, str, str]]:
    events = map(msgspec.json.decode, lines(tmp_path))
    return [(event["event"], event["principal"], event["resource"]) for event in events]


def test_refusals_and_changes_are_written_down_with_who_asked(tmp_path: Path) -> None:
    async def work(broker: Broker) -> None:
        with pytest.raises(TopicNotAllowed):
            await at_home(broker, create_topic, CreateTopic(name="orders"))
        everything = Rule(principal="User:ann", kind=ResourceKind.TOPIC, name="*", operation=Operation.ALL)
        await add_rules(broker, AddRules(rules=[everything]))
        await at_home(broker, create_topic, CreateTopic(name="orders"))
        await at_home(broker, delete_topic, DeleteTopic(name="orders"))

    walk(tmp_path, work)
    assert told(tmp_path) == [
        ("acl_denied", "User:ann", "topic orders"),
        ("topic_created", "User:ann", "topic orders"),
        ("topic_deleted", "User:ann", "topic orders"),
    ]


def test_without_permissions_everything_goes_and_is_written_down(tmp_path: Path) -> None:
    async def work(broker: Broker) -> None:
        await at_home(broker, create_topic, CreateTopic(name="orders"))

    walk(tmp_path, work, is_on=False)
    assert told(tmp_path) == [("topic_created", "User:ann", "topic orders")]


def test_a_restart_and_a_torn_line_do_not_break_the_chain(tmp_path: Path) -> None:
    async def work(broker: Broker) -> None:
        broker.audit.note(AuditEvent("auth_failure", "User:eve", "10.0.0.9", "http"))

    walk(tmp_path, work)
    [path] = Path(tmp_path, FOLDER).glob("*.jsonl")
    with path.open("ab") as file:
        file.write(b'{"number":2,"time')
    walk(tmp_path, work)
    assert len(lines(tmp_path)) == 2
    assert problems_in(lines(tmp_path)) == []


def test_whoever_looks_after_the_node_sees_whether_the_log_is_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path)]) == 3
    assert "GOQUEUE_AUDIT_ENABLED" in capsys.readouterr().err

    async def work(broker: Broker) -> None:
        for name in ("a", "b", "c"):
            broker.audit.note(AuditEvent("auth_failure", f"User:{name}", "10.0.0.9", "http"))

    walk(tmp_path, work)
    assert main([str(tmp_path)]) == 0
    assert msgspec.json.decode(capsys.readouterr().out) == {"files": 1, "lines": 3, "problems": []}
    [path] = Path(tmp_path, FOLDER).glob("*.jsonl")
    path.write_bytes(path.read_bytes().replace(b"User:b", b"User:x"))
    assert main([str(tmp_path)]) == 1
    assert msgspec.json.decode(capsys.readouterr().out)["problems"] == ["line 2: number 2 was changed"]


def test_files_follow_each_other_and_the_oldest_go(tmp_path: Path) -> None:
    async def work(broker: Broker) -> None:
        for number in range(60):
            broker.audit.note(AuditEvent("auth_failure", f"User:{number}", "10.0.0.9", "http"))
            await broker.audit.drain()

    walk(tmp_path, work, file_bytes=2_048, files_max=3)
    assert 3 <= len(list(Path(tmp_path, FOLDER).iterdir())) <= 4
    assert problems_in(lines(tmp_path)) == []
    assert told(tmp_path)[-1] == ("auth_failure", "User:59", "http")


def test_whoever_has_too_much_to_say_waits_for_nothing_and_the_gap_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "QUEUE_MAX", 5)

    async def work(broker: Broker) -> None:
        for number in range(8):
            broker.audit.note(AuditEvent("auth_failure", f"User:{number}", "10.0.0.9", "http"))
        assert broker.audit.dropped == 3

    walk(tmp_path, work)
    events = [msgspec.json.decode(line) for line in lines(tmp_path)]
    assert [event["event"] for event in events] == ["auth_failure"] * 5 + ["audit_dropped"]
    assert events[-1]["reason"] == "3 events were left out"


def test_a_disk_that_fails_loses_nothing_that_can_be_written_later(tmp_path: Path) -> None:
    def in_the_way(text: str | None) -> None:
        path = Path(tmp_path, FOLDER)
        path.unlink() if text is None else path.write_text(text)

    async def work(broker: Broker) -> None:
        audit: AuditLog = broker.audit
        in_the_way("x")
        audit.note(AuditEvent("auth_failure", "User:eve", "10.0.0.9", "http"))
        with pytest.raises(OSError):
            await audit.drain()
        in_the_way(None)
        await audit.drain()

    walk(tmp_path, work)
    assert told(tmp_path) == [("auth_failure", "User:eve", "http")]
