"""Transactional ids whose journal this node leads, or leads no more."""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import pytest

from goqueue.broker.broker import Broker
from goqueue.broker.storage.journal import Journal
from goqueue.broker.storage.journal_set import journal_number
from goqueue.broker.storage.partition import Partition
from goqueue.model.errors import NotCoordinator
from goqueue.model.transactions import TransactionState
from goqueue.testing.world.disk import SimulatedDisk
from tests.unit.broker.queue import queue_steps as steps
from tests.unit.broker.running import running, until
from tests.unit.broker.transactions.transaction_steps import WRITER, journal_of, new_writer

NUMBER = journal_number(WRITER)


def in_a_broker(walk: Callable[[Broker], Awaitable[None]]) -> None:
    async def run() -> None:
        async with running(SimulatedDisk(Random(1))) as broker:
            await steps.orders(broker)
            await walk(broker)

    asyncio.run(run())


def let_go(broker: Broker) -> Partition:
    """Another node leads the journal now; its partition is still there, and follows."""
    broker.transactions.is_shared = True
    journal = broker.transactions.let_go(NUMBER)
    assert journal is not None
    return journal.partition


async def take_over(broker: Broker, partition: Partition) -> None:
    async def read_back(journal: Journal[Any]) -> None:
        await broker.threads.run(journal.replay)

    await broker.transactions.take_over(partition, read_back)


def test_a_transaction_is_open_still_for_who_takes_the_journal_over() -> None:
    async def walk(broker: Broker) -> None:
        writer = await new_writer(broker)
        await writer.add(0)
        partition = let_go(broker)
        with pytest.raises(NotCoordinator):
            await writer.add(0)

        await take_over(broker, partition)

        known = broker.transactions.get(WRITER)
        assert known is not None
        assert known.state is TransactionState.ONGOING

    in_a_broker(walk)


def test_a_transaction_that_takes_too_long_is_aborted_by_who_has_taken_the_journal_over() -> None:
    async def walk(broker: Broker) -> None:
        writer = await new_writer(broker, timeout_ms=200)
        await writer.add(0)
        broker.transactions.watch.close()  # whatever was expected here was expected by another node
        await take_over(broker, let_go(broker))

        def is_aborted() -> bool:
            known = broker.transactions.get(WRITER)
            return known is not None and known.state is TransactionState.COMPLETE_ABORT

        await until(is_aborted)

    in_a_broker(walk)


def test_a_journal_that_was_let_go_of_takes_nothing_though_its_node_leads_again() -> None:
    async def walk(broker: Broker) -> None:
        writer = await new_writer(broker)
        before = await journal_of(writer)
        known = before.transactions.get(WRITER)
        assert known is not None
        await take_over(broker, let_go(broker))

        with pytest.raises(NotCoordinator):
            before.submit(known)
        with pytest.raises(NotCoordinator):
            before.submit()

    in_a_broker(walk)
