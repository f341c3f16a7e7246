"""Questions that several nodes answer together: each is asked for its own, and the answers are put together.

A leader that is missing is an error, and so is one that does not lead any more: whoever asks looks again.
Nothing is left out in silence.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar, cast

from goqueue.broker.broker import Broker
from goqueue.broker.forwarding import joining
from goqueue.broker.forwarding.carrying import Carrier, ask
from goqueue.broker.forwarding.route import leader_of, route
from goqueue.broker.groups.journal import OFFSETS_TOPIC
from goqueue.broker.read.frames import read_near_frames, watched_by
from goqueue.broker.storage.journal_set import JOURNAL_COUNT
from goqueue.broker.write.publish_once import home_of
from goqueue.model.cluster import NodeId
from goqueue.model.commands import (
    BatchesRead,
    FindOffsets,
    OffsetRange,
    ReadFrames,
    ShowWritten,
    WatchOffsets,
)
from goqueue.model.errors import GoQueueError
from goqueue.model.group_commands import DescribeGroups, ListGroups
from goqueue.model.groups import GroupListing, GroupView
from goqueue.model.ids import TopicName, TopicPartition, places_of
from goqueue.model.places import Command, GroupCoordinators, Partitions, Seat
from goqueue.model.topics import DescribeTopic, ListTopics, TopicView
from goqueue.model.transaction_commands import PublishOnce
from goqueue.model.transactions import PublishedOnce

T = TypeVar("T")
Gather = Callable[[Broker, Any, Carrier], Awaitable[Any]]
Found = dict[TopicPartition, T]
Shares = dict[NodeId, list[tuple[int, TopicPartition]]]
"""What each node leads, with the place of its topic among those asked for."""
_PAUSE_S = 0.1


async def read_nearest(broker: Broker, command: ReadFrames, carrier: Carrier) -> BatchesRead:
    """Frames from the copy that is here, where that will do; else from who leads."""
    if command.rack:
        found = await read_near_frames(broker, command)
        if found is not None:
            return found
        command = replace(command, rack="")
    [node] = route(command.place, broker.metadata, carrier.me)
    return cast(BatchesRead, await carrier.run_at(node, command))


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


async def describe_by_leaders(broker: Broker, command: DescribeTopic, carrier: Carrier) -> TopicView:
    """A topic with the true numbers of all its partitions."""
    topic = broker.metadata.topic(command.name)
    nodes = _shares(broker, [topic.name], carrier.me)
    told = await ask(carrier, dict.fromkeys(nodes, replace(command, only_led=True)))
    return joining.joined_topic(cast(list[TopicView], list(told.values())), topic.partitions)


async def list_by_leaders(broker: Broker, command: ListTopics, carrier: Carrier) -> list[TopicView]:
    """All topics of clients, with the true numbers of all their partitions."""
    counts = broker.topic_counts
    nodes = _shares(broker, counts, carrier.me)
    told = await ask(carrier, dict.fromkeys(nodes, replace(command, only_led=True)))
    return joining.joined_topics(cast(list[list[TopicView]], list(told.values())), counts)


async def show_all_written(broker: Broker, command: ShowWritten, carrier: Carrier) -> None:
    """Each leader has its own committed."""
    homes = route(command.place, broker.metadata, carrier.me)
    await ask(
        carrier,
        {
            node: replace(command, sources=share.partitions) if isinstance(share, Partitions) else command
            for node, share in homes.items()
        },
    )


async def list_all_groups(broker: Broker, command: ListGroups, carrier: Carrier) -> list[GroupListing]:
    """Each coordinator tells of the journals that it leads; one that is being read back is waited for."""
    journals = group_journals(broker, carrier.me)
    asked = {node: replace(command, journals=numbers) for node, numbers in journals.items()}
    told = await ask(carrier, asked)
    return joining.joined_listings(cast(Iterable[list[GroupListing]], told.values()))


def group_journals(broker: Broker, me: NodeId) -> dict[NodeId, list[int]]:
    """Which journals of groups each coordinator has. Raises NoLeader where one has none."""
    journals: dict[NodeId, list[int]] = {}
    for number in range(JOURNAL_COUNT):
        keeper = leader_of(TopicPartition(OFFSETS_TOPIC, number), broker.metadata, me)
        journals.setdefault(keeper, []).append(number)
    return journals


async def describe_all_groups(broker: Broker, command: DescribeGroups, carrier: Carrier) -> list[GroupView]:
    """Each coordinator tells of its own."""
    homes = cast(Mapping[NodeId, GroupCoordinators], route(command.place, broker.metadata, carrier.me))
    told = await ask(carrier, {node: DescribeGroups(groups=share.groups) for node, share in homes.items()})
    return joining.joined_views(cast(Iterable[list[GroupView]], told.values()), command.groups)


async def publish_once_at_leader(broker: Broker, command: PublishOnce, carrier: Carrier) -> PublishedOnce:
    """At the leader of the partition that the message goes to, which any node can tell."""
    leader = leader_of(home_of(broker, command), broker.metadata, carrier.me)
    return cast(PublishedOnce, await carrier.run_at(leader, command))


def where_it_is(not_there: type[GoQueueError]) -> Gather:
    """Asks one node after the other, until one knows of it. Raises what the last one does when none does."""

    async def gather(broker: Broker, command: Any, carrier: Carrier) -> object:
        *others, last = route(Seat.EVERY_NODE, broker.metadata, carrier.me)
        for node in others:
            with suppress(not_there):
                return await carrier.run_at(node, command)
        return await carrier.run_at(last, command)

    return gather


def everywhere(join: Callable[[Sequence[Any]], object]) -> Gather:
    """Asks every node the same."""

    async def gather(broker: Broker, command: Any, carrier: Carrier) -> object:
        return join(list((await ask_every_node(broker, command, carrier)).values()))

    return gather


def at_one_or_everywhere(join: Callable[[Sequence[Any]], object]) -> Gather:
    """The same for a command that may be at home with one node alone."""

    async def gather(broker: Broker, command: Any, carrier: Carrier) -> object:
        homes = route(command.place, broker.metadata, carrier.me)
        return join(list((await ask(carrier, dict.fromkeys(homes, command))).values()))

    return gather


async def ask_every_node(broker: Broker, command: Command, carrier: Carrier) -> dict[NodeId, object]:
    """What all nodes say to one command."""
    nodes = route(Seat.EVERY_NODE, broker.metadata, carrier.me)
    return await ask(carrier, dict.fromkeys(nodes, command))


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
    found: Found[object] = {}
    for answer in (await ask(carrier, asked)).values():
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
