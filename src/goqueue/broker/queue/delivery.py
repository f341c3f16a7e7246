"""How the broker carries deliveries: where they begin, what the log offers them, what time does to them."""

import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from goqueue.broker.broker import Broker
from goqueue.broker.groups.assigned import terms_of
from goqueue.broker.groups.journal import GroupJournal
from goqueue.broker.read.read import read, visible
from goqueue.broker.storage.journal_set import journal_number
from goqueue.core.delivery.delivery import Delivery
from goqueue.core.delivery.events import DeliveryKept, Event, MovesBegun, PassedOver, Returned, Settled
from goqueue.core.delivery.lease import NO_LEASE
from goqueue.core.delivery.retries import RetryPolicy, expire
from goqueue.core.delivery.runs import Run, Runs, count_of, runs_of
from goqueue.model.commands import BatchesRead, PartitionRead, PartitionReadFailed, Read
from goqueue.model.delivery import DEAD_LETTER_SUFFIX, PassedRun
from goqueue.model.errors import Corrupt, GoQueueError, OffsetNotAvailable, OffsetOutOfRange
from goqueue.model.group_settings import OffsetReset
from goqueue.model.groups import GroupKind
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.settings import MiB, TopicSettings
from goqueue.records.layout import read_header

log = logging.getLogger(__name__)

SCAN_BYTES = MiB
LOOK_AHEAD = 100_000
"""The scan for lanes goes on, a piece a poll, until so many messages are on the shelf."""
_LEASE_BITS = 32
_DELIVERY_BITS = 24
_US_PER_MS = 1_000
_REASON_MAX = 200

StoredBatch = tuple[int, int, memoryview, int]
"""First offset, end offset, the batch and its lane."""


def new_nonce(broker: Broker, delivery: Delivery) -> tuple[int, int]:
    """A lease number that no lease of the delivery has, and the nonce that names both in a receipt."""
    lease = broker.chance.getrandbits(_LEASE_BITS)
    while lease in delivery.leases:
        lease = broker.chance.getrandbits(_LEASE_BITS)
    place = journal_number(delivery.group) << _DELIVERY_BITS | delivery.number
    return lease, place << _LEASE_BITS | lease


def journal_of_nonce(nonce: int) -> int:
    """The number of the journal that keeps the delivery which a nonce names."""
    return nonce >> _LEASE_BITS + _DELIVERY_BITS


def named_by(broker: Broker, nonce: int) -> tuple[GroupJournal, Delivery, int] | None:
    """The delivery and the lease that a nonce names, if the delivery is known."""
    place, lease = nonce >> _LEASE_BITS, nonce & (1 << _LEASE_BITS) - 1
    journal = broker.coordinator.journals.numbered(journal_of_nonce(nonce))
    if journal is None:
        return None
    delivery = journal.deliveries.numbered(place & (1 << _DELIVERY_BITS) - 1)
    return None if delivery is None else (journal, delivery, lease)


def delivery_of(broker: Broker, journal: GroupJournal, group: str, source: TopicPartition) -> Delivery:
    """A group's delivery from a partition, which may begin here: see `_beginning`.

    Whoever tells somebody what it finds there waits for `begun_for_good` first.
    """
    topic_id = broker.metadata.topic(source.topic).topic_id
    known = journal.deliveries.find(group, source)
    if known is not None and known.topic_id == topic_id:
        return known
    record = journal.groups.get(group)
    row = None if record is None else record.offsets.of(source.topic, topic_id).get(source.partition)
    floor, is_late = _beginning(broker, group, source) if row is None else (row[1], False)
    number = broker.chance.getrandbits(_DELIVERY_BITS)
    while journal.deliveries.numbered(number) is not None:
        number = broker.chance.getrandbits(_DELIVERY_BITS)
    kept = journal.submit(DeliveryKept(number, group, source.topic, topic_id, source.partition, floor))
    begun = journal.deliveries.numbered(number)
    assert begun is not None, "a delivery that was just kept is there"
    if is_late:
        broker.queue.beginnings[begun] = kept
    return begun


async def begun_for_good(broker: Broker, deliveries: Iterable[Delivery]) -> None:
    """Return when nothing takes back that deliveries have begun with what comes.

    Else they would begin anew behind all that has come since their group was told that it waits for it.
    """
    beginnings = broker.queue.beginnings
    for delivery in deliveries:
        if (kept := beginnings.get(delivery)) is not None:
            await kept
            beginnings.pop(delivery, None)


def is_share_group(broker: Broker, group: str) -> bool:
    """Whether it is one of Kafka's share consumers, for whom the group says what the topic says to others."""
    terms = terms_of(broker, group)
    return terms is not None and terms.kind is GroupKind.SHARE


def _beginning(broker: Broker, group: str, source: TopicPartition) -> tuple[int, bool]:
    """Where a group begins that has had nothing of a partition, and whether that is with what comes."""
    partition = broker.readable(source)
    is_late = broker.group_settings.of(group).share_offset_reset is OffsetReset.LATEST
    if is_late and is_share_group(broker, group):
        return partition.last_stable_offset, True
    return partition.log.start_offset, False


def policy_of(broker: Broker, delivery: Delivery) -> RetryPolicy:
    """What the topic, or the share group, says about messages that come back."""
    source = delivery.source
    settings = broker.metadata.topic(source.topic).settings
    retries_max = settings.retries_max
    if is_share_group(broker, delivery.group):
        retries_max = broker.group_settings.of(delivery.group).share_delivery_count_max - 1
    return RetryPolicy(
        retries_max,
        settings.retry_backoff_ms,
        settings.retry_backoff_max_ms,
        dead_letters_of(broker, source),
    )


def dead_letters_of(broker: Broker, source: TopicPartition) -> TopicPartition | None:
    """Where dead letters of a partition go; nowhere from a topic that holds them already."""
    if source.topic.endswith(DEAD_LETTER_SUFFIX):
        return None
    name = TopicName(source.topic + DEAD_LETTER_SUFFIX)
    topic = broker.topics.get(name)
    # The topic may have grown since its dead letters got theirs.
    partition = source.partition if topic is None else source.partition % len(topic.partitions)
    return TopicPartition(name, partition)


@lru_cache(maxsize=1024)
def weights_of(settings: TopicSettings) -> tuple[int, ...]:
    return tuple(map(int, settings.lane_weights.split(",")))


def advance(broker: Broker, journal: GroupJournal, delivery: Delivery) -> None:
    """Do what time asks for: leases run out, waiting messages may go out again."""
    next_ms = delivery.next_time_ms()
    if next_ms is None:
        return
    wall_ms = broker.clock.wall_ms()
    now_ms = broker.running.now_ms()
    if next_ms > now_ms:
        return
    events = expire(delivery, policy_of(broker, delivery), now_ms=now_ms, wall_ms=wall_ms)
    if events:
        ended = [one for event in events for one in _ended(delivery, event)]
        journal.submit(*events)
        returned = [count_of(event.runs) for event in events if isinstance(event, Returned)]
        broker.queue.counters.retried += sum(returned)
        listener = broker.telemetry.of(delivery.source)
        for consumer, until_ms, runs in ended:
            time_us = (until_ms - broker.running.ahead_ms()) * _US_PER_MS
            listener.expired(delivery.group, consumer, runs, count=count_of(runs), time_us=time_us)
    delivery.fall_due(now_ms)


def _ended(delivery: Delivery, event: Event) -> Iterator[tuple[str, int, Sequence[Run]]]:
    """Who had messages whose leases ran out, and when that was: it may be noticed later."""
    runs: Sequence[Run]
    match event:
        case Returned() | Settled():
            runs = event.runs
        case MovesBegun():
            runs = runs_of([move.offset for move in event.moves])
        case _:
            return
    lease = delivery.leases[event.lease]
    if not lease.later:
        yield lease.consumer, lease.until_ms, runs
        return
    by_time: dict[int, list[int]] = defaultdict(list)
    for first, end in runs:
        for offset in range(first, end):
            by_time[lease.later.get(offset, lease.until_ms)].append(offset)
    for until_ms, offsets in by_time.items():
        yield lease.consumer, until_ms, runs_of(offsets)


def pass_start(broker: Broker, journal: GroupJournal, delivery: Delivery) -> None:
    """What retention has deleted cannot be delivered any more."""
    start_offset = broker.readable(delivery.source).log.start_offset
    if delivery.floor < start_offset:
        for lease in tuple(delivery.leases.values()):
            if gone := tuple(lease.offsets.within(0, start_offset)):
                journal.submit(Settled(delivery.number, lease.number, gone))
        journal.submit(Settled(delivery.number, NO_LEASE, ((delivery.floor, start_offset),)))


async def scan(broker: Broker, journal: GroupJournal, delivery: Delivery, wanted: int) -> list[StoredBatch]:
    """Look at what is new in the log until enough is on the shelf; the last batches that were read for it."""
    batches: list[StoredBatch] = []
    partition = broker.readable(delivery.source)
    while (first := delivery.find_scan()) < partition.last_stable_offset:
        count = delivery.shelf.count
        if count >= wanted and (batches or count >= LOOK_AHEAD):
            break
        [outcome] = await read(broker, Read(partitions=[PartitionRead(delivery.source, first, SCAN_BYTES)]))
        if delivery.shelf.scan_offset != first:
            continue  # somebody else has looked here meanwhile, or the group has moved
        if isinstance(outcome, PartitionReadFailed):
            error = outcome.error
            if isinstance(error, Corrupt) and may_others_have(broker, delivery.source):
                error = OffsetNotAvailable(*delivery.source)
            if isinstance(error, OffsetOutOfRange) and first < outcome.start_offset:
                pass_start(broker, journal, delivery)
                continue
            if isinstance(error, Corrupt) and error.next_offset > first:
                pass_over(broker, journal, delivery, [damaged(broker, first, error.next_offset, error)])
                delivery.shelf.scan_offset = max(delivery.shelf.scan_offset, error.next_offset)
                continue
            if delivery.shelf.count:
                break  # what is before the bad place is good, and goes out first
            raise error
        if outcome.end_offset <= first:
            break
        batches = stored_batches(visible(outcome))
        messages = Runs((batch[0], batch[1]) for batch in batches)
        if void := messages.gaps(first, outcome.end_offset):
            # Markers of transactions and what was aborted: no messages, so nobody waits for them.
            journal.submit(Settled(delivery.number, NO_LEASE, tuple(void)))
        for run in _by_lane(batches):
            delivery.learn(*run)
        delivery.shelf.scan_offset = max(delivery.shelf.scan_offset, outcome.end_offset)
    return batches


def may_others_have(broker: Broker, source: TopicPartition) -> bool:
    """Whether what cannot be read in one copy may be whole in another, which is read in a moment.

    Nothing is passed over then: it would never come to the group, though nobody has lost it.
    """
    if not broker.is_one_of_several or source.topic not in broker.metadata.topics:
        return False
    record = broker.metadata.record(broker.metadata.topics[source.topic], source.partition)
    return len({*record.isr, *record.elr}) > 1


def damaged(broker: Broker, first: int, end: int, error: GoQueueError) -> PassedRun:
    """Messages that nobody can read, and why."""
    return PassedRun(first, end, str(error)[:_REASON_MAX], broker.clock.wall_ms())


def pass_over(broker: Broker, journal: GroupJournal, delivery: Delivery, passed: Sequence[PassedRun]) -> None:
    """Leave out what nobody can read, so that what is behind it is delivered, and tell of it."""
    for run in passed:
        first, end, reason, time_ms = run
        runs = delivery.lost_within(first, end)
        if not runs:
            continue
        journal.submit(PassedOver(delivery.number, run, tuple(runs)))
        log.error(
            "messages_passed_over group=%s partition=%s first=%d end=%d reason=%s",
            delivery.group,
            delivery.source,
            first,
            end,
            reason,
        )
        broker.telemetry.of(delivery.source).passed_over(
            delivery.group, runs, count=count_of(runs), reason=reason, time_us=time_ms * _US_PER_MS
        )


def stored_batches(outcome: BatchesRead) -> list[StoredBatch]:
    batches = []
    for body, lane in zip(outcome.batches, outcome.lanes, strict=True):
        header = read_header(body)
        batches.append((header.base_offset, header.end_offset, body, lane))
    return batches


def _by_lane(batches: list[StoredBatch]) -> list[tuple[int, int, int]]:
    """Neighbours of one lane as one run."""
    runs: list[tuple[int, int, int]] = []
    for first, end, _, lane in batches:
        if runs and runs[-1][1] == first and runs[-1][2] == lane:
            runs[-1] = (runs[-1][0], end, lane)
        else:
            runs.append((first, end, lane))
    return runs
