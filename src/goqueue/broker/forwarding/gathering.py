"""Questions about all partitions of some topics: each leader is asked for its own, and the answers are put
together.
"""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Protocol, TypeVar, cast

from goqueue.broker.broker import Broker
from goqueue.broker.forwarding.route import leader_of
from goqueue.broker.read.frames import watched_by
from goqueue.model.cluster import NodeId
from goqueue.model.commands import FindOffsets, OffsetRange, WatchOffsets
from goqueue.model.ids import TopicName, TopicPartition, places_of
from goqueue.model.places import Command

T = TypeVar("T")
Found = dict[TopicPartition, T]
Shares = dict[NodeId, list[tuple[int, TopicPartition]]]
"""What each node leads, with the place of its topic among those asked for."""
_PAUSE_S = 0.1


class Carrier(Protocol):
    """Runs commands at other nodes, and here."""

    me: NodeId

    async def run_at(self, node: NodeId, command: Command) -> object: ...


async def find_in_all(broker: Broker, command: FindOffsets, carrier: Carrier) -> Found[int]:
    """What all leaders say. Raises what any of them raises."""
    shares = _shares(broker, command.topics, carrier.me)
    asked = {node: replace(command, topics=(), only=_sources(share)) for node, share in shares.items()}
    return cast(Found[int], await _put_together(asked, shares, carrier))


async def watch_all(broker: Broker, command: WatchOffsets, carrier: Carrier) -> Found[OffsetRange]:
    """The same; waits until one of the partitions ends behind what the caller knows of it."""
    watched = watched_by(broker, command)
    deadline_ns = broker.clock.monotonic_ns() + command.wait_ms * 1_000_000
    while True:
        shares = _shares(broker, watched(), carrier.me)
        asked = {
            node: replace(command, topics=(), pattern=None, only=_sources(share), wait_ms=0)
            for node, share in shares.items()
        }
        ranges = cast(Found[OffsetRange], await _put_together(asked, shares, carrier))
        has_more = any(found.end_offset > command.past.get(at, -1) for at, found in ranges.items())
        left_ms = (deadline_ns - broker.clock.monotonic_ns()) // 1_000_000
        if has_more or left_ms <= 0 or not broker.is_open:
            return ranges
        await _first_of(carrier, {node: replace(ask, wait_ms=left_ms) for node, ask in asked.items()})


def _shares(broker: Broker, topics: Iterable[str], me: NodeId) -> Shares:
    """The partitions of topics by their leaders. Raises TopicNotFound, and NoLeader where one has none."""
    shares: Shares = {}
    for at, name in enumerate(topics):
        topic = broker.metadata.topic(name)
        for source in places_of(TopicName(name), range(topic.partitions)):
            shares.setdefault(leader_of(source, broker.metadata, me), []).append((at, source))
    return shares


def _sources(share: Iterable[tuple[int, TopicPartition]]) -> list[TopicPartition]:
    return [source for _, source in share]


async def _put_together(asked: Mapping[NodeId, Command], shares: Shares, carrier: Carrier) -> Found[object]:
    """What all say, in the order of topics and partitions."""
    answers = await asyncio.gather(*(carrier.run_at(node, command) for node, command in asked.items()))
    found: Found[object] = {}
    for answer in answers:
        found |= cast(Found[object], answer)
    order = sorted((place, source) for share in shares.values() for place, source in share)
    return {source: found[source] for _, source in order}


async def _first_of(carrier: Carrier, asked: Mapping[NodeId, Command]) -> None:
    """Wait until one leader has something to say; the others need not go on."""
    if not asked:
        await asyncio.sleep(_PAUSE_S)  # there may be a topic by then
        return
    asking = [asyncio.ensure_future(carrier.run_at(node, command)) for node, command in asked.items()]
    try:
        done, _ = await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
