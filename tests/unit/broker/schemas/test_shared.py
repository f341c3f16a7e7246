"""The registry of several nodes: one writes it, the others follow what is committed."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from goqueue.broker.broker import Broker
from goqueue.broker.schemas import verbs as module
from goqueue.broker.schemas.check import misfits
from goqueue.broker.schemas.shared import SharedRegistry
from goqueue.broker.schemas.verbs import delete_subject, register_schema, set_compatibility
from goqueue.broker.storage import state_journal
from goqueue.core.schemas.registry import Registry
from goqueue.model.errors import NodeUnreachable, NotCoordinator, SchemaNotFound
from goqueue.model.messages import Message
from goqueue.model.schema_commands import DeleteSubject, FollowRegistry, RegisterSchema, SetCompatibility
from goqueue.model.schemas import Compatibility, SchemaKind, SchemaText, SchemaValidation, SchemaVersion
from goqueue.model.settings import BrokerConfig, TopicSettings
from goqueue.node.disk import FolderDisk
from tests.unit.broker.running import running, until


class Asked:
    """Forwarding that runs everything at one broker, and counts what it was asked."""

    def __init__(self, home: Broker) -> None:
        self.home = home
        self.asked: list[Any] = []
        self.is_cut_off = False

    async def run(self, verb: Any, command: Any) -> Any:
        self.asked.append(command)
        if self.is_cut_off:
            raise NodeUnreachable("a")
        return await verb(self.home, command)

    async def run_at(self, node: Any, command: Any) -> Any:
        raise AssertionError(f"nobody asks {node} for {command}")


class Two:
    """A writes the registry, B follows it."""

    def __init__(self, a: Broker, b: Broker) -> None:
        self.a, self.b = a, b
        self.link = b.forwarding = Asked(a)
        self.shared = SharedRegistry(b)

    @property
    def read(self) -> Registry:
        return self.b.schemas.registry

    async def register(self, subject: str, text: str) -> SchemaVersion:
        schema = SchemaText(SchemaKind.JSON, text, ())
        return await register_schema(self.a, RegisterSchema(subject=subject, schema=schema))


def walk(tmp_path: Path, work: Callable[[Two], Awaitable[None]]) -> None:
    async def walk() -> None:
        async with AsyncExitStack() as stack:
            a, b = [
                await stack.enter_async_context(
                    running(FolderDisk(tmp_path / node), BrokerConfig(node_id=node))
                )
                for node in "ab"
            ]
            b.schemas.journals.is_shared = True
            for journal in b.schemas.journals:
                b.schemas.journals.let_go(journal.partition.source.partition)
            await work(Two(a, b))

    asyncio.run(walk())


def text(number: int) -> str:
    return f'{{"type": "object", "title": "t{number}"}}'


def test_what_was_registered_is_heard_of_and_a_question_waits_until_there_is_something(
    tmp_path: Path,
) -> None:
    async def work(two: Two) -> None:
        following = asyncio.create_task(two.shared.follow())
        first = await two.register("orders", text(1))
        await until(lambda: two.read.subjects() == ["orders"])
        asked = len(two.link.asked)
        second = await two.register("orders", text(2))
        await until(lambda: two.read.versions("orders") == [1, 2])
        assert two.read.version("orders", 2).schema_id == second.schema_id != first.schema_id
        assert len(two.link.asked) <= asked + 2, "nobody asks again and again"
        following.cancel()

    walk(tmp_path, work)


def test_a_node_that_follows_writes_nothing_itself(tmp_path: Path) -> None:
    async def work(two: Two) -> None:
        schema = SchemaText(SchemaKind.JSON, text(1), ())
        with pytest.raises(NotCoordinator):
            await register_schema(two.b, RegisterSchema(subject="orders", schema=schema))
        with pytest.raises(NotCoordinator):
            await module.follow_registry(two.b, FollowRegistry(offset=0))

    walk(tmp_path, work)


def test_what_is_not_known_here_is_asked_for_before_it_is_said_not_to_be_there(tmp_path: Path) -> None:
    async def work(two: Two) -> None:
        place = await two.register("orders", text(1))
        found = await two.b.schemas.look_up(lambda registry: registry.schema(place.schema_id))
        assert found.text == text(1)
        with pytest.raises(SchemaNotFound):
            await two.b.schemas.look_up(lambda registry: registry.schema(99))
        two.link.is_cut_off = True
        known = await two.b.schemas.look_up(lambda registry: registry.schema(place.schema_id))
        assert known.text == text(1), "what is known needs nobody"
        with pytest.raises(NodeUnreachable):
            await two.b.schemas.look_up(lambda registry: registry.schema(99))

    walk(tmp_path, work)


def test_a_message_is_not_refused_for_a_schema_that_has_come_elsewhere_just_now(tmp_path: Path) -> None:
    async def work(two: Two) -> None:
        settings = TopicSettings(schema_validation=SchemaValidation.ID)
        place = await two.register("orders-value", text(1))
        named = Message(b"\0" + place.schema_id.to_bytes(4) + b"{}")
        assert await misfits(two.b, "orders", settings, [named]) == {}
        asked = len(two.link.asked)
        assert await misfits(two.b, "orders", settings, [named] * 3) == {}
        assert len(two.link.asked) == asked, "what fits is not asked about"
        wrong = Message(b"\0" + (99).to_bytes(4) + b"{}")
        assert list(await misfits(two.b, "orders", settings, [named, wrong])) == [1]

    walk(tmp_path, work)


def test_a_journal_that_was_shortened_is_followed_and_nobody_reads_half_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_journal, "EVENTS_MAX", 10)
    monkeypatch.setattr(state_journal, "_STATE_SHARE", 2)
    monkeypatch.setattr(module, "NEWS_BYTES", 1)

    async def work(two: Two) -> None:
        for number in range(8):
            await two.register(f"s{number}", text(number))
        await two.shared.catch_up()
        for level in (Compatibility.FULL, Compatibility.NONE, Compatibility.FORWARD):
            await set_compatibility(two.a, SetCompatibility(subject="s1", level=level))
        await delete_subject(two.a, DeleteSubject(subject="s0"))
        await two.a.schemas.journal.shorten()
        assert two.a.schemas.journal.partition.log.start_offset > 0
        seen = []
        asked = two.link.asked.copy()
        catching = asyncio.create_task(two.shared.catch_up())
        while not catching.done():
            seen.append(len(two.read.subjects()))
            await asyncio.sleep(0)
        assert await catching
        assert set(seen) <= {8, 7}, "either as it was, or as it is"
        assert len(two.link.asked) - len(asked) > 3, "it took several pieces"
        assert list(two.read.whole_state()) == list(two.a.schemas.registry.whole_state())

    walk(tmp_path, work)


def test_who_knows_more_than_the_one_who_writes_begins_anew(tmp_path: Path) -> None:
    """As when a person has let somebody lead who lacked something: what all agree on is what counts."""

    async def work(two: Two) -> None:
        await two.register("orders", text(1))
        await two.shared.catch_up()
        two.shared._offset = 1_000
        two.read.apply(next(iter(two.read.whole_state())))  # it knows nothing any more
        assert await two.shared.catch_up()
        assert two.read.subjects() == ["orders"]

    walk(tmp_path, work)
