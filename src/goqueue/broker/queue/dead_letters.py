"""How messages get from one topic to another, once, whatever crashes: to the dead letters, and back.

The journal hears first which messages are to be moved. They are appended as those of the delivery's own
producer, and when the disk has them the journal hears that they are settled. A restart, or a disk that
recovers, goes through the same steps again: what is there already is told by its sequence number.
"""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise

from goqueue.broker.appending import numbered_batches
from goqueue.broker.broker import Broker
from goqueue.broker.groups.journal import GroupJournal
from goqueue.broker.producers import init_producer
from goqueue.broker.queue.delivery import pass_over
from goqueue.broker.queue.moving import append_moved
from goqueue.broker.queue.read import open_runs
from goqueue.broker.topics.verbs import create_topic
from goqueue.broker.tracing.places import traceparent_of
from goqueue.core.delivery.delivery import Delivery
from goqueue.core.delivery.events import ProducerTaken, Settled
from goqueue.core.delivery.lease import NO_LEASE
from goqueue.core.delivery.runs import runs_of
from goqueue.model.delivery import DEAD_LETTER_SUFFIX, AppendMoved, Move, Reason
from goqueue.model.errors import GoQueueError, OutOfSequence, TopicExists
from goqueue.model.ids import TopicPartition
from goqueue.model.messages import Headers, Message, StoredMessage
from goqueue.model.numbers import whole_number
from goqueue.model.settings import HOUR_MS, MiB
from goqueue.model.telemetry import TRACEPARENT
from goqueue.model.topics import CreateTopic
from goqueue.model.transaction_commands import TakeProducerId

log = logging.getLogger(__name__)

STORY_PREFIX = "goqueue-dlq-"
REDRIVES_HEADER = "goqueue-dlq-redrives"
"""How often a message was sent back: the one part of the story that stays with it."""
_RETENTION_MS = 336 * HOUR_MS
_MOVES_AT_ONCE = 100
_PRODUCER_EPOCH = 0


def start_moves(broker: Broker, journal: GroupJournal, delivery: Delivery) -> None:
    """Have messages moved, without waiting for it."""
    if not broker.queue.move_lock(delivery).locked():
        broker.keep(asyncio.get_running_loop().create_task(finish_moves(broker, journal, delivery)))


async def finish_moves(broker: Broker, journal: GroupJournal, delivery: Delivery) -> None:
    """Move what is to be moved. What a failing disk holds up now is tried again by the upkeep."""
    lock = broker.queue.move_lock(delivery)
    try:
        await broker.carry_out(_move_all(broker, journal, delivery), lock)
    except GoQueueError as error:
        broker.queue.counters.moves_failed += 1
        log.warning("moves_held_up group=%s partition=%s reason=%s", delivery.group, delivery.source, error)


async def _move_all(broker: Broker, journal: GroupJournal, delivery: Delivery) -> None:
    while delivery.moves and not broker.is_closed:
        if not delivery.moves.has_producer:
            await _take_producer(broker, journal, delivery)
        pending = _rising(delivery.moves.pending()[:_MOVES_AT_ONCE])
        runs = runs_of([move.offset for move, _ in pending])
        opened = await open_runs(broker, delivery.source, runs, 64 * MiB)
        if opened.damaged:
            pass_over(broker, journal, delivery, opened.damaged)
        if opened.void:
            journal.submit(Settled(delivery.number, NO_LEASE, tuple(opened.void)))
        messages = {message.offset: message for message in opened.messages}
        # Up to the first that is gone: its number is missing, so what is behind it gets others.
        gone = next((at for at, (move, _) in enumerate(pending) if move.offset not in messages), len(pending))
        ready = pending[:gone]
        # Whoever takes the group over must find these moves, and their numbers, before anything is moved.
        await journal.submit()
        try:
            await _append_once(broker, delivery, ready, messages)
        except OutOfSequence:
            # One before is gone; or the target is another topic of the same name by now, and has never seen
            # this producer.
            await _take_producer(broker, journal, delivery)
            continue
        moved = [move for move, _ in ready]
        settled = runs_of([move.offset for move in moved])
        await journal.submit(Settled(delivery.number, NO_LEASE, tuple(settled)))
        _count(broker, delivery, moved)


def _rising(pending: Sequence[tuple[Move, int]]) -> Sequence[tuple[Move, int]]:
    """As many of the first as lie one behind the other in the log too: they can be read in their order."""
    for at, ((before, _), (behind, _)) in enumerate(pairwise(pending), 1):
        if behind.offset < before.offset:
            return pending[:at]
    return pending


async def _take_producer(broker: Broker, journal: GroupJournal, delivery: Delivery) -> None:
    await journal.submit(ProducerTaken(delivery.number, await init_producer(broker, TakeProducerId())))


async def _append_once(
    broker: Broker,
    delivery: Delivery,
    pending: Sequence[tuple[Move, int]],
    messages: dict[int, StoredMessage],
) -> None:
    """Write messages to where they go, except those that are there; returns when they are committed."""
    shares: dict[TopicPartition, list[tuple[Move, tuple[bytes, int]]]] = {}
    for move, sequence in pending:
        target = TopicPartition(move.topic, move.partition)
        if target not in shares:
            await _make_target(broker, delivery, target)
        stored = messages[move.offset]
        traceparent = traceparent_of(broker, delivery.source, stored.offset, stored.headers)
        message = moved_message(delivery, move, stored, traceparent)
        batches = numbered_batches(
            [message],
            producer_id=delivery.moves.producer_id,
            producer_epoch=_PRODUCER_EPOCH,
            first=sequence,
            now_ms=broker.clock.wall_ms(),
        )
        shares.setdefault(target, []).extend((move, (bytes(batch.body), batch.lane)) for batch in batches)
    moving = [_append_share(broker, delivery, target, share) for target, share in shares.items()]
    # All of them to their end: a second try beside the rest of the first would only find it there.
    outcomes = await asyncio.gather(*moving, return_exceptions=True)
    for error in filter(None, outcomes):
        raise error


async def _append_share(
    broker: Broker,
    delivery: Delivery,
    target: TopicPartition,
    share: Sequence[tuple[Move, tuple[bytes, int]]],
) -> None:
    """What goes to one partition, wherever that is led."""
    batches = [batch for _, batch in share]
    placed = await broker.at_home(append_moved, AppendMoved(target=target, batches=batches))
    for (move, _), (offset, is_new) in zip(share, placed, strict=True):
        if is_new:
            _tell(broker, delivery, move, target, offset)


async def _make_target(broker: Broker, delivery: Delivery, target: TopicPartition) -> None:
    """Dead letters get their topic with the first of them."""
    if target.topic not in broker.topics and target.topic.endswith(DEAD_LETTER_SUFFIX):
        count = len(broker.topic(delivery.source.topic).partitions)
        settings = {"retention.ms": str(_RETENTION_MS)}
        with suppress(TopicExists):  # somebody else was quicker
            wanted = CreateTopic(name=target.topic, partitions=count, settings=settings, is_own=True)
            await broker.at_home(create_topic, wanted)


def moved_message(
    delivery: Delivery, move: Move, stored: StoredMessage, traceparent: bytes | None = None
) -> Message:
    """The message as it is written anew: the same, but for the story that it carries, and its trace."""
    own = tuple(pair for pair in stored.headers if not pair[0].startswith(STORY_PREFIX))
    if traceparent is not None:
        own += ((TRACEPARENT, traceparent),)
    count = whole_number(dict(stored.headers).get(REDRIVES_HEADER)) or 0
    if move.reason is Reason.REDRIVEN:
        story: Headers = ((REDRIVES_HEADER, b"%d" % (count + 1)),)
    else:
        facts = {
            "original-topic": delivery.source.topic,
            "original-partition": delivery.source.partition,
            "original-offset": stored.offset,
            "original-timestamp": stored.timestamp_ms,
            "attempts": move.attempts,
            "reason": move.reason.value,
            "group": delivery.group,
            "consumer": move.consumer,
            "error": move.error,
            "time": move.time_ms,
        }
        story = tuple((STORY_PREFIX + name, str(fact).encode()) for name, fact in facts.items())
        if count:
            story += ((REDRIVES_HEADER, b"%d" % count),)
    return Message(stored.value, stored.key, own + story, stored.lane)


def _tell(broker: Broker, delivery: Delivery, move: Move, target: TopicPartition, offset: int) -> None:
    """A message is where it goes."""
    listener, there = broker.telemetry.of(delivery.source), broker.telemetry.of(target)
    time_us = broker.clock.wall_us()
    if move.reason is Reason.REDRIVEN:
        listener.redriven(move.offset, there, offset, time_us)
    else:
        listener.dead_lettered(delivery.group, move.consumer, move.offset, there, offset, time_us)


def _count(broker: Broker, delivery: Delivery, moved: Sequence[Move]) -> None:
    counters = broker.queue.counters
    for move in moved:
        if move.reason is Reason.REDRIVEN:
            counters.redriven += 1
        else:
            counters.dead_by_reason[move.reason.value] += 1
            counters.dead_by_topic[delivery.source.topic] += 1
