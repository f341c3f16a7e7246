"""A publish whose partitions are led by several nodes: each leader gets its share, side by side.

Partitions are chosen here as the verb would: by number, by key, else in turn, past those without a leader.
Messages for one partition stay together and in order. What a leader has not taken is tried again; what it may
have taken is not.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, cast

from goqueue.broker.broker import Broker
from goqueue.broker.forwarding.carrying import Carrier
from goqueue.broker.forwarding.route import NOT_RUN
from goqueue.core.cluster.values import Topic
from goqueue.model.cluster import NodeId
from goqueue.model.commands import Placed, Publish, Published
from goqueue.model.errors import GoQueueError, Invalid, NoLeader
from goqueue.model.messages import Message
from goqueue.records.partitioners import hash_by

_new_message = tuple.__new__
"""Past the named tuple's own constructor: a thousand messages pass here at a time."""


class _Share(NamedTuple):
    """What one leader gets: messages, and where they stood."""

    indexes: list[int]
    messages: list[Message]


class _Refused(NamedTuple):
    """What a leader refused its whole share for."""

    error: GoQueueError


async def publish_in_shares(broker: Broker, command: Publish, carrier: Carrier) -> Published:
    """One entry a message, whoever stored it. Raises what all leaders refuse it for."""
    topic = broker.metadata.topics.get(command.topic)
    if topic is None:
        return cast(Published, await carrier.run_at(carrier.me, command))
    results: list[object] = [None] * len(command.messages)
    left = list(range(len(results)))
    patience = carrier.patience()
    while True:
        shares = _share_out(broker, command, topic, carrier, left, results)
        await asyncio.gather(
            *(_carry(carrier, node, share, command, results) for node, share in shares.items())
        )
        if set(map(type, results)) == {Placed}:
            return cast(Published, results)
        left = [index for index in left if _is_not_run(results[index])]
        if not left or not await patience.is_worth_another_try():
            break
        topic = broker.metadata.topics.get(command.topic, topic)
    if all(isinstance(result, _Refused) for result in results):
        raise cast(_Refused, results[0]).error
    return cast(Published, [result[0] if isinstance(result, _Refused) else result for result in results])


async def _carry(
    carrier: Carrier, node: NodeId, share: _Share, command: Publish, results: list[object]
) -> None:
    """Have a leader store its share, and note what came of each message."""
    outcomes: Sequence[object]
    try:
        given = replace(command, messages=share.messages)
        outcomes = cast(Published, await carrier.run_at(node, given))
    except GoQueueError as error:
        outcomes = [_Refused(error)] * len(share.indexes)
    if len(outcomes) == len(results):
        results[:] = outcomes
    else:
        for index, outcome in zip(share.indexes, outcomes, strict=True):
            results[index] = outcome


def _is_not_run(result: object) -> bool:
    return isinstance(result[0] if isinstance(result, _Refused) else result, NOT_RUN)


def _share_out(
    broker: Broker,
    command: Publish,
    topic: Topic,
    carrier: Carrier,
    indexes: list[int],
    results: list[object],
) -> dict[NodeId, _Share]:
    """Who gets which messages. What cannot be told is left for a leader to refuse; what nobody leads is
    noted.
    """
    leaders, count = carrier.leaders(topic), topic.partitions
    if len(indexes) == len(results) and leaders.count(leaders[0]) == count and leaders[0] is not None:
        return {leaders[0]: _Share(indexes, list(command.messages))}
    hash_key, turns = hash_by(topic.settings.partitioner), broker.topic(topic.name).turns
    led = [number for number, leader in enumerate(leaders) if leader is not None] or list(range(count))
    shares: dict[NodeId, _Share] = {}
    for index in indexes:
        message = command.messages[index]
        value, key, headers, lane, number, timestamp_ms, due_ms = message
        if number is None and key:
            try:
                number = hash_key(key) % count
            except Invalid:
                number = led[0]
        elif number is None:
            number = led[next(turns) % len(led)]
            fields = (value, key, headers, lane, number, timestamp_ms, due_ms)
            message = _new_message(Message, fields)
        leader = leaders[number] if 0 <= number < count else carrier.me
        if leader is None:
            results[index] = NoLeader(command.topic, number)
            continue
        share = shares.get(leader)
        if share is None:
            share = shares[leader] = _Share([], [])
        share[0].append(index)
        share[1].append(message)
    return shares
