"""publish: messages are routed, encoded and stored; the answer tells each one's place.

A message goes to the partition it names, else to its key's, else to the next in turn. One that is to be
delivered later is kept among the delayed ones until then. Very many are taken in by pieces, between which
others have their turn.
"""

from collections.abc import AsyncIterator, Awaitable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import cast

import mmh3

from goqueue.broker.appending import batches_of, store
from goqueue.broker.broker import Broker, OpenTopic
from goqueue.broker.delays.verbs import postpone
from goqueue.broker.schemas.check import misfits, quarantine_for
from goqueue.broker.schemas.quarantine import open_quarantine, told
from goqueue.broker.slices import Slices
from goqueue.broker.tenants.quotas import admit_messages, message_bytes_max, overdue, too_large
from goqueue.core.access.account import Account
from goqueue.model.commands import Appended, Placed, Publish, Published, Quarantined
from goqueue.model.delays import Postponed
from goqueue.model.errors import (
    GoQueueError,
    PartitionNotFound,
    SchemaCheckTooSlow,
    SchemaMismatch,
    TopicNotFound,
)
from goqueue.model.messages import Acks, Message
from goqueue.model.schemas import SchemaValidation, TooSlow
from goqueue.model.settings import TopicSettings

PIECE_COUNT = 1_000
"""Messages that are taken in before others get their turn: about 2 ms."""

Results = list[Placed | Postponed | Quarantined | GoQueueError | None]

_hash = mmh3.hash
_new_placed = tuple.__new__
"""Past the named tuple's own constructor, which is Python and would be a tenth of all the work here."""


async def publish(broker: Broker, command: Publish) -> Published:
    """Take in messages: admit, route, encode, store, wait for the disk. A bad one does not spoil the rest."""
    topic = _admit(broker, command)
    if len(command.messages) <= PIECE_COUNT:
        taken = await _take_in(broker, command, topic)
        return await taken.published(broker)
    pieces = [taken async for taken in _in_pieces(broker, command, topic)]
    return [result for taken in pieces for result in await taken.published(broker)]


@dataclass(slots=True)
class _Taken:
    """Messages that are stored or refused, as far as they are before the disk has them."""

    command: Publish
    results: Results
    waiting: list[tuple[list[int], Awaitable[None]]]

    async def published(self, broker: Broker) -> Published:
        """Wait for the disk."""
        for indexes, committed in self.waiting:
            try:
                await committed
            except GoQueueError as error:
                _refuse(broker, self.command, self.results, indexes, error)
        return cast(Published, self.results)


async def _in_pieces(broker: Broker, command: Publish, topic: OpenTopic) -> AsyncIterator[_Taken]:
    slices = Slices(broker.clock)
    for first in range(0, len(command.messages), PIECE_COUNT):
        piece = replace(command, messages=command.messages[first : first + PIECE_COUNT])
        await slices.pause()
        try:
            if first:
                topic = broker.topic(command.topic)  # it may be another one by now
            yield await _take_in(broker, piece, topic)
        except GoQueueError as error:
            refused = _Taken(piece, [None] * len(piece.messages), [])
            _refuse(broker, piece, refused.results, list(range(len(piece.messages))), error)
            yield refused


async def _take_in(broker: Broker, command: Publish, topic: OpenTopic) -> _Taken:
    settings = broker.metadata.topic(command.topic).settings
    results: Results = [None] * len(command.messages)
    wrong: Collection[int] = ()
    if settings.schema_validation is not SchemaValidation.NONE:
        wrong = await _set_aside(broker, command, settings, results)
        topic = broker.topic(command.topic)  # it may be another one by now
    routed, later = _route(broker, command, topic, settings, wrong, results)
    waiting: list[tuple[list[int], Awaitable[None]]] = []
    slices = Slices(broker.clock) if len(routed) > 1 else None
    for partition, indexes in routed.items():
        try:
            if slices is not None and slices.is_over:
                # Each partition's share is stored whole; between two of them others may have their turn.
                await slices.pause()
                broker.admit(command.topic, is_own=command.is_own)
                if broker.topic(command.topic) is not topic:
                    raise TopicNotFound(command.topic)  # another one has its name by now
            stored = _store(broker, topic, partition, [command.messages[i] for i in indexes], command.acks)
        except GoQueueError as error:
            _refuse(broker, command, results, indexes, error)
            continue
        for offset, index in enumerate(indexes, stored.base_offset):
            results[index] = _new_placed(Placed, (partition, offset))
        if stored.committed is not None:
            waiting.append((indexes, stored.committed))
    if later:
        waiting += _postpone(broker, command, later, results)
    return _Taken(command, results, waiting)


def _admit(broker: Broker, command: Publish) -> OpenTopic:
    """The topic, if it and its tenant take messages now."""
    try:
        broker.admit(command.topic, is_own=command.is_own)
        topic = broker.topic(command.topic)
        if (account := _payer(command, topic)) is not None:
            admit_messages(broker, account, command.messages)
    except GoQueueError as error:
        _tell_refused(broker, command, len(command.messages), error)
        raise
    return topic


def _payer(command: Publish, topic: OpenTopic) -> Account | None:
    """The tenant whose quotas the messages are held to."""
    return None if command.is_own else topic.partitions[0].account


def _route(
    broker: Broker,
    command: Publish,
    topic: OpenTopic,
    settings: TopicSettings,
    wrong: Collection[int],
    results: Results,
) -> tuple[dict[int, list[int]], list[tuple[int, int]]]:
    """Messages by partition, and those that wait, each with its own; what is refused has its result."""
    account = _payer(command, topic)
    max_bytes = message_bytes_max(broker, settings, account)
    numbered: Iterable[tuple[int, Message]] = enumerate(command.messages)
    if wrong:
        numbered = [pair for pair in numbered if pair[0] not in wrong]
    routed: dict[int, list[int]] = {}
    later: list[tuple[int, int]] = []
    count, turns = len(topic.partitions), topic.turns
    # A thousand messages pass here at a time: tuples are unpacked, nothing is called that need not be.
    for index, (value, key, _, _, partition, _, due_ms) in numbered:
        size = (len(value) if value else 0) + (len(key) if key else 0)
        if size > max_bytes:
            _refuse(broker, command, results, [index], too_large(account, size, max_bytes))
            continue
        if partition is None:
            partition = (_hash(key, 0, False) if key else next(turns)) % count
        elif not 0 <= partition < count:
            _refuse(broker, command, results, [index], PartitionNotFound(command.topic, partition))
            continue
        if due_ms is not None:
            if account is not None and (too_late := overdue(account, due_ms, now_ms=broker.clock.wall_ms())):
                _refuse(broker, command, results, [index], too_late)
                continue
            later.append((index, partition))
            continue
        if partition in routed:
            routed[partition].append(index)
        else:
            routed[partition] = [index]
    return routed, later


def _store(
    broker: Broker, topic: OpenTopic, number: int, messages: Sequence[Message], acks: Acks
) -> Appended:
    partition = topic.partitions[number]
    return store(partition, batches_of(messages, now_ms=broker.clock.wall_ms()), len(messages), acks)


def _postpone(
    broker: Broker,
    command: Publish,
    later: list[tuple[int, int]],
    results: Results,
) -> list[tuple[list[int], Awaitable[None]]]:
    """Keep messages until they are due; what is left to wait for."""
    indexes = [index for index, _ in later]
    try:
        postponed, committed = postpone(
            broker, command.topic, [(partition, command.messages[index]) for index, partition in later]
        )
    except GoQueueError as error:
        _refuse(broker, command, results, indexes, error)
        return []
    for index, place in zip(indexes, postponed, strict=True):
        results[index] = place
    return [(indexes, committed)] if committed is not None and command.acks is Acks.ALL else []


async def _set_aside(
    broker: Broker, command: Publish, settings: TopicSettings, results: Results
) -> Collection[int]:
    """Refuse the messages that do not fit the topic's schemas, or keep them in quarantine; which they are."""
    problems = await misfits(broker, command.topic, settings, command.messages)
    if not problems:
        return problems
    target = quarantine_for(command.topic, settings)
    if target is None:
        for index, reason in problems.items():
            kind = SchemaCheckTooSlow if isinstance(reason, TooSlow) else SchemaMismatch
            _refuse(broker, command, results, [index], kind({index: reason}))
        return problems
    now_ms = broker.clock.wall_ms()
    kept = [told(command.messages[i], command.topic, reason, now_ms) for i, reason in problems.items()]
    try:
        await open_quarantine(broker, command.topic, target)
        kept_aside = Publish(topic=target, messages=kept, acks=command.acks, is_own=True)
        outcomes = await publish(broker, kept_aside)
    except GoQueueError as error:
        _refuse(broker, command, results, list(problems), error)
        return problems
    for (index, reason), outcome in zip(problems.items(), outcomes, strict=True):
        if isinstance(outcome, Placed):
            outcome = Quarantined(target, outcome.partition, outcome.offset, reason)
        results[index] = outcome
    return problems


def _refuse(
    broker: Broker, command: Publish, results: Results, indexes: list[int], error: GoQueueError
) -> None:
    for index in indexes:
        results[index] = error
    _tell_refused(broker, command, len(indexes), error)


def _tell_refused(broker: Broker, command: Publish, count: int, error: GoQueueError) -> None:
    broker.telemetry.refused(
        command.topic, error.code, str(error), count=count, time_us=broker.clock.wall_us()
    )
