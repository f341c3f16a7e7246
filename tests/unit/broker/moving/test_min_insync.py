"""`min.insync.replicas` as a setting of a topic: it holds for who leads, from when it is changed."""

import pytest

from goqueue.broker.topics.verbs import alter_settings, create_topic, describe_settings
from goqueue.broker.write.publish import publish
from goqueue.model.cluster import NodeId
from goqueue.model.commands import Placed, Publish
from goqueue.model.errors import GoQueueError, InvalidSetting, NotEnoughReplicas
from goqueue.model.ids import TopicName
from goqueue.model.messages import Acks, Message
from goqueue.model.topics import AlterSettings, CreateTopic, DescribeSettings, SettingChange
from tests.unit.broker.moving.town import ORDERS, A, B, C, Town, live

NAME = "min.insync.replicas"


async def alter(town: Town, value: str | None, *, at: NodeId = A) -> None:
    command = AlterSettings(name=ORDERS, changes=[SettingChange(NAME, value)])
    await town.at(at, alter_settings(town.broker(at), command))


def shown(town: Town, node: NodeId) -> tuple[str, bool]:
    views = describe_settings(town.broker(node), DescribeSettings(name=ORDERS))
    return next((view.value, view.is_default) for view in views if view.name == NAME)


def holds(town: Town, node: NodeId) -> int:
    """What the node's replicas go by: it hears of the setting a moment later."""
    settings = town.broker(node).topics[ORDERS].settings
    return 0 if settings is None else settings.min_insync_replicas


async def published(town: Town, leader: NodeId) -> Placed:
    command = Publish(topic=ORDERS, messages=[Message(value=b"x", partition=0)], acks=Acks.ALL)
    [placed] = await town.at(leader, publish(town.broker(leader), command))
    if isinstance(placed, GoQueueError):
        raise placed
    assert isinstance(placed, Placed)
    return placed


def test_as_many_copies_must_hold_a_message_as_the_topic_says() -> None:
    async def story(town: Town) -> None:
        await town.start(A, B)
        await town.create(A, copies=2)
        assert shown(town, A) == ("1", True)
        await alter(town, "2")
        await town.until(lambda: shown(town, B) == ("2", False))
        leader, other = town.record(A).replicas
        await town.until(lambda: holds(town, leader) == 2)
        await town.publish([b"first"])
        town.kill(other)
        await town.until(lambda: town.record(leader).isr == (leader,))

        with pytest.raises(NotEnoughReplicas):
            await published(town, leader)
        assert town.record(leader).elr == (other,), "it has everything, and may lead"
        await town.start(other)
        await town.until(lambda: len(town.record(leader).isr) == 2)

        assert (await published(town, leader)).offset == 1

    live(story)


def test_what_is_lowered_holds_at_once() -> None:
    async def story(town: Town) -> None:
        await town.start(A, B, C)
        await town.create(A, copies=3)
        leader = town.record(A).replicas[0]
        assert shown(town, A) == ("2", True)
        for node in {A, B, C} - {leader}:
            town.kill(node)
        await town.until(lambda: town.record(leader).isr == (leader,))
        with pytest.raises(NotEnoughReplicas):
            await published(town, leader)

        await alter(town, "1", at=leader)
        await town.until(lambda: holds(town, leader) == 1)
        await town.until(lambda: town.record(leader).isr == (leader,) and not town.record(leader).elr)

        assert (await published(town, leader)).offset == 0

    live(story)


def test_more_than_there_are_copies_is_refused_and_so_is_none() -> None:
    async def story(town: Town) -> None:
        await town.start(A, B)
        await town.create(A, copies=2)
        for value in ("3", "0", "-1", "many"):
            with pytest.raises(InvalidSetting):
                await alter(town, value)
        made = CreateTopic(name=TopicName("other"), partitions=1, replication=1, settings={NAME: "2"})
        with pytest.raises(InvalidSetting, match="there is 1 copy"):
            await town.at(A, create_topic(town.broker(A), made))
        await alter(town, None)

        assert shown(town, A) == ("1", True)

    live(story)
