"""A leader that registers anew while a publish waits: what was written may be kept, and is not sent again."""

import asyncio

import pytest

from goqueue.broker.forwarding.at_home import at_home
from goqueue.broker.replication.replicated import Replicated
from goqueue.broker.write.publish import publish
from goqueue.model.cluster import NodeId
from goqueue.model.commands import Placed, Publish, Published
from goqueue.model.errors import AnswerLost, LeadershipLost
from goqueue.model.messages import Acks, Message
from tests.unit.broker.moving.town import ORDERS, A, B, C, Town, live


def waiting_publish(town: Town, node: NodeId) -> "asyncio.Task[Published]":
    """A publish with acks=all, asked for at a node."""
    command = Publish(topic=ORDERS, messages=[Message(b"once", partition=0)], acks=Acks.ALL)

    async def asked() -> Published:
        return await at_home(town.broker(node), publish, command)

    return town.at(node, asked())


def is_served(town: Town, node: NodeId) -> bool:
    """Whether who leads by the word of a node knows that, and how far messages count."""
    leader = town.record(node).leader
    copies = None if leader is None else town.broker(leader).topics[ORDERS].partitions[0].copies
    return isinstance(copies, Replicated) and copies.is_leader and copies.machine.is_mark_known


@pytest.mark.parametrize("is_passed_on", [False, True], ids=["asked the leader", "asked another"])
def test_a_publish_whose_leader_registers_anew_is_stored_once_or_told_of(is_passed_on: bool) -> None:
    async def story(town: Town) -> None:
        await town.start(A, B, C)
        await town.create(A, copies=3)
        leader = town.record(A).replicas[0]
        other, asked = (node for node in (A, B, C) if node != leader)
        await town.until(lambda: len(town.record(leader).isr) == 3)
        town.cut_off(other)  # it does not confirm what is written
        partition = town.broker(leader).topics[ORDERS].partitions[0]
        waiting = waiting_publish(town, asked if is_passed_on else leader)
        await town.until(lambda: partition.log.end_offset == 1)

        town.end_session(leader)
        town.heal()
        try:
            [told] = await waiting
        except AnswerLost:  # the way to the leader was cut, too
            assert is_passed_on
        else:
            assert isinstance(told, Placed | LeadershipLost), repr(told)
        await town.until(lambda: len(town.record(asked).isr) == 3 and is_served(town, asked))
        [offset] = await town.publish([b"behind"])
        assert offset <= 1, "it is there once, or not at all"

    live(story)
