"""poll: take messages with a lease, waiting when there are none.

What is handed out is journalled before it is told. The journal's disk is not waited for: a power
failure in that second may show a message to somebody else too early, but never loses one. In a cluster the
memory of all in sync is, which costs a round trip.
"""

import asyncio
from collections.abc import Sequence
from operator import itemgetter

from goqueue.broker.broker import Broker
from goqueue.broker.groups.assigned import owned_partitions
from goqueue.broker.groups.journal import GroupJournal
from goqueue.broker.queue.age import settle_too_old
from goqueue.broker.queue.dead_letters import start_moves
from goqueue.broker.queue.delivery import (
    advance,
    begun_for_good,
    delivery_of,
    new_nonce,
    pass_over,
    pass_start,
    scan,
    weights_of,
)
from goqueue.broker.queue.keys import by_key, is_key_ordered, learn_keys
from goqueue.broker.queue.read import BatchRoom, open_runs
from goqueue.broker.read.read import wait_for_bytes
from goqueue.broker.slices import Slices
from goqueue.broker.storage.commit_written import commit_written
from goqueue.broker.storage.readable import Readable
from goqueue.broker.storage.waiters import ReadWaiter
from goqueue.broker.tenants.quotas import admit_reader, charge_reader
from goqueue.core.delivery.delivery import Delivery
from goqueue.core.delivery.events import Settled
from goqueue.core.delivery.lease import NO_LEASE
from goqueue.core.delivery.runs import Run, Runs, count_of, runs_of
from goqueue.model.delivery import Poll, Polled, PolledPart
from goqueue.model.errors import GoQueueError, OffsetNotAvailable, RateExceeded, ShuttingDown
from goqueue.model.groups import Membership
from goqueue.model.ids import TopicPartition
from goqueue.model.messages import StoredMessage

_NS_PER_MS = 1_000_000
_offset_of = itemgetter(StoredMessage._fields.index("offset"))
_value_of = itemgetter(StoredMessage._fields.index("value"))
_LOOK_MAX = 10_000
"""A poll that has looked at so many messages without finding one for its consumer gives up for now."""
_LOOK_AT_ONCE = 1_000


class PollWaiter(ReadWaiter):
    """A poll that waits. Of many in a group only so many are woken as find something left for them."""

    __slots__ = ("deliveries",)

    def __init__(self) -> None:
        super().__init__(1)
        self.deliveries: dict[object, tuple[Readable, Delivery]] = {}
        """By the partition that tells of what comes."""

    def offer(self, size: int, source: object) -> None:
        """Those who are told later may find that the first have taken it all."""
        partition, delivery = self.deliveries[source]
        try:
            is_left = delivery.shelf.count or delivery.find_scan() < partition.last_stable_offset
        except GoQueueError:
            is_left = True  # the partition has stopped: whoever polls hears why
        if is_left:
            super().offer(size, source)


async def poll(broker: Broker, command: Poll) -> Polled:
    """Messages of the partitions that the member may take from, as soon as there are any."""
    return await _poll(broker, command, by_batches=False)


async def poll_batches(broker: Broker, command: Poll) -> Polled:
    """The same for who hands out whole batches as they are stored: those are what the limit is for."""
    return await _poll(broker, command, by_batches=True)


async def _poll(broker: Broker, command: Poll, *, by_batches: bool) -> Polled:
    deadline_ns = broker.clock.monotonic_ns() + command.wait_ms * _NS_PER_MS
    is_first_time = True
    while True:
        changes = broker.queue.changes[command.group]
        begun_ns = broker.clock.monotonic_ns()
        try:
            polled = await poll_now(broker, command, by_batches=by_batches)
        except RateExceeded as error:
            wait_ns = error.retry_after_ms * _NS_PER_MS
            if not broker.is_open or begun_ns + wait_ns > deadline_ns:
                raise
            await wait_for_bytes(broker, (), 1, wait_ns)
            continue
        if not polled.parts and is_first_time:
            is_first_time = False
            if hidden := _hidden_from(broker, polled):
                await commit_written(hidden)
                continue
        now_ns = broker.clock.monotonic_ns()
        left_ns = deadline_ns - now_ns
        if polled.parts or left_ns <= 0:
            count = sum(len(part.messages) for part in polled.parts)
            # How long it took to find them, without the wait for them.
            broker.counters.group(command.group).polled(count, (now_ns - begun_ns) / 1e9)
            return polled
        if broker.queue.changes[command.group] == changes:
            await _wait(broker, command, polled, left_ns)


async def poll_now(broker: Broker, command: Poll, *, by_batches: bool = False) -> Polled:
    """The same without waiting, whatever the command says."""
    if not broker.is_open:
        raise ShuttingDown
    # Each time anew: a member that has lost its place meanwhile hears of it.
    sources = owned_partitions(broker, Membership(command.group, command.member_id, command.generation))
    if command.sources is not None:
        sources = [source for source in sources if source in command.sources]
    journal = await broker.coordinator.journals.ensure(command.group)
    try:
        return await _take(broker, journal, command, sources, by_batches)
    except OffsetNotAvailable:
        # Of what is elsewhere nothing is known before the first look.
        await commit_written([broker.readable(source) for source in sources])
        return await _take(broker, journal, command, sources, by_batches)


async def _take(
    broker: Broker,
    journal: GroupJournal,
    command: Poll,
    sources: Sequence[TopicPartition],
    by_batches: bool,
) -> Polled:
    """What can be had now. Which partition is asked first is left to chance, so that none is always last."""
    # A member may own thousands of partitions: every walk over them lets others have their turn.
    slices = Slices(broker.clock)
    polled = Polled([], {}, {})
    for source in sources:
        polled.end_offsets[source] = _end_offset(broker, source)
        if slices.is_over:
            await slices.pause()
    limit = command.limit
    max_bytes = command.max_bytes
    room = BatchRoom(max_bytes) if by_batches else None
    failure: GoQueueError | None = None
    first = broker.chance.randrange(len(sources)) if len(sources) > 1 else 0
    deliveries = []
    for source in (*sources[first:], *sources[:first]):
        if slices.is_over:
            await slices.pause()
        try:
            delivery = delivery_of(broker, journal, command.group, source)
            pass_start(broker, journal, delivery)
            # Of all before the first is asked: what has run out makes room for more.
            advance(broker, journal, delivery)
            deliveries.append(delivery)
        except GoQueueError as error:
            failure = error  # the other partitions may be well
    if broker.queue.beginnings:
        await begun_for_good(broker, deliveries)
    for delivery in deliveries:
        if slices.is_over:
            await slices.pause()
        part = None
        if limit > 0 and max_bytes > 0 and _space(broker, journal, command):
            try:
                wanted = limit
                if broker.tenants.accounts:
                    wanted = admit_reader(broker, delivery.source, limit)
                part = await _take_from(broker, journal, delivery, command, wanted, max_bytes, room)
            except GoQueueError as error:
                failure = error
                continue
        polled.floors[delivery.source] = delivery.floor
        if part is not None:
            polled.parts.append(part)
            limit -= len(part.messages)
            if room is not None:
                max_bytes = room.left_bytes
            elif limit > 0:
                max_bytes -= sum(map(len, filter(None, map(_value_of, part.messages))))
    if polled.parts:
        # In a cluster whoever may coordinate next knows of the leases: so a coordinator that was replaced,
        # and has not heard of it, hands out nothing that may be done with elsewhere.
        if (seen := journal.partition.seen()) is not None:
            await seen
    elif failure is not None:
        raise failure
    return polled


async def _take_from(
    broker: Broker,
    journal: GroupJournal,
    delivery: Delivery,
    command: Poll,
    limit: int,
    max_bytes: int,
    room: BatchRoom | None,
) -> PolledPart | None:
    """Messages of one partition, leased; None when it has none for this consumer."""
    if not is_key_ordered(broker, command.group):
        return await _choose(broker, journal, delivery, command, limit, max_bytes, room, is_by_key=False)
    # One at a time: what is only being read has no key yet that others would have to keep away from.
    async with broker.queue.key_lock(delivery):
        return await _choose(broker, journal, delivery, command, limit, max_bytes, room, is_by_key=True)


async def _choose(
    broker: Broker,
    journal: GroupJournal,
    delivery: Delivery,
    command: Poll,
    limit: int,
    max_bytes: int,
    room: BatchRoom | None,
    *,
    is_by_key: bool,
) -> PolledPart | None:
    """Take runs off the shelf, read them, and lease what of them this consumer may have.

    Reading waits for a disk, and meanwhile others poll, settle and give back. So runs are reserved before the
    first wait: nobody else takes them, and whatever becomes of this poll, they are put back if they were not
    leased. One look may find nothing for this consumer (void, too old, keys of others); then the next runs
    are looked at, up to a bound that keeps a poll from walking through a whole partition.
    """
    settings = broker.metadata.topic(delivery.topic).settings
    reserved: list[Run] = []
    passed: set[bytes] = set()
    looked_count, wanted_count = 0, limit
    try:
        while looked_count < _LOOK_MAX:
            at_hand = await scan(broker, journal, delivery, wanted_count)
            runs = delivery.shelf.take(
                min(wanted_count, _space(broker, journal, command)),
                weights=weights_of(settings),
                wait_ms_max=settings.lane_wait_max_ms,
                now_ms=broker.running.now_ms(),
            )
            if not runs:
                return None
            delivery.reserve(runs)
            reserved += runs
            opened = await open_runs(
                broker, delivery.source, runs, max_bytes, at_hand, is_patient=False, room=room
            )
            # What is void is behind us for good, and no reason to give up.
            looked_count += count_of(runs) - count_of(opened.void)
            if opened.damaged:
                pass_over(broker, journal, delivery, opened.damaged)
            if opened.void:
                journal.submit(Settled(delivery.number, NO_LEASE, tuple(opened.void)))
            if opened.is_full and not opened.messages:
                return None
            if opened.left and not opened.messages:
                # What was passed over is written down, should the consumer have given up: go on behind it.
                delivery.put_back(reserved)
                reserved, passed = [], set()
                continue
            messages = settle_too_old(broker, journal, delivery, opened.messages, settings)
            if is_by_key and messages:
                await learn_keys(broker, delivery)
                if delivery.has_come_back_before(messages):
                    # Begin again: what has come back goes first.
                    delivery.put_back(reserved)
                    reserved, passed = [], set()
                    continue
                messages = by_key(delivery, messages, command.member_id, passed)
            chosen = messages[:limit]  # more were looked at where many places were void
            if part := _lease(broker, journal, delivery, command, chosen, settings.visibility_ms):
                return part
            # All of these were void or too old, or are not for this consumer now: others may be.
            if count_of(opened.void) == count_of(runs):
                wanted_count = max(wanted_count, _LOOK_AT_ONCE)  # there may be thousands where nothing is
            await asyncio.sleep(0)
        return None
    except asyncio.CancelledError:
        # Others were not woken for what this one was about to take.
        broker.queue.wake(command.group)
        raise
    finally:
        # Whatever was not leased or settled by now goes back where it was.
        delivery.put_back(reserved)
        if delivery.moves:
            start_moves(broker, journal, delivery)


def _lease(
    broker: Broker,
    journal: GroupJournal,
    delivery: Delivery,
    command: Poll,
    messages: Sequence[StoredMessage],
    visibility_ms: int,
) -> PolledPart | None:
    """Write down who has the messages and until when."""
    messages = messages[: _space(broker, journal, command)]
    if not messages:
        return None
    now_ms = broker.clock.wall_ms()
    lease, nonce = new_nonce(broker, delivery)
    leased = delivery.lease(
        runs_of(sorted(map(_offset_of, messages))),
        lease=lease,
        consumer=command.member_id,
        until_ms=now_ms + (command.visibility_ms or visibility_ms),
    )
    if count_of(leased.runs) < len(messages):
        held = Runs(leased.runs)
        messages = [message for message in messages if message.offset in held]
    if not messages:
        return None
    journal.submit(leased)
    counts: dict[int, int] = {}
    if delivery.attempts:
        counts = {
            m.offset: delivery.delivery_count(m.offset) for m in messages if m.offset in delivery.attempts
        }
    broker.queue.counters.count_delivered(delivery.source, messages, counts, now_ms)
    size = sum(map(len, filter(None, map(_value_of, messages))))
    broker.telemetry.of(delivery.source).leased(
        delivery.group,
        leased.consumer,
        leased.runs,
        count=len(messages),
        size=size,
        until_ms=leased.until_ms,
        time_us=broker.clock.wall_us(),
    )
    if broker.tenants.accounts:
        charge_reader(broker, delivery.source, len(messages), size)
    return PolledPart(delivery.source, nonce, messages, counts)


def _space(broker: Broker, journal: GroupJournal, command: Poll) -> int:
    """How many more messages the consumer may have out."""
    out = journal.deliveries.in_flight(command.group, command.member_id)
    return max(broker.config.groups.in_flight_max - out, 0)


def _end_offset(broker: Broker, source: TopicPartition) -> int:
    """Before it are the messages that can be handed out; -1 while that cannot be told."""
    try:
        partition = broker.readable(source)
        partition.hurry()
        return partition.last_stable_offset
    except GoQueueError:
        return -1


def _hidden_from(broker: Broker, polled: Polled) -> list[Readable]:
    """Partitions that were asked for, in which something is written that a poll does not see yet."""
    topics = [(broker.topics.get(source.topic), source.partition) for source in polled.end_offsets]
    found = [topic.readables[at] for topic, at in topics if topic is not None and at < len(topic.readables)]
    return [partition for partition in found if partition.has_hidden]


async def _wait(broker: Broker, command: Poll, polled: Polled, left_ns: int) -> None:
    """Return when messages may have come: published, given back, fallen due, or space made for them."""
    journal = await broker.coordinator.journals.ensure(command.group)
    waiter = PollWaiter()
    broker.waiting_reads[waiter] = None
    broker.queue.enter(command.group, command.member_id, waiter)
    timer = None
    try:
        next_ms = await _watch(broker, journal, command, polled, waiter)
        if next_ms is not None:
            left_ns = min(left_ns, max(next_ms - broker.running.now_ms(), 0) * _NS_PER_MS)
        left_ns = min(left_ns, _patience_ns(broker, command))
        timer = asyncio.get_running_loop().call_later(left_ns / 1e9, waiter.wake)
        await waiter.ready
    finally:
        if timer is not None:
            timer.cancel()
        del broker.waiting_reads[waiter]
        broker.queue.leave(command.group, waiter)
        for partition, _ in waiter.deliveries.values():
            partition.drop_reader(waiter)


async def _watch(
    broker: Broker, journal: GroupJournal, command: Poll, polled: Polled, waiter: PollWaiter
) -> int | None:
    """Have the waiter told of what comes to its partitions; when time will bring something, if it will."""
    slices = Slices(broker.clock)
    has_space = _space(broker, journal, command) > 0
    times_ms = []
    for source, end_offset in polled.end_offsets.items():
        if slices.is_over:
            await slices.pause()
        if _end_offset(broker, source) != end_offset:
            waiter.wake()  # more came while another partition was read
            return None
        delivery = journal.deliveries.find(command.group, source)
        topic = broker.topics.get(source.topic)
        if delivery is None or topic is None or source.partition >= len(topic.readables):
            continue
        times_ms.append(delivery.next_time_ms())
        if has_space:
            partition = topic.readables[source.partition]
            waiter.deliveries[partition] = partition, delivery
            partition.add_reader(waiter)
    return min((time_ms for time_ms in times_ms if time_ms is not None), default=None)


def _patience_ns(broker: Broker, command: Poll) -> int:
    """How long to wait before the next sign of life: whoever waits here is not silent."""
    active = broker.coordinator.known_active(command.group)
    member = None if active is None else active.membership.members.get(command.member_id)
    if member is None:
        return 0
    return max(member.deadline_ns - broker.coordinator.now_ns(), 0) * 2 // 3
