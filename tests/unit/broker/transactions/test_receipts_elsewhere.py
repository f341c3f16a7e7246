"""Messages that a transaction will acknowledge, where other nodes have given them out."""

import asyncio

import pytest

from goqueue.broker.queue.auto_commit import commit_polled
from goqueue.broker.storage.journal_set import journal_number
from goqueue.broker.transactions.journal import TRANSACTIONS_TOPIC
from goqueue.broker.transactions.verbs import add_receipts, init_transactional
from goqueue.model.cluster import NodeId
from goqueue.model.delivery import Action, CommitPolled
from goqueue.model.errors import AlreadySettled
from goqueue.model.groups import NO_GENERATION, Membership
from goqueue.model.transaction_commands import AddReceiptsToTransaction, InitProducer
from goqueue.model.transactions import Marker, ProducerEpoch
from tests.unit.broker.remote.several import Member, Several, several, values

WRITER = "writer"
FAR_S = 60
"""Longer than any lease."""


async def prepared(nodes: Several) -> tuple[Member, ProducerEpoch, list[tuple[str, str]]]:
    """A member of a group whose coordinator is not the transaction's, and what it has taken."""
    await nodes.create(copies=3)
    await nodes.put("job")
    coordinator = nodes.leader(TRANSACTIONS_TOPIC, journal_number(WRITER))
    group = next(name for name in (f"g{at}" for at in range(1_000)) if nodes.coordinator(name) != coordinator)
    member = await Member(nodes, next(iter(nodes.nodes)), group).join()
    taken = await member.take(wait_ms=5_000)
    assert values(taken) == ["job"]
    command = InitProducer(transactional_id=WRITER, timeout_ms=900_000)
    return member, await nodes.run(member.name, init_transactional, command), taken


async def add(nodes: Several, name: NodeId, producer: ProducerEpoch, taken: list[tuple[str, str]]) -> None:
    receipts = [receipt for _, receipt in taken]
    command = AddReceiptsToTransaction(transactional_id=WRITER, producer=producer, receipts=receipts)
    await nodes.run(name, add_receipts, command)


async def end(nodes: Several, name: NodeId, producer: ProducerEpoch, marker: Marker) -> None:
    await nodes.end(name, WRITER, producer, marker)


def test_a_message_is_hidden_until_the_commit_and_never_comes_again_whoever_dies() -> None:
    async def story(nodes: Several) -> None:
        member, producer, taken = await prepared(nodes)
        await add(nodes, member.name, producer, taken)
        coordinator = nodes.coordinator(member.group)
        nodes.kill(coordinator)
        await nodes.until(lambda: nodes.coordinator(member.group) != coordinator)
        name = next(iter(nodes.nodes))
        other = await Member(nodes, name, member.group).join()
        await asyncio.sleep(FAR_S)
        assert await other.take() == []
        await end(nodes, name, producer, Marker.COMMIT)
        await asyncio.sleep(FAR_S)
        assert await other.take() == []

    several(story)


def test_with_the_abort_a_message_goes_to_another() -> None:
    async def story(nodes: Several) -> None:
        member, producer, taken = await prepared(nodes)
        await add(nodes, member.name, producer, taken)
        await asyncio.sleep(FAR_S)
        assert await member.take() == []
        await end(nodes, member.name, producer, Marker.ABORT)
        assert values(await member.take(wait_ms=10_000)) == ["job"]

    several(story)


def test_neither_a_consumer_that_extends_nor_one_that_polls_again_takes_it_from_the_transaction() -> None:
    async def story(nodes: Several) -> None:
        member, producer, taken = await prepared(nodes)
        await add(nodes, member.name, producer, taken)
        await member.settle(Action.EXTEND, taken, visibility_ms=1_000)
        polled = CommitPolled(Membership(member.group, member.member_id, NO_GENERATION))
        assert await nodes.run(member.name, commit_polled, polled) == 0
        await asyncio.sleep(FAR_S)
        assert await member.take() == []
        await end(nodes, member.name, producer, Marker.ABORT)
        assert values(await member.take(wait_ms=10_000)) == ["job"]

    several(story)


def test_what_is_settled_already_cannot_be_committed() -> None:
    async def story(nodes: Several) -> None:
        member, producer, taken = await prepared(nodes)
        await add(nodes, member.name, producer, taken)
        await member.settle(Action.ACK, taken)
        with pytest.raises(AlreadySettled):
            await end(nodes, member.name, producer, Marker.COMMIT)
        await end(nodes, member.name, producer, Marker.ABORT)

    several(story)
