"""Groups whose journal this node leads, or leads no more."""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random

import pytest

from goqueue.broker.broker import Broker
from goqueue.broker.groups.assigned import at_work
from goqueue.broker.groups.journal import GroupJournal
from goqueue.broker.groups.verbs import heartbeat
from goqueue.broker.storage.journal_set import journal_number
from goqueue.broker.storage.partition import Partition
from goqueue.model.errors import CoordinatorLoading, GoQueueError, NotCoordinator
from goqueue.model.group_commands import Heartbeat
from goqueue.model.groups import NO_GENERATION, Membership
from goqueue.testing.world.disk import SimulatedDisk
from tests.unit.broker.groups.test_groups import CONFIG, commit, committed, join, stable
from tests.unit.broker.queue import queue_steps as steps
from tests.unit.broker.running import running, until

NUMBER = journal_number("readers")


def in_a_broker(walk: Callable[[Broker], Awaitable[None]]) -> None:
    async def run() -> None:
        async with running(SimulatedDisk(Random(1)), CONFIG) as broker:
            await steps.orders(broker)
            await walk(broker)

    asyncio.run(run())


def let_go(broker: Broker, number: int) -> Partition:
    """Another node leads a journal now; its partition is still there, and follows."""
    journal = broker.coordinator.journals.numbered(number)
    assert journal is not None
    broker.coordinator.journals.is_shared = True
    broker.coordinator.let_go(number)
    return journal.partition


async def take_over(broker: Broker, partition: Partition) -> None:
    async def read_back(journal: GroupJournal) -> None:
        await broker.threads.run(journal.replay)

    await broker.coordinator.take_over(partition, read_back)


def test_what_was_committed_is_known_to_who_takes_the_journal_over() -> None:
    async def walk(broker: Broker) -> None:
        await commit(broker, (0, 5, -1, ""))
        partition = let_go(broker, NUMBER)
        with pytest.raises(NotCoordinator):
            await committed(broker)

        await take_over(broker, partition)

        assert await committed(broker) == {0: 5}

    in_a_broker(walk)


def test_members_are_members_still_and_messages_that_are_out_stay_out() -> None:
    async def walk(broker: Broker) -> None:
        who = await stable(broker)
        await steps.put(broker, "a", "b")
        ann = await steps.join(broker, group="workers")
        taken = await steps.take(broker, ann, 1)
        numbers = {journal_number(group) for group in ("readers", "workers")}

        for partition in [let_go(broker, number) for number in sorted(numbers)]:
            await take_over(broker, partition)

        heartbeat(broker, Heartbeat(who))
        assert steps.values(await steps.take(broker, ann)) == ["b"]
        assert (await steps.ack(broker, taken)).refusals == {}
        assert steps.floor(broker) == 1

    in_a_broker(walk)


def test_who_waits_in_a_group_that_has_gone_is_sent_to_look_for_it() -> None:
    async def walk(broker: Broker) -> None:
        await stable(broker)
        waits = asyncio.create_task(join(broker))  # for the member that is there to join again
        ann = await steps.join(broker, group="workers")
        polls = asyncio.create_task(steps.take(broker, ann, wait_ms=60_000))
        await until(lambda: bool(broker.waiting_reads))

        for group in ("readers", "workers"):
            if broker.coordinator.journals.numbered(journal_number(group)) is not None:
                let_go(broker, journal_number(group))

        for waiter in (waits, polls):
            with pytest.raises(NotCoordinator):
                await waiter

    in_a_broker(walk)


def test_while_a_journal_is_read_back_everybody_is_asked_for_patience() -> None:
    async def walk(broker: Broker) -> None:
        await commit(broker, (0, 5, -1, ""))
        partition = let_go(broker, NUMBER)
        go_on = asyncio.Event()

        async def read_back(journal: GroupJournal) -> None:
            await go_on.wait()
            await broker.threads.run(journal.replay)

        taking = asyncio.create_task(broker.coordinator.take_over(partition, read_back))
        await asyncio.sleep(0)
        with pytest.raises(CoordinatorLoading):
            await committed(broker)
        go_on.set()
        await taking
        assert await committed(broker) == {0: 5}

    in_a_broker(walk)


def test_whoever_finds_a_journal_that_was_taken_over_finds_the_members_of_its_groups() -> None:
    async def walk(broker: Broker) -> None:
        ann = await steps.join(broker, group="workers")
        who = Membership("workers", ann.member_id, NO_GENERATION)
        partition = let_go(broker, journal_number("workers"))
        found: list[object] = []
        journals = broker.coordinator.journals

        def look() -> None:
            try:
                found.append(at_work(broker, who)[0].name)
            except GoQueueError as error:
                found.append(error)

        class Watched(dict[int, GroupJournal]):
            def __setitem__(self, number: int, journal: GroupJournal) -> None:
                super().__setitem__(number, journal)
                asyncio.get_running_loop().call_soon(look)

        journals._opened = Watched(journals._opened)
        await take_over(broker, partition)

        assert found == ["workers"]

    in_a_broker(walk)


def test_a_journal_that_goes_while_it_is_read_back_is_not_served() -> None:
    async def walk(broker: Broker) -> None:
        await commit(broker, (0, 5, -1, ""))
        partition = let_go(broker, NUMBER)

        async def read_back(_: GroupJournal) -> None:
            await asyncio.Event().wait()

        taking = asyncio.create_task(broker.coordinator.take_over(partition, read_back))
        await asyncio.sleep(0)
        broker.coordinator.let_go(NUMBER)
        await taking

        with pytest.raises(NotCoordinator):
            await committed(broker)

    in_a_broker(walk)
