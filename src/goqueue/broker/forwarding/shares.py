"""A publish whose partitions are led by several nodes: each leader gets its share, side by side.

Partitions are chosen here as the verb would: by number, by key, else in turn, past those without a leader.
Messages for one partition stay together and in order. What a leader has not taken is tried again; what it
may have taken is not.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol, cast

from goqueue.broker.broker import Broker
from goqueue.broker.forwarding.route import NOT_RUN, leader_of
from goqueue.core.cluster.values import Topic
from goqueue.model.cluster import NodeId
from goqueue.model.commands import Publish, Published
from goqueue.model.errors import GoQueueError, Invalid, NoLeader
from goqueue.model.ids import TopicPartition
from goqueue.model.messages import Message
from goqueue.model.places import Command
from goqueue.records.partitioners import hash_by


class Waiting(Protocol):
    async def is_worth_another_try(self) -> bool: ...


class Carrier(Protocol):
    """Runs commands at other nodes, and here."""

    me: NodeId

    async def run_at(self, node: NodeId, command: Command) -> object: ...

    def patience(self) -> Waiting: ...


async def publish_in_shares(broker: Broker, command: Publish, carrier: Carrier) -> Published:
    """One entry a message, whoever stored it. Raises what all leaders refuse it for."""
    topic = broker.metadata.topics.get(command.topic)
    if topic is None:
        return cast(Published, await carrier.run_at(carrier.me, command))
    messages = _addressed(broker, topic, command.messages, carrier.me)
    results: list[object] = [None] * len(messages)
    left: Sequence[int] = range(len(messages))
    patience = carrier.patience()
    while True:
        left = await _try_once(broker, carrier, replace(command, messages=messages), left, results)
        if not left or not await patience.is_worth_another_try():
            break
    if results and all(isinstance(result, _WholeShare) for result in results):
        raise cast(_WholeShare, results[0]).error
    return cast(
        Published, [result.error if isinstance(result, _WholeShare) else result for result in results]
    )


class _WholeShare:
    """What a leader refused all that it was given for."""

    def __init__(self, error: GoQueueError) -> None:
        self.error = error


async def _try_once(
    broker: Broker, carrier: Carrier, command: Publish, indexes: Sequence[int], results: list[object]
) -> Sequence[int]:
    """Send each leader its share, and note what came of it; which messages nobody has taken or refused."""
    shares: dict[NodeId, list[int]] = {}
    for index in indexes:
        try:
            source = TopicPartition(command.topic, command.messages[index].partition or 0)
            shares.setdefault(leader_of(source, broker.metadata, carrier.me), []).append(index)
        except NoLeader as error:
            results[index] = error

    async def carry(node: NodeId, share: list[int]) -> None:
        try:
            given = replace(command, messages=[command.messages[index] for index in share])
            outcomes = cast(Published, await carrier.run_at(node, given))
        except GoQueueError as error:
            outcomes = [_WholeShare(error)] * len(share)  # type: ignore[list-item]
        for index, outcome in zip(share, outcomes, strict=True):
            results[index] = outcome

    await asyncio.gather(*(carry(node, share) for node, share in shares.items()))
    return [index for index in indexes if _is_not_run(results[index])]


def _is_not_run(result: object) -> bool:
    return isinstance(result.error if isinstance(result, _WholeShare) else result, NOT_RUN)


def _addressed(broker: Broker, topic: Topic, messages: Sequence[Message], me: NodeId) -> Sequence[Message]:
    """Messages with the partitions they go to. What cannot go anywhere is left for a leader to refuse."""
    hash_key = hash_by(topic.settings.partitioner)
    turns, count = broker.topic(topic.name).turns, topic.partitions
    led = [number for number in range(count) if broker.metadata.record(topic, number).leader is not None]
    led = led or list(range(count))
    addressed = []
    for message in messages:
        if message.partition is None:
            try:
                number = hash_key(message.key) % count if message.key else led[next(turns) % len(led)]
                message = message._replace(partition=number)
            except Invalid:
                pass
        addressed.append(message)
    return addressed
