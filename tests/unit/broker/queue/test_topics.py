"""The work queue while its topics come, go and grow."""

import asyncio

import pytest

from goqueue.broker.broker import Broker
from goqueue.broker.groups.assigned import join_assigned
from goqueue.broker.queue.settle import settle
from goqueue.broker.queue.stats import reliability_stats
from goqueue.broker.topics.verbs import add_partitions, create_topic, delete_topic
from goqueue.broker.write.publish import publish
from goqueue.model.commands import Publish
from goqueue.model.delivery import TTL_HEADER, Action, DescribeReliability, Settle
from goqueue.model.errors import ReceiptNotFound
from goqueue.model.group_commands import JoinAssigned
from goqueue.model.ids import TopicName
from goqueue.model.messages import Message
from goqueue.model.names import TOPIC_NAME_CHARACTERS_MAX
from goqueue.model.topics import AddPartitions, CreateTopic, DeleteTopic
from tests.unit.broker.lives import Lives
from tests.unit.broker.queue.queue_steps import (
    DEAD_ORDERS,
    Consumer,
    floor,
    join,
    nack,
    orders,
    put,
    reject,
    stored,
    take,
    values,
)
from tests.unit.broker.running import ORDERS

RETURNS = TopicName("returns")


@pytest.mark.parametrize("action", Action)
def test_receipts_of_a_topic_that_was_deleted_are_unknown_at_once(action: Action) -> None:
    async def story(broker: Broker) -> None:
        await orders(broker)
        await put(broker, "a")
        [taken] = await take(broker, await join(broker))
        await delete_topic(broker, DeleteTopic(name=ORDERS))

        outcome = await settle(broker, Settle(action=action, receipts=[taken.receipt], visibility_ms=1_000))

        assert isinstance(outcome.refusals[0], ReceiptNotFound)

    Lives(1).live(story)


def test_what_was_out_of_a_deleted_topic_takes_no_room_from_its_consumer() -> None:
    async def story(broker: Broker) -> None:
        await orders(broker)
        await put(broker, *(f"{number}" for number in range(1_000)))
        await create_topic(broker, CreateTopic(name=RETURNS, partitions=1))
        joined = await join_assigned(
            broker, JoinAssigned(group="workers", client_id="ann", topics=[ORDERS, RETURNS])
        )
        ann = Consumer("workers", joined.member_id)
        assert len(await take(broker, ann, 1_000)) == 1_000
        await publish(broker, Publish(topic=RETURNS, messages=[Message(b"back")]))
        assert await take(broker, ann) == []
        await delete_topic(broker, DeleteTopic(name=ORDERS))

        assert values(await take(broker, ann)) == ["back"]
        assert reliability_stats(broker, DescribeReliability()).in_flight == 1

    Lives(2).live(story)


@pytest.mark.parametrize("what", ["comes back", "grows"])
def test_a_poll_that_waits_hears_when_its_topic(what: str) -> None:
    async def story(broker: Broker) -> None:
        await orders(broker)
        ann = await join(broker)
        began_ms = broker.clock.wall_ms()
        waiting = asyncio.ensure_future(take(broker, ann, wait_ms=30_000))
        await asyncio.sleep(0.5)
        if what == "comes back":
            await delete_topic(broker, DeleteTopic(name=ORDERS))
            await orders(broker, partitions=2)
        else:
            await add_partitions(broker, AddPartitions(name=ORDERS, total=2))
        await publish(broker, Publish(topic=ORDERS, messages=[Message(b"a", partition=1)]))

        assert values(await waiting) == ["a"]
        assert broker.clock.wall_ms() - began_ms < 1_000

    Lives(3).live(story)


def test_messages_given_back_from_many_leases_at_once_are_each_counted_once() -> None:
    async def story(broker: Broker) -> None:
        await orders(broker)
        await put(broker, "a", "b", "c")
        ann = await join(broker)
        taken = [await take(broker, ann, 1) for _ in range(3)]

        await nack(broker, [message for [message] in taken])

        assert broker.queue.counters.retried == 3

    Lives(4).live(story)


def test_a_topic_with_the_longest_name_has_dead_letters_too() -> None:
    name = TopicName("o" * TOPIC_NAME_CHARACTERS_MAX)

    async def story(broker: Broker) -> None:
        await create_topic(broker, CreateTopic(name=name, partitions=1))
        await publish(broker, Publish(topic=name, messages=[Message(b"a")]))
        await reject(broker, await take(broker, await join(broker, topic=name)))

        assert [letter.value for letter in await stored(broker, TopicName(f"{name}.dlq"))] == [b"a"]
        assert floor(broker, topic=name) == 1

    Lives(5).live(story)


def test_a_message_that_grew_too_old_can_be_taken_from_the_dead_letters() -> None:
    async def story(broker: Broker) -> None:
        await orders(broker, ttl_dead_letters="true")
        await put(broker, "a", headers=((TTL_HEADER, b"50"),))
        await asyncio.sleep(0.1)
        assert await take(broker, await join(broker)) == []
        await asyncio.sleep(1)

        [dead] = await take(broker, await join(broker, group="undertakers", topic=DEAD_ORDERS))

        assert dead.value == "a"
        assert dict(dead.headers)["goqueue-dlq-attempts"] == b"0", "nobody has ever had it"

    Lives(6).live(story)
