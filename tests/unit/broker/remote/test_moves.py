"""Messages that a coordinator moves between topics led by other nodes: each once, whoever dies."""

import asyncio
from collections import Counter
from contextlib import suppress
from random import Random

import pytest

from goqueue.broker.appending import numbered_batches
from goqueue.broker.groups.journal import OFFSETS_TOPIC
from goqueue.broker.queue.dead_letters import start_moves
from goqueue.broker.queue.moving import append_moved
from goqueue.broker.read.read import read_messages
from goqueue.broker.storage.journal_set import journal_number
from goqueue.core.delivery.events import MovesBegun, ProducerTaken
from goqueue.model.commands import ReadMessages
from goqueue.model.delivery import DEAD_LETTER_SUFFIX, Action, AppendMoved, Move, MovedTo, Reason
from goqueue.model.errors import GoQueueError, NotLeader
from goqueue.model.ids import ProducerId, TopicName, TopicPartition
from goqueue.model.messages import Message
from goqueue.testing.world.disk import SimulatedDisk
from tests.unit.broker.queue import queue_steps as steps
from tests.unit.broker.remote.several import ORDERS, Member, Several, several, values
from tests.unit.broker.running import running, until
from tests.unit.broker.transactions.transaction_steps import IdleFlusher

DEAD_ORDERS = TopicName(ORDERS + DEAD_LETTER_SUFFIX)


async def dead(world: Several, partitions: int = 1) -> Counter[str]:
    """The values of all dead letters."""
    found: Counter[str] = Counter()
    name = next(iter(world.nodes))
    for number in range(partitions):
        reading = ReadMessages(source=TopicPartition(DEAD_ORDERS, number), limit=1_000)
        read = await world.run(name, read_messages, reading)
        found.update((message.value or b"").decode() for message in read.messages)
    return found


def has_dead_topic(world: Several) -> bool:
    return all(DEAD_ORDERS in node.broker.topics for node in world.nodes.values())


def test_messages_that_are_rejected_lie_where_their_topic_is_led_and_come_no_more() -> None:
    async def story(world: Several) -> None:
        await world.create(partitions=4)
        member = await Member(world, world.coordinator(), "workers").join()
        for number in range(4):
            await world.put(f"a{number}", f"b{number}", number=number)
        taken: list[tuple[str, str]] = []
        while len(taken) < 8:
            taken += await member.take(wait_ms=5_000)
        await member.settle(Action.REJECT, taken, reason="bad")
        await world.until(lambda: has_dead_topic(world))
        leaders = {world.leader(DEAD_ORDERS, number) for number in range(4)}
        assert len(leaders) > 1, "or nothing was moved to another node"
        while len(found := await dead(world, 4)) < 8:
            await asyncio.sleep(0.1)
        assert found == Counter(dict.fromkeys(values(taken), 1))
        assert values(await member.take()) == []

    several(story)


def test_a_message_that_fails_too_often_is_tried_again_and_then_is_a_dead_letter() -> None:
    async def story(world: Several) -> None:
        await world.create(retries_max="2", retry_backoff_ms="10")
        group = world.group_apart()
        member = await Member(world, world.coordinator(group), group).join()
        await world.put("bad")
        for _ in range(3):
            taken = await member.take(wait_ms=5_000)
            assert values(taken) == ["bad"]
            await member.settle(Action.NACK, taken)
        await world.until(lambda: has_dead_topic(world))
        while not (found := await dead(world)):
            await asyncio.sleep(0.1)
        assert found == {"bad": 1}
        assert values(await member.take()) == []

    several(story)


@pytest.mark.parametrize("victim", ["coordinator", "leader"])
@pytest.mark.parametrize("late_s", [0.0, 0.002, 0.004, 0.01])
def test_a_death_in_the_midst_of_moving_neither_loses_nor_doubles_a_message(
    victim: str, late_s: float
) -> None:
    async def story(world: Several) -> None:
        await world.create(copies=2)
        group = world.group_apart()
        name = world.coordinator(group)
        member = await Member(world, name, group).join()
        await world.put("first")
        await member.settle(Action.REJECT, await member.take(wait_ms=5_000), reason="bad")
        await world.until(lambda: has_dead_topic(world))
        while not await dead(world):
            await asyncio.sleep(0.1)
        target = name if victim == "coordinator" else world.leader(DEAD_ORDERS)
        assert target is not None
        member.name = next(node for node in world.nodes if node not in (name, target))
        wanted = {f"v{number}" for number in range(20)}
        await world.put(*wanted)
        taken = await member.take(wait_ms=5_000)
        assert set(values(taken)) == wanted
        settling = asyncio.ensure_future(member.settle(Action.REJECT, taken, reason="bad"))
        await asyncio.sleep(late_s)
        world.kill(target)
        with suppress(GoQueueError, AssertionError):
            await settling  # if nobody said that they are rejected, they may come again
        await world.until(lambda: world.leader(OFFSETS_TOPIC, journal_number(group)) in world.nodes)
        await world.until(lambda: world.leader(DEAD_ORDERS) in world.nodes)
        deadline_s = asyncio.get_running_loop().time() + 120
        while len(found := await dead(world)) < 1 + len(wanted):
            assert asyncio.get_running_loop().time() < deadline_s, found
            if again := await member.take(wait_ms=1_000):
                await member.settle(Action.REJECT, again, reason="bad")
        assert found == Counter(dict.fromkeys({*wanted, "first"}, 1))

    several(story, count=5)


def test_numbers_are_not_looked_at_where_a_partition_is_only_followed() -> None:
    async def story(world: Several) -> None:
        await world.create(copies=3)
        leader = world.leader()
        assert leader is not None
        [batch] = numbered_batches([Message(b"v")], producer_id=7, producer_epoch=0, first=0, now_ms=1)
        target = TopicPartition(ORDERS, 0)
        moved = AppendMoved(target=target, batches=[(bytes(batch.body), batch.lane)])
        for node in world.nodes:
            assert await world.run(node, append_moved, moved) == [MovedTo(0, is_new=node == "n0")]
        follower = next(node for node in world.nodes if node != leader)
        await world.until(lambda: bool(world.nodes[follower].broker.partition(target).producers.all()))
        with pytest.raises(NotLeader):
            await world.begin(follower, append_moved(world.nodes[follower].broker, moved))

    several(story)


def test_nothing_is_moved_before_the_journal_has_safely_heard_of_it() -> None:
    async def walk() -> None:
        async with running(SimulatedDisk(Random(1))) as broker:
            await steps.orders(broker)
            await steps.put(broker, "a")
            ann = await steps.join(broker)
            taken = await steps.take(broker, ann)
            journal = broker.coordinator.journals.find(ann.group)
            assert journal is not None
            [delivery] = journal.deliveries
            await journal.submit(ProducerTaken(delivery.number, ProducerId(5)))
            [lease] = delivery.leases
            move = Move(taken[0].offset, DEAD_ORDERS, 0, Reason.REJECTED, 1, "", "", 0)
            flusher, journal.partition.flusher = journal.partition.flusher, IdleFlusher()

            journal.submit(MovesBegun(delivery.number, lease, (move,)))
            start_moves(broker, journal, delivery)
            for _ in range(100):
                await asyncio.sleep(0)
            assert DEAD_ORDERS not in broker.topics

            journal.partition.flusher = flusher
            flusher.request(journal.partition)
            await until(lambda: not delivery.moves)
            assert [message.value for message in await steps.stored(broker, DEAD_ORDERS)] == [b"a"]

    asyncio.run(walk())
