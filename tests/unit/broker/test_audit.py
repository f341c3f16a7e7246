"""What is written down of who did what, and how it survives."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from goqueue.broker.access import audit as module
from goqueue.broker.access.audit import FOLDER, AuditLog
from goqueue.broker.access.verbs import add_rules
from goqueue.broker.access.warden import ASKING
from goqueue.broker.audit_topic import AUDIT_TOPIC
from goqueue.broker.broker import Broker
from goqueue.broker.forwarding.at_home import at_home
from goqueue.broker.read.read import read_messages
from goqueue.broker.topics.verbs import create_topic, delete_topic
from goqueue.broker.write.publish import publish
from goqueue.core.access.audit_chain import Chain, problems_in
from goqueue.model.access import AddRules, Asking, Operation, ResourceKind, Rule
from goqueue.model.audit import AuditEvent
from goqueue.model.commands import Publish, ReadMessages
from goqueue.model.errors import InternalTopic, TopicNotAllowed
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.messages import Message
from goqueue.model.settings import AccessConfig, AuditConfig, BrokerConfig
from goqueue.model.topics import CreateTopic, DeleteTopic
from goqueue.node.audit_check import main
from goqueue.node.disk import FolderDisk
from tests.unit.broker.running import running

ANN = Asking("User:ann", "10.0.0.1")


def walk(tmp_path: Path, work: Callable[[Broker], Awaitable[None]], **more: Any) -> None:
    access = AccessConfig(is_on=more.pop("is_on", True), audit=AuditConfig(is_on=True, **more))

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


def test_a_made_up_name_neither_fills_the_log_nor_breaks_its_lines(tmp_path: Path) -> None:
    forged = 'x"}\n{"event":"topic_deleted","principal":"User:bob"}\r\u2028\0'

    async def work(broker: Broker) -> None:
        for name in (forged, "n" * 30_000):
            with pytest.raises(TopicNotAllowed):
                await at_home(broker, delete_topic, DeleteTopic(name=TopicName(name)))

    walk(tmp_path, work)
    first, second = told(tmp_path)
    assert first == ("acl_denied", "User:ann", f"topic {forged}")
    assert second == ("acl_denied", "User:ann", "topic " + "n" * 255)
    assert not problems_in(lines(tmp_path))


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
    assert 3 <= len(list(Path(tmp_path, FOLDER).glob("*.jsonl"))) <= 4
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


async def topic_lines(broker: Broker) -> list[bytes]:
    assert broker.audit.topic is not None
    await broker.audit.drain()
    await broker.audit.topic.drain()
    token = ASKING.set(None)
    try:
        source = TopicPartition(AUDIT_TOPIC, 0)
        read = await read_messages(broker, ReadMessages(source=source, offset=0, limit=1_000))
    finally:
        ASKING.reset(token)
    return [message.value or b"" for message in read.messages]


def test_lines_are_published_in_a_topic_as_they_stand_in_the_files(tmp_path: Path) -> None:
    published: list[bytes] = []

    async def work(broker: Broker) -> None:
        for name in ("one", "two"):
            await at_home(broker, create_topic, CreateTopic(name=name))
        published.extend(await topic_lines(broker))
        assert AUDIT_TOPIC not in broker.topic_counts, "nobody sees it among their topics"

    walk(tmp_path, work, is_on=False)
    assert published == lines(tmp_path)
    assert len(published) == 2


def test_what_was_not_published_before_the_end_is_published_later(tmp_path: Path) -> None:
    published: list[bytes] = []

    async def work(broker: Broker) -> None:
        await at_home(broker, create_topic, CreateTopic(name=f"t{len(published)}"))
        published[:] = await topic_lines(broker)
        broker.audit.note(AuditEvent("acl_denied", "User:eve", "", "topic x"))  # too late for the topic

    walk(tmp_path, work, is_on=False)
    assert len(published) == 1
    walk(tmp_path, work, is_on=False)
    assert len(published) == 3
    assert problems_in(published) == []
    assert published == lines(tmp_path)[:3]


def test_nobody_else_writes_into_the_topic(tmp_path: Path) -> None:
    async def work(broker: Broker) -> None:
        await at_home(broker, create_topic, CreateTopic(name="one"))
        await topic_lines(broker)
        with pytest.raises(InternalTopic):
            await at_home(broker, publish, Publish(topic=AUDIT_TOPIC, messages=[Message(b"forged")]))
        with pytest.raises(InternalTopic):
            await at_home(broker, delete_topic, DeleteTopic(name=AUDIT_TOPIC))
        with pytest.raises(InternalTopic):
            await at_home(broker, create_topic, CreateTopic(name="__other"))

    walk(tmp_path, work, is_on=False)


def test_what_is_done_with_messages_is_written_down_by_samples(tmp_path: Path) -> None:
    async def work(broker: Broker) -> None:
        everything = Rule(principal="User:ann", kind=ResourceKind.TOPIC, name="*", operation=Operation.ALL)
        await add_rules(broker, AddRules(rules=[everything]))
        await at_home(broker, create_topic, CreateTopic(name="orders", partitions=1))
        broker.warden.chance = iter([0.4, 0.6, 0.4, 0.6] * 10).__next__
        for _ in range(4):
            command = Publish(topic=TopicName("orders"), messages=[Message(b"x")])
            await at_home(broker, publish, command)
        assert broker.warden.denied(Operation.READ, ["orders"]) == {}
        await broker.audit.drain()

    walk(tmp_path, work, data_sampling=0.5)
    events = [event for event, _, _ in told(tmp_path)]
    assert events.count("data_written") == 2
    assert events.count("data_read") == 1


def test_the_topic_is_for_those_who_run_the_cluster(tmp_path: Path) -> None:
    async def work(broker: Broker) -> None:
        everything = Rule(principal="User:ann", kind=ResourceKind.TOPIC, name="*", operation=Operation.ALL)
        await add_rules(broker, AddRules(rules=[everything]))
        assert AUDIT_TOPIC in broker.warden.denied(Operation.READ, [AUDIT_TOPIC])
        await add_rules(
            broker,
            AddRules(
                rules=[
                    Rule(
                        principal="User:ann",
                        kind=ResourceKind.CLUSTER,
                        name="kafka-cluster",
                        operation=Operation.CLUSTER_ACTION,
                    )
                ]
            ),
        )
        assert broker.warden.denied(Operation.READ, [AUDIT_TOPIC]) == {}

    walk(tmp_path, work)


def test_a_gap_in_the_topic_shows_and_a_line_that_came_twice_does_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(broker: Broker) -> None:
        for number in range(4):
            await at_home(broker, create_topic, CreateTopic(name=f"t{number}"))

    walk(tmp_path, work, is_on=False)
    written = lines(tmp_path)

    def check(given: list[bytes]) -> tuple[int, list[str]]:
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=[line + b"\n" for line in given]))
        code = main(["-"])
        problems: list[str] = msgspec.json.decode(capsys.readouterr().out)["problems"]
        return code, problems

    other = [line.replace(b'"node":"node-1"', b'"node":"node-2"') for line in written]
    assert check([*written[:2], *written]) == (0, [])
    assert check([written[0], *written[2:]])[0] == 1
    assert len(check([*written, *other])[1]) == len(other), "they were changed"


def test_what_is_said_while_lines_are_written_is_written_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = AuditLog._write

    def slowly(log: AuditLog, piece: list[tuple[int, AuditEvent]]) -> tuple[Chain, list[bytes]]:
        for number in range(3 if piece[0][1].event == "auth_failure" else 0):
            log.note(AuditEvent("acl_denied", f"User:{number}", "", "topic x"))
        return write(log, piece)

    monkeypatch.setattr(AuditLog, "_write", slowly)

    async def work(broker: Broker) -> None:
        broker.audit.note(AuditEvent("auth_failure", "User:eve", "", "http"))
        await broker.audit.drain()

    walk(tmp_path, work)
    assert [event for event, _, _ in told(tmp_path)] == ["auth_failure", *["acl_denied"] * 3]
