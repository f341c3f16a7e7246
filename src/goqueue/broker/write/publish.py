"""publish: messages are routed, encoded and stored; the answer tells each one's place.

A message goes to the partition it names, else to its key's, else to the next in turn. One that is to be
delivered later is kept among the delayed ones until then. Very many are taken in by pieces, between which
others have their turn.
"""

from collections.abc import AsyncIterator, Awaitable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count, repeat
from typing import NamedTuple, cast

from goqueue.broker.appending import batches_of, store
from goqueue.broker.broker import Broker, Forwarding, OpenTopic
from goqueue.broker.delays.keeping import keep_delayed
from goqueue.broker.delays.verbs import postpone
from goqueue.broker.schemas.check import misfits, quarantine_for
from goqueue.broker.schemas.quarantine import open_quarantine, told
from goqueue.broker.slices import Slices
from goqueue.broker.tenants.quotas import admit_messages, message_bytes_max, overdue, too_large
from goqueue.broker.write.preparing import recode_built
from goqueue.core.access.account import Account
from goqueue.log.partition_log import CheckedBatch
from goqueue.model.commands import Placed, Publish, Published, Quarantined
from goqueue.model.delays import KeepDelayed, Postponed
from goqueue.model.errors import (
    GoQueueError,
    Invalid,
    InvalidRecord,
    KeyRequired,
    PartitionNotFound,
    SchemaCheckTooSlow,
    SchemaMismatch,
    TopicNotFound,
)
from goqueue.model.messages import Acks, Message, headers_bytes
from goqueue.model.schemas import SchemaValidation, TooSlow
from goqueue.model.settings import CompressionType, TopicSettings
from goqueue.records.partitioners import hash_by
from goqueue.records.wishes import heed

PIECE_COUNT = 1_000
"""Messages that are taken in before others get their turn: about 2 ms."""

Results = list[Placed | Postponed | Quarantined | GoQueueError | None]

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


class _Routed(NamedTuple):
    """Where messages go, by their indexes."""

    messages: Sequence[Message]
    """With what their headers ask for."""
    now: dict[int, list[int]]
    """By partition."""
    later: list[tuple[int, int]]
    """Those that wait, each with its partition."""


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
    problems: Mapping[int, str] = {}
    if settings.schema_validation is not SchemaValidation.NONE:
        problems = await misfits(broker, command.topic, settings, command.messages)
        topic = broker.topic(command.topic)  # it may be another one by now
    messages, routed, later = _route(broker, command, topic, settings, results)
    _require_keys(broker, command, settings, routed, later, results)
    # Looked at once for each partition that gets any, and not for each message.
    for number in routed if not later else {*routed, *[number for _, number in later]}:
        if not topic.partitions[number].takes_messages:
            _pass_over(command, topic, routed, later)
            break
    aside = _without_misfits(routed, later, problems) if problems else {}
    waiting: list[tuple[list[int], Awaitable[None]]] = []
    slices = Slices(broker.clock) if len(routed) > 1 else None
    for partition, indexes in routed.items():
        try:
            if slices is not None and slices.is_over:
                # Each partition's share is stored whole; between two of them others may have their turn.
                await slices.pause()
                _admit_again(broker, command, topic)
            share = [messages[index] for index in indexes]
            batches: Sequence[CheckedBatch] = batches_of(share, now_ms=broker.clock.wall_ms())
            if settings.compression_type is not CompressionType.PRODUCER:
                batches = await recode_built(broker, batches, settings)
                _admit_again(broker, command, topic)
            stored = store(topic.partitions[partition], batches, len(share), command.acks)
        except GoQueueError as error:
            _refuse(broker, command, results, indexes, error)
            continue
        for offset, index, lane in _places(stored.base_offset, indexes, batches):
            results[index] = _new_placed(Placed, (partition, offset, lane))
        if stored.committed is not None:
            waiting.append((indexes, stored.committed))
    if later:
        waiting += await _postpone(broker, command, messages, later, results)
    if aside:
        await _set_aside(broker, command, messages, aside, problems, results)
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


def _admit_again(broker: Broker, command: Publish, topic: OpenTopic) -> None:
    """The same after something was waited for."""
    broker.admit(command.topic, is_own=command.is_own)
    if broker.topic(command.topic) is not topic:
        raise TopicNotFound(command.topic)  # another one has its name by now


def _payer(command: Publish, topic: OpenTopic) -> Account | None:
    """The tenant whose quotas the messages are held to."""
    return None if command.is_own else topic.partitions[0].account


def _route(
    broker: Broker,
    command: Publish,
    topic: OpenTopic,
    settings: TopicSettings,
    results: Results,
) -> _Routed:
    """Where each message goes; what is refused has its result."""
    account = _payer(command, topic)
    max_bytes = message_bytes_max(broker, settings, account)
    messages, may_wish = command.messages, not command.is_own
    changed: dict[int, Message] = {}
    routed: dict[int, list[int]] = {}
    later: list[tuple[int, int]] = []
    count, turns, hash_key = len(topic.partitions), topic.turns, hash_by(settings.partitioner)
    # A thousand messages pass here at a time: tuples are unpacked, nothing is called that need not be.
    for index, (value, key, headers, _, partition, _, due_ms) in enumerate(command.messages):
        size = (len(value) if value else 0) + (len(key) if key else 0)
        size += headers_bytes(headers) if headers and account is not None else 0
        if size > max_bytes:
            _refuse(broker, command, results, [index], too_large(account, size, max_bytes))
            continue
        if partition is None:
            try:
                partition = (hash_key(key) if key else next(turns)) % count
            except Invalid as error:
                _refuse(broker, command, results, [index], error)
                continue
        elif not 0 <= partition < count:
            _refuse(broker, command, results, [index], PartitionNotFound(command.topic, partition))
            continue
        if headers and may_wish:
            try:
                changed[index] = heed(messages[index], index, broker.clock.wall_ms())
            except InvalidRecord as error:
                _refuse(broker, command, results, [index], error)
                continue
            due_ms = changed[index].due_ms
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
    if changed:
        messages = [changed.get(index, message) for index, message in enumerate(messages)]
    return _new_placed(_Routed, (messages, routed, later))


def _require_keys(
    broker: Broker,
    command: Publish,
    settings: TopicSettings,
    routed: dict[int, list[int]],
    later: list[tuple[int, int]],
    results: Results,
) -> None:
    """Refuse messages that a compacted topic could not keep, be it now or later."""
    if not settings.is_compacted:
        return
    messages = command.messages
    keyless = {index for indexes in routed.values() for index in indexes if messages[index].key is None}
    keyless |= {index for index, _ in later if messages[index].key is None}
    if keyless:
        _take_out(routed, later, keyless)
        _refuse(broker, command, results, sorted(keyless), KeyRequired(command.topic))


def _take_out(
    routed: dict[int, list[int]], later: list[tuple[int, int]], indexes_out: Container[int]
) -> None:
    """Some messages go nowhere."""
    for indexes in routed.values():
        indexes[:] = [index for index in indexes if index not in indexes_out]
    later[:] = [pair for pair in later if pair[0] not in indexes_out]
    for partition in [partition for partition, indexes in routed.items() if not indexes]:
        del routed[partition]


def _pass_over(
    command: Publish, topic: OpenTopic, routed: dict[int, list[int]], later: list[tuple[int, int]]
) -> None:
    """Give messages that may go anywhere to other partitions, where theirs is damaged or stopped."""
    chosen = {*routed, *[number for _, number in later]}
    out = {number for number in chosen if not topic.partitions[number].takes_messages}
    turns = topic.turns_past_those_out()

    def goes_anywhere(index: int) -> bool:
        message = command.messages[index]
        return message.partition is None and not message.key

    moved = [index for number in out for index in routed.get(number, ()) if goes_anywhere(index)]
    for number in sorted(out):
        if number in routed:
            routed[number] = [index for index in routed[number] if not goes_anywhere(index)]
            if not routed[number]:
                del routed[number]
    touched = {}
    for index in sorted(moved):
        number = next(turns)
        touched[number] = routed.setdefault(number, [])
        touched[number].append(index)
    for indexes in touched.values():
        indexes.sort()  # in the order in which they came
    for at, (index, number) in enumerate(later):
        if number in out and goes_anywhere(index):
            later[at] = (index, next(turns))


def _without_misfits(
    routed: dict[int, list[int]], later: list[tuple[int, int]], problems: Mapping[int, str]
) -> dict[int, int]:
    """Take out messages that do not fit the topic's schemas; which they are, with their partitions."""
    aside = {index: partition for index, partition in later if index in problems}
    for partition, indexes in routed.items():
        aside.update((index, partition) for index in indexes if index in problems)
    _take_out(routed, later, problems)
    return dict(sorted(aside.items()))


def _places(
    base_offset: int, indexes: Sequence[int], batches: Sequence[CheckedBatch]
) -> Iterable[tuple[int, int, int]]:
    """The offset, index and lane of each message; no Python is run for each of them."""
    if len(batches) == 1:
        return zip(count(base_offset), indexes, repeat(batches[0].lane), strict=False)
    lanes = chain.from_iterable(repeat(batch.lane, batch.header.record_count) for batch in batches)
    return zip(count(base_offset), indexes, lanes, strict=False)


async def _postpone(
    broker: Broker,
    command: Publish,
    messages: Sequence[Message],
    later: list[tuple[int, int]],
    results: Results,
) -> list[tuple[list[int], Awaitable[None]]]:
    """Keep messages until they are due; what is left to wait for."""
    if broker.forwarding is not None:
        await _postpone_at_keeper(broker, command, messages, later, results, broker.forwarding)
        return []
    indexes = [index for index, _ in later]
    try:
        postponed, submitted = postpone(
            broker, command.topic, [(partition, messages[index]) for index, partition in later]
        )
    except GoQueueError as error:
        _refuse(broker, command, results, indexes, error)
        return []
    for index, place in zip(indexes, postponed, strict=True):
        results[index] = place
    committed = submitted.committed() if command.acks is Acks.ALL else None
    return [] if committed is None else [(indexes, committed)]


async def _postpone_at_keeper(
    broker: Broker,
    command: Publish,
    messages: Sequence[Message],
    later: list[tuple[int, int]],
    results: Results,
    forwarding: Forwarding,
) -> None:
    """The same where several nodes have one keeper: it answers when they are committed, whatever the acks."""
    given = KeepDelayed(
        topic=command.topic,
        topic_id=broker.metadata.topic(command.topic).topic_id,
        messages=[(partition, messages[index]) for index, partition in later],
        revision=broker.metadata.revision,
    )
    indexes = [index for index, _ in later]
    try:
        postponed = await forwarding.run(keep_delayed, given)
    except GoQueueError as error:
        _refuse(broker, command, results, indexes, error)
        return
    for index, place in zip(indexes, postponed, strict=True):
        results[index] = place


async def _set_aside(
    broker: Broker,
    command: Publish,
    messages: Sequence[Message],
    aside: Mapping[int, int],
    problems: Mapping[int, str],
    results: Results,
) -> None:
    """Refuse messages that do not fit, or keep them in quarantine, each in the partition it would have."""
    target = quarantine_for(broker, command.topic, broker.metadata.topic(command.topic).settings)
    if target is None:
        for index in aside:
            kind = SchemaCheckTooSlow if isinstance(problems[index], TooSlow) else SchemaMismatch
            _refuse(broker, command, results, [index], kind({index: problems[index]}))
        return
    now_ms = broker.clock.wall_ms()
    kept = [
        told(messages[index], command.topic, problems[index], now_ms)._replace(partition=partition)
        for index, partition in aside.items()
    ]
    try:
        await open_quarantine(broker, command.topic, target)
        kept_aside = Publish(topic=target, messages=kept, acks=command.acks, is_own=True)
        if broker.forwarding is None:
            outcomes = await publish(broker, kept_aside)
        else:
            outcomes = await broker.forwarding.run(publish, kept_aside)
    except GoQueueError as error:
        _refuse(broker, command, results, list(aside), error)
        return
    for index, outcome in zip(aside, outcomes, strict=True):
        if isinstance(outcome, Placed):
            partition, offset, lane = outcome
            outcome = Quarantined(target, partition, offset, problems[index], lane)
        results[index] = outcome


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
