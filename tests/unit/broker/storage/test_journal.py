"""A journal is written in one way: submitted, applied at once, answered when it is committed."""

import ast
import asyncio
import inspect
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

import pytest

import goqueue.broker
from goqueue.broker.broker import Broker
from goqueue.broker.delays.journal import DelayJournal
from goqueue.broker.groups.journal import GroupJournal
from goqueue.broker.storage import state_journal as journal_module
from goqueue.broker.storage.journal import Journal
from goqueue.broker.storage.partition import Partition
from goqueue.core.groups.events import OffsetsCommitted
from goqueue.log.partition_log import CheckedBatch
from goqueue.model.errors import StorageFailed, StorageFull
from goqueue.model.groups import TopicOffsets
from goqueue.model.ids import TopicName
from goqueue.model.names import is_internal
from goqueue.model.settings import BrokerConfig
from goqueue.testing.rooms.delay_simulation import simulate_delays
from goqueue.testing.rooms.queue_simulation import simulate_queue
from goqueue.testing.rooms.sink_simulation import simulate_sinks
from goqueue.testing.rooms.transaction_simulation import simulate_transactions
from goqueue.testing.world.disk import SimulatedDisk
from tests.unit.broker.running import DIRECT, running, until

ROOM = Path(goqueue.broker.__file__).parent
GROUP = "readers"
TOPIC_ID = UUID(int=7)
WAYS_IN = {"submit"}
READING = {"read", "replay"}
FOLLOWING = {"news"}
"""Schemas are read on every node: what others have written comes by and by."""
UPKEEP = {"drop_before", "shorten"}
"""Where the state is small it is written anew; delayed messages may be millions, and go one by one."""
HANDING_OVER = {"admit", "retire"}
"""Another node may serve what a journal keeps, and this one refuses from then on."""
DIALECTS = {"append", "begin", "commit", "durable", "note", "safe", "settled", "write"}
"""How journals were written once, each room in its own way."""
WAITS = {"append", "committed", "hurry"}
"""What a journal asks of its partition, and nobody else of a journal's partition."""


def all_kinds(kind: type[Journal[Any]] = Journal) -> Iterator[type[Journal[Any]]]:
    yield kind
    for special in kind.__subclasses__():
        yield from all_kinds(special)


def test_every_kind_of_journal_can_do_the_same_and_no_more() -> None:
    assert {GroupJournal, DelayJournal} < set(all_kinds())
    for kind in all_kinds():
        can_do = {name for name, _ in inspect.getmembers(kind, inspect.isfunction) if name[0] != "_"}
        assert WAYS_IN | READING <= can_do <= WAYS_IN | READING | FOLLOWING | UPKEEP | HANDING_OVER, kind
        assert kind.submit is Journal.submit, f"{kind} has a way in of its own"


@cache
def calls() -> list[tuple[str, str, str]]:
    """Where in the broker a method is called, on what, and which."""
    return [
        (f"{path.relative_to(ROOM).as_posix()}:{node.lineno}", ast.unparse(node.func.value), node.func.attr)
        for path in sorted(ROOM.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    ]


def is_journal(what: str) -> bool:
    return what.split(".")[-1].endswith("journal") or what.endswith("of_sinks")


def test_nobody_speaks_another_dialect_to_a_journal() -> None:
    spoken = [(where, what, name) for where, what, name in calls() if is_journal(what)]
    assert len([name for _, _, name in spoken if name == "submit"]) > 40
    assert [call for call in spoken if call[2] in DIALECTS] == []


def test_nobody_goes_past_a_journal_to_its_partition() -> None:
    assert [
        (where, what, name)
        for where, what, name in calls()
        if name in WAITS and what.endswith(".partition") and is_journal(what.removesuffix(".partition"))
    ] == []


def test_whatever_is_written_comes_through_the_journals_or_the_one_way_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Seen from within: not who could write to partitions, but who did while brokers lived."""
    writers: dict[bool, set[str]] = {True: set(), False: set()}
    append = Partition.append

    def watched(self: Partition, batches: Sequence[CheckedBatch]) -> int:
        writer = Path(sys._getframe(1).f_code.co_filename).relative_to(ROOM).as_posix()
        writers[is_internal(self.source.topic)].add(writer)
        return append(self, batches)

    monkeypatch.setattr(Partition, "append", watched)
    for simulate in (simulate_queue, simulate_transactions, simulate_delays, simulate_sinks):
        simulate(1, 40)

    assert writers == {True: {"storage/journal.py"}, False: {"appending.py"}}


def at(offset: int, group: str = GROUP) -> OffsetsCommitted:
    return OffsetsCommitted(group, (TopicOffsets(TopicName("orders"), TOPIC_ID, ((0, offset, -1, ""),)),))


def known(journal: GroupJournal) -> int:
    """Which offset the group has, as its machine knows it."""
    record = journal.groups.get(GROUP)
    return -1 if record is None else record.offsets.of(TopicName("orders"), TOPIC_ID)[0][1]


def walk(
    body: Callable[[Broker, GroupJournal], Awaitable[None]],
    disk: SimulatedDisk | None = None,
    config: BrokerConfig | None = None,
) -> None:
    async def live() -> None:
        async with running(disk or SimulatedDisk(Random(1)), config) as broker:
            await body(broker, await broker.coordinator.journals.ensure(GROUP))

    asyncio.run(live())


def test_what_is_submitted_holds_at_once_and_is_answered_when_it_is_committed() -> None:
    async def body(_: Broker, journal: GroupJournal) -> None:
        submitted = journal.submit(at(1), at(2))
        assert known(journal) == 2
        assert journal.partition.commit_mark < submitted.end_offset
        await submitted
        assert journal.partition.commit_mark == submitted.end_offset
        assert submitted.committed() is None

    walk(body)


def test_what_is_submitted_by_somebody_who_does_not_wait_is_committed_in_the_end() -> None:
    async def body(_: Broker, journal: GroupJournal) -> None:
        end_offset = journal.submit(at(1)).end_offset
        await until(lambda: journal.partition.commit_mark == end_offset)

    walk(body, config=BrokerConfig(flush_interval_ms=1))


def test_who_is_in_a_hurry_has_it_committed_without_waiting_for_the_interval() -> None:
    async def body(_: Broker, journal: GroupJournal) -> None:
        end_offset = journal.submit(at(1)).end_offset
        journal.submit().hurry()
        await until(lambda: journal.partition.commit_mark == end_offset)

    walk(body, config=BrokerConfig(flush_interval_ms=3_600_000))


def test_to_submit_nothing_is_answered_when_all_before_it_is_committed() -> None:
    async def body(_: Broker, journal: GroupJournal) -> None:
        end_offset = journal.submit(at(1)).end_offset
        await journal.submit()
        assert journal.partition.commit_mark == journal.partition.log.end_offset == end_offset

    walk(body)


def test_what_cannot_be_written_is_not_applied() -> None:
    disk = SimulatedDisk(Random(1))

    async def body(_: Broker, journal: GroupJournal) -> None:
        await journal.submit(at(1))
        disk.fill_up(after_bytes=0)
        with pytest.raises(StorageFull):
            journal.submit(at(2))
        assert known(journal) == 1
        disk.faults.heal()
        await journal.submit(at(3))
        assert known(journal) == 3

    walk(body, disk)


def test_a_disk_that_fails_is_heard_of_by_who_waits_and_by_who_asks_later() -> None:
    disk = SimulatedDisk(Random(1))

    async def body(broker: Broker, journal: GroupJournal) -> None:
        disk.faults.fail_syncs(1, under="logs/__consumer_offsets")
        early, late = journal.submit(at(1)), journal.submit(at(2))
        with pytest.raises(StorageFailed):
            await early
        with pytest.raises(StorageFailed):
            await late
        assert broker.failure.done()

    walk(body, disk, BrokerConfig(commit_log=DIRECT))


def test_a_journal_whose_state_is_large_is_not_written_anew_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One of more events than a journal should have made it long for ever: each upkeep wrote it anew."""
    monkeypatch.setattr(journal_module, "EVENTS_MAX", 10)

    async def body(_: Broker, journal: GroupJournal) -> None:
        await journal.submit(*(at(1, f"group-{number}") for number in range(30)))
        await journal.shorten()
        start_offset = journal.partition.log.start_offset
        assert start_offset > 0
        await journal.shorten()
        assert journal.partition.log.start_offset == start_offset
        await journal.submit(*(at(number) for number in range(200)))
        await journal.shorten()
        assert journal.partition.log.start_offset > start_offset

    walk(body)


def test_events_read_back_lead_to_the_same_state() -> None:
    disk = SimulatedDisk(Random(1))

    async def write(_: Broker, journal: GroupJournal) -> None:
        journal.submit(at(1), at(7))

    async def look(_: Broker, journal: GroupJournal) -> None:
        assert known(journal) == 7

    walk(write, disk)
    walk(look, disk)
