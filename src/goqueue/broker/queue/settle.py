"""settle: acknowledge, give back, reject or keep longer what was polled, by receipt.

An answer that a message is settled is one that a restart remembers: the journal's disk is waited for.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from goqueue.broker.broker import Broker
from goqueue.broker.groups.journal import GroupJournal
from goqueue.broker.queue.dead_letters import finish_moves
from goqueue.broker.queue.delivery import named_by, policy_of
from goqueue.broker.queue.keys import is_key_ordered
from goqueue.broker.tenants.quotas import admit_delivery
from goqueue.core.delivery.delivery import Delivery, Holding
from goqueue.core.delivery.events import Event, Extended, MovesBegun, Returned, Settled
from goqueue.core.delivery.lease import PLEDGED_MS, Lease
from goqueue.core.delivery.retries import Story, bury, give_back
from goqueue.core.delivery.runs import Run, count_of, runs_of
from goqueue.model.delivery import (
    NONCE_DIGITS,
    Action,
    Reason,
    Settle,
    SettledPart,
    SettleOutcome,
    parse_receipt,
)
from goqueue.model.errors import (
    AlreadySettled,
    GoQueueError,
    InvalidReceipt,
    LeaseLost,
    ReceiptNotFound,
    ShuttingDown,
)
from goqueue.model.numbers import whole_number


class Leased(NamedTuple):
    """Receipts of one lease that are good, by offset, with their places in the request."""

    journal: GroupJournal
    delivery: Delivery
    lease: Lease
    places: dict[int, int]

    @property
    def runs(self) -> list[Run]:
        return runs_of(sorted(self.places))


async def settle(broker: Broker, command: Settle) -> SettleOutcome:
    """Do to each message what is asked, as far as its receipt is good. One event a lease."""
    if broker.is_closed or not (broker.is_open or command.is_own):
        raise ShuttingDown
    outcome = SettleOutcome()
    leased = _leased(broker, command, outcome, broker.running.now_ms())
    await settle_leased(broker, command, leased, outcome)
    return outcome


def all_leased(broker: Broker, receipts: Sequence[str]) -> list[Leased]:
    """Messages that are out, by lease; refuses when one of them is out no more."""
    outcome = SettleOutcome()
    command = Settle(action=Action.EXTEND, receipts=receipts)
    leased = _leased(broker, command, outcome, broker.running.now_ms())
    for error in outcome.refusals.values():
        raise error
    if broker.tenants.accounts:
        for one in leased:
            admit_delivery(broker, one.delivery.group, one.delivery.source.topic)
    return leased


def pledge(leased: Iterable[Leased]) -> None:
    """Messages stay with their consumers until a transaction has ended."""
    for one in leased:
        one.lease.pledge(one.places)


def pledge_again(broker: Broker, receipts: Sequence[str]) -> None:
    """The same after a restart, for a transaction that was open before it: whatever time has passed."""
    command = Settle(action=Action.EXTEND, receipts=receipts)
    for (_, delivery, lease_number), places in _named(broker, command, SettleOutcome()):
        lease = delivery.leases.get(lease_number)
        if lease is not None:
            lease.pledge(places)


async def settle_leased(
    broker: Broker, command: Settle, leased: Sequence[Leased], outcome: SettleOutcome
) -> None:
    """The same for messages that are known to be out; returns when the disk has it."""
    if broker.tenants.accounts and not command.is_own:
        for one in leased:
            admit_delivery(broker, one.delivery.group, one.delivery.source.topic)
    now_ms, begun_ns = broker.clock.wall_ms(), broker.clock.monotonic_ns()
    waiting = []
    for one in leased:
        floor, runs = one.delivery.floor, one.runs
        events = _events(broker, command, one, runs, now_ms)
        waiter = one.journal.submit(*events).committed()
        if waiter is not None:
            waiting.append(waiter)
        _tell(broker, command, one, events, outcome, has_floor_moved=one.delivery.floor != floor)
        broker.telemetry.of(one.delivery.source).settled(
            command.action,
            one.delivery.group,
            one.lease.consumer,
            runs,
            count=len(one.places),
            told=now_ms + command.visibility_ms if command.action is Action.EXTEND else command.reason,
            time_us=broker.clock.wall_us(),
        )
    for waiter in waiting:
        await waiter
    seconds = (broker.clock.monotonic_ns() - begun_ns) / 1e9
    for topic in {one.delivery.topic for one in leased}:
        broker.counters.topic(topic).settled(command.action.value, seconds)
    for one in leased:
        if one.delivery.moves:
            await finish_moves(broker, one.journal, one.delivery)


def _leased(broker: Broker, command: Settle, outcome: SettleOutcome, now_ms: int) -> list[Leased]:
    """The good receipts, sorted by lease; the others are refused in the outcome."""
    leased = []
    for (journal, delivery, lease_number), places in _named(broker, command, outcome):
        if not places:
            continue
        lease = delivery.leases.get(lease_number)
        if lease is not None and all(lease.holds_all(*run, now_ms) for run in runs_of(sorted(places))):
            leased.append(Leased(journal, delivery, lease, places))
            continue
        good: dict[int, int] = {}
        in_flight = 0 if lease is None else journal.deliveries.in_flight(delivery.group, lease.consumer)
        for offset, place in places.items():
            match delivery.holding(lease_number, offset, now_ms=now_ms):
                case Holding.HELD:
                    good[offset] = place
                case Holding.SETTLED if command.action is Action.ACK:
                    outcome.parts[place] = SettledPart(delivery.source, delivery.floor, False, in_flight)
                case Holding.SETTLED:
                    outcome.refusals[place] = AlreadySettled(command.receipts[place])
                case Holding.LOST:
                    outcome.refusals[place] = LeaseLost(command.receipts[place])
        if lease is not None and good:
            leased.append(Leased(journal, delivery, lease, good))
    return leased


def _named(
    broker: Broker, command: Settle, outcome: SettleOutcome
) -> list[tuple[tuple[GroupJournal, Delivery, int], dict[int, int]]]:
    """Receipts by the lease they name: their places by offset. One that comes twice counts once."""
    if one_run := _named_in_order(broker, command.receipts):
        return [one_run]
    found: dict[tuple[str, str, str], dict[int, int] | None] = {}
    named: list[tuple[tuple[GroupJournal, Delivery, int], dict[int, int]]] = []
    last_name, places = None, None
    # Hundreds come in one request, mostly of one lease: nothing is looked up that was looked up before.
    for place, text in enumerate(command.receipts):
        try:
            topic, partition, offset_text, _, nonce = text.split(":")
            offset = int(offset_text)
        except ValueError:
            outcome.refusals[place] = InvalidReceipt(text)
            continue
        name = (topic, partition, nonce)
        if name != last_name:
            last_name = name
            if name not in found:
                lease = _find(broker, *name)
                places = found[name] = None if lease is None else {}
                if lease is not None and places is not None:
                    named.append((lease, places))
            places = found[name]
        if places is None or offset < 0:
            outcome.refusals[place] = _unknown(text)
        else:
            places[offset] = place
    return named


def _named_in_order(
    broker: Broker, receipts: Sequence[str]
) -> tuple[tuple[GroupJournal, Delivery, int], dict[int, int]] | None:
    """The same for receipts of neighbours under one lease, in order, as a poll gives them; None for others.

    Then all of them follow from the first, and to write them anew and compare takes half the time that
    reading each takes.
    """
    count = len(receipts)
    if count < 2:
        return None
    try:
        topic, partition, first_text, times, nonce = receipts[0].split(":")
        first = int(first_text)
    except ValueError:
        return None
    start, end = f"{topic}:{partition}:", f":{times}:{nonce}"
    if first < 0 or receipts[-1] != f"{start}{first + count - 1}{end}":
        return None
    offsets = range(first, first + count)
    in_order = start + f"{end}\n{start}".join(map(str, offsets)) + end
    lease = _find(broker, topic, partition, nonce)
    if lease is None or in_order != "\n".join(receipts):
        return None
    return lease, dict(zip(offsets, range(count), strict=True))


def _find(
    broker: Broker, topic: str, partition: str, nonce: str
) -> tuple[GroupJournal, Delivery, int] | None:
    """The lease that a receipt names, if it is one of the partition that it speaks of."""
    try:
        named = named_by(broker, int(nonce, 16)) if len(nonce) == NONCE_DIGITS else None
    except ValueError:
        return None
    if named is None or named[1].source != (topic, whole_number(partition)):
        return None
    return named


def _unknown(text: str) -> GoQueueError:
    try:
        return ReceiptNotFound(parse_receipt(text))
    except GoQueueError as error:
        return error


def _events(
    broker: Broker, command: Settle, leased: Leased, runs: Sequence[Run], now_ms: int
) -> Sequence[Event]:
    """What the journal must hold."""
    delivery, lease = leased.delivery, leased.lease
    match command.action:
        case Action.ACK:
            return (Settled(delivery.number, lease.number, tuple(runs)),)
        case Action.EXTEND if command.is_pledge:
            # Twice as far, since what the journal keeps is told by another clock when it is read back.
            return (Extended(delivery.number, lease.number, tuple(runs), 2 * PLEDGED_MS),)
        case Action.EXTEND:
            until_ms = now_ms + command.visibility_ms
            free = runs
            if lease.later or lease.until_ms >= PLEDGED_MS:
                offsets = (offset for first, end in runs for offset in range(first, end))
                free = runs_of([offset for offset in offsets if not _waits(lease, offset)])
            return (Extended(delivery.number, lease.number, tuple(free), until_ms),) if free else ()
        case Action.NACK:
            story = Story(Reason.MAX_RETRIES_EXCEEDED, lease.consumer, command.reason, now_ms)
            due_ms = None if command.delay_ms is None else now_ms + command.delay_ms
            policy = policy_of(broker, delivery)
            return give_back(delivery, lease.number, runs, policy, story, due_ms=due_ms)
        case Action.REJECT:
            story = Story(Reason.REJECTED, lease.consumer, command.reason, now_ms)
            return (bury(delivery, lease.number, runs, policy_of(broker, delivery), story),)


def _waits(lease: Lease, offset: int) -> bool:
    """Whether a message has no deadline that a consumer could move."""
    return lease.later.get(offset, lease.until_ms) >= PLEDGED_MS


def _tell(
    broker: Broker,
    command: Settle,
    leased: Leased,
    events: Sequence[Event],
    outcome: SettleOutcome,
    *,
    has_floor_moved: bool,
) -> None:
    """Note in the outcome what has happened, and wake polls for which it matters."""
    delivery, consumer, places = leased.delivery, leased.lease.consumer, leased.places
    in_flight = leased.journal.deliveries.in_flight(delivery.group, consumer)
    part = SettledPart(delivery.source, delivery.floor, has_floor_moved, in_flight)
    outcome.parts[min(places.values())] = part
    for event in events:
        match event:
            case Returned(runs=runs, due_ms=time_ms) | Extended(runs=runs, until_ms=time_ms):
                for first, end in runs:
                    outcome.times_ms.update({places[offset]: time_ms for offset in range(first, end)})
                if command.action is Action.NACK:
                    broker.queue.counters.retried += count_of(runs)
            case MovesBegun():
                outcome.dead_letter_topics.update({places[m.offset]: m.topic for m in event.moves})
    queue = broker.queue
    if command.action is Action.NACK:
        queue.wake(delivery.group)
    elif command.action is not Action.EXTEND:
        # In order of keys a message that is done may be what another consumer waits for.
        queue.wake(delivery.group, None if is_key_ordered(broker, delivery.group) else consumer)
