"""Dead letters seen by people: browse them, and send them back to where they came from.

What was sent back is settled for a group of the broker's own, one a topic, and sending is the same move
that brought the dead letters there. So a redrive that was broken off, by a crash or by its time, goes on
where it was, and sends nothing twice.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from goqueue.broker.broker import Broker
from goqueue.broker.groups.journal import GroupJournal
from goqueue.broker.queue.dead_letters import STORY_PREFIX, finish_moves
from goqueue.broker.queue.delivery import delivery_of, pass_start
from goqueue.broker.queue.read import open_runs
from goqueue.broker.slices import Slices
from goqueue.broker.storage.commit_written import commit_written
from goqueue.broker.tenants.quotas import admit_topic_owner
from goqueue.core.delivery.delivery import Delivery
from goqueue.core.delivery.events import MovesBegun
from goqueue.core.delivery.lease import NO_LEASE
from goqueue.model.delivery import (
    DEAD_LETTER_SUFFIX,
    REDRIVE_GROUP_PREFIX,
    BrowseDeadLetters,
    DeadLetter,
    DeadLetters,
    Move,
    Reason,
    Redrive,
    Redriven,
)
from goqueue.model.errors import GoQueueError, ShuttingDown
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.messages import StoredMessage
from goqueue.model.numbers import whole_number
from goqueue.model.settings import MiB

_LOOK_COUNT = 500
_CHUNKS_PER_S = 10
_PATIENCE_NS = 20_000_000_000
"""A redrive that takes longer answers with what it has done; the same request goes on with the rest."""


async def browse(broker: Broker, command: BrowseDeadLetters) -> DeadLetters:
    """Dead letters of a topic that were not sent back, the oldest of each partition first."""
    broker.topic(command.topic)
    admit_topic_owner(broker, command.topic)
    found = DeadLetters([], {})
    dead_topic = broker.topics.get(TopicName(command.topic + DEAD_LETTER_SUFFIX))
    journal = await broker.coordinator.journals.ensure(REDRIVE_GROUP_PREFIX + command.topic)
    for number in range(0 if dead_topic is None else len(dead_topic.partitions)):
        if command.from_offsets is not None and number not in command.from_offsets:
            continue
        source = TopicPartition(TopicName(command.topic + DEAD_LETTER_SUFFIX), number)
        delivery = journal.deliveries.find(REDRIVE_GROUP_PREFIX + command.topic, source)
        offset = 0 if command.from_offsets is None else command.from_offsets[number]
        async for messages, end_offset in _unsettled(broker, source, delivery, offset):
            space = command.limit - len(found.letters)
            found.letters.extend(DeadLetter(source, message) for message in messages[:space])
            if len(messages) >= space:
                end_offset = messages[space].offset if len(messages) > space else end_offset
                if end_offset < broker.readable(source).last_stable_offset:
                    found.next_offsets[number] = end_offset
                break
    return found


async def redrive(broker: Broker, command: Redrive) -> Redriven:
    """Send dead letters back, as many and as fast as asked; returns when they are where they belong."""
    if not broker.is_open:
        raise ShuttingDown
    broker.topic(command.topic)
    admit_topic_owner(broker, command.topic)
    pace = _Pace(broker, command)
    try:
        return await _redrive(broker, command, pace)
    except GoQueueError:
        if not pace.has_begun:
            raise
        # Where it says that it was not done, it is done once more elsewhere: beyond its limit, and what was
        # sent back here is not counted.
        return pace.redriven(is_complete=False)


async def _redrive(broker: Broker, command: Redrive, pace: "_Pace") -> Redriven:
    dead_topic = broker.topics.get(TopicName(command.topic + DEAD_LETTER_SUFFIX))
    group = REDRIVE_GROUP_PREFIX + command.topic
    journal = await broker.coordinator.journals.ensure(group)
    for number in range(0 if dead_topic is None else len(dead_topic.partitions)):
        source = TopicPartition(TopicName(command.topic + DEAD_LETTER_SUFFIX), number)
        delivery = delivery_of(broker, journal, group, source)
        pass_start(broker, journal, delivery)
        await finish_moves(broker, journal, delivery)  # of a redrive that was broken off
        async for messages, _ in _unsettled(broker, source, delivery, delivery.floor):
            matching = [message for message in messages if _matches(command, message)]
            if not await _send(broker, journal, delivery, command, matching, pace):
                return pace.redriven(is_complete=False)
    return pace.redriven(is_complete=True)


@dataclass(slots=True)
class _Pace:
    """How far a redrive has come, and how fast it may go on."""

    broker: Broker
    command: Redrive
    matched: int = 0
    moved: int = 0
    has_begun: bool = False
    """Some are on their way, whatever comes."""
    deadline_ns: int = 0

    def __post_init__(self) -> None:
        self.deadline_ns = self.broker.clock.monotonic_ns() + _PATIENCE_NS

    @property
    def allowance(self) -> int:
        """How many may be sent in one go."""
        count = _LOOK_COUNT
        if self.command.rate_per_s is not None:
            count = max(int(self.command.rate_per_s / _CHUNKS_PER_S), 1)
        if self.command.limit is not None:
            count = min(count, self.command.limit - self.matched)
        return count

    @property
    def is_late(self) -> bool:
        return self.broker.clock.monotonic_ns() >= self.deadline_ns or not self.broker.is_open

    async def wait(self, count: int) -> None:
        if self.command.rate_per_s is not None:
            await asyncio.sleep(count / self.command.rate_per_s)

    def redriven(self, *, is_complete: bool) -> Redriven:
        return Redriven(self.matched, self.moved, is_complete)


async def _send(
    broker: Broker,
    journal: GroupJournal,
    delivery: Delivery,
    command: Redrive,
    messages: Sequence[StoredMessage],
    pace: _Pace,
) -> bool:
    """Send messages back in the pace asked for; False when the time or the limit is used up."""
    while messages:
        count = pace.allowance
        if count <= 0 or pace.is_late:
            return False
        chunk, messages = messages[:count], messages[count:]
        pace.matched += len(chunk)
        if command.is_dry_run:
            continue
        moves = tuple(_move_back(broker, command, delivery, message) for message in chunk)
        await journal.submit(MovesBegun(delivery.number, NO_LEASE, moves))
        pace.has_begun = True
        await finish_moves(broker, journal, delivery)
        pace.moved += sum(delivery.is_settled(move.offset) for move in moves)
        if delivery.moves:
            return False  # the disk holds them up; they go on by themselves
        await pace.wait(len(chunk))
    return True


def _move_back(broker: Broker, command: Redrive, delivery: Delivery, message: StoredMessage) -> Move:
    """To the partition it came from, as far as that is known."""
    number = whole_number(_fact(message, "original-partition"))
    if number is None:
        number = delivery.source.partition
    count = len(broker.topic(command.topic).partitions)
    return Move(
        message.offset, command.topic, number % count, Reason.REDRIVEN, 0, "", "", broker.clock.wall_ms()
    )


async def _unsettled(
    broker: Broker, source: TopicPartition, delivery: Delivery | None, offset: int
) -> AsyncIterator[tuple[list[StoredMessage], int]]:
    """Messages that were not sent back and are not on their way, a look at a time, and where it ends.

    Without a delivery nothing was ever sent back.
    """
    partition = broker.readable(source)
    await commit_written([partition])
    end_offset = partition.last_stable_offset
    offset = max(offset, partition.log.start_offset, 0 if delivery is None else delivery.floor)
    slices = Slices(broker.clock)
    while offset < end_offset:
        await slices.pause()  # what is made of a look counts in the next slice
        look_end = min(offset + _LOOK_COUNT, end_offset)
        runs = [(offset, look_end)]
        if delivery is not None:
            gaps = delivery.settled.gaps(offset, look_end)
            runs = [run for gap in gaps for run in delivery.busy.gaps(*gap)]
        if runs:
            opened = await open_runs(broker, source, runs, 16 * MiB)
            if opened.messages:
                look_end = opened.left[0][0] if opened.left else look_end
                yield opened.messages, look_end
        offset = look_end


def _matches(command: Redrive, message: StoredMessage) -> bool:
    died_ms = whole_number(_fact(message, "time")) or 0
    return (
        (not command.reasons or (_fact(message, "reason") or b"").decode(errors="replace") in command.reasons)
        and (not command.group or _fact(message, "group") == command.group.encode())
        and (command.key is None or message.key == command.key)
        and (command.since_ms is None or died_ms >= command.since_ms)
        and (command.until_ms is None or died_ms < command.until_ms)
    )


def _fact(message: StoredMessage, name: str) -> bytes | None:
    """A part of the story that a dead letter carries."""
    return dict(message.headers).get(STORY_PREFIX + name)
