"""Whoever sets the wall clock, what was to last three seconds lasts three seconds."""

import pytest

from goqueue.broker.broker import Broker
from goqueue.broker.transactions.verbs import hear_producer
from goqueue.broker.transactions.views import describe_transaction
from goqueue.model.settings import HOUR_MS, TransactionConfig
from goqueue.model.transaction_commands import DescribeTransaction, HearProducer
from goqueue.model.transactions import TransactionState
from tests.unit.broker.lives import Lives
from tests.unit.broker.queue.queue_steps import (
    Consumer,
    ack,
    extend,
    join,
    nack,
    orders,
    put,
    take,
    values,
)
from tests.unit.broker.transactions.transaction_steps import WRITER, new_writer

LEASE_MS = 3_000
STEPS = pytest.mark.parametrize("step_ms", [-HOUR_MS, HOUR_MS], ids=["back", "forward"])


async def prepare(broker: Broker) -> Consumer:
    await orders(broker)
    await put(broker, "job")
    return await join(broker)


@STEPS
@pytest.mark.parametrize("is_extended", [False, True], ids=["leased", "extended"])
def test_a_lease_lasts_as_long_as_it_was_given_for(step_ms: int, is_extended: bool) -> None:
    lives = Lives(1)

    async def lease(broker: Broker) -> list[list[str]]:
        consumer = await prepare(broker)
        taken = await take(broker, consumer, visibility_ms=LEASE_MS)
        if is_extended:
            await extend(broker, taken, LEASE_MS)
        lives.clock.step_wall_ms(step_ms)
        lives.clock.advance_ms(LEASE_MS - 200)
        early = await take(broker, consumer)
        lives.clock.advance_ms(200)
        late = await take(broker, consumer)
        return [values(early), values(late)]

    assert lives.live(lease) == [[], ["job"]]


@STEPS
def test_a_receipt_is_good_as_long_as_its_lease_lasts(step_ms: int) -> None:
    lives = Lives(1)

    async def settle(broker: Broker) -> dict[int, object]:
        consumer = await prepare(broker)
        taken = await take(broker, consumer, visibility_ms=LEASE_MS)
        lives.clock.step_wall_ms(step_ms)
        lives.clock.advance_ms(LEASE_MS // 2)
        return dict((await ack(broker, taken)).refusals)

    assert lives.live(settle) == {}


@STEPS
def test_a_message_that_was_given_back_waits_as_long_as_it_was_told(step_ms: int) -> None:
    lives = Lives(1)

    async def give_back(broker: Broker) -> list[list[str]]:
        consumer = await prepare(broker)
        await nack(broker, await take(broker, consumer), delay_ms=LEASE_MS)
        lives.clock.step_wall_ms(step_ms)
        early = await take(broker, consumer, wait_ms=LEASE_MS - 200)
        late = await take(broker, consumer, wait_ms=400)
        return [values(early), values(late)]

    assert lives.live(give_back) == [[], ["job"]]


@STEPS
def test_a_transaction_may_stay_open_as_long_as_it_asked_for(step_ms: int) -> None:
    lives = Lives(1)

    async def wait(broker: Broker) -> list[TransactionState]:
        await orders(broker)
        writer = await new_writer(broker, timeout_ms=LEASE_MS)
        await writer.add(0)
        lives.clock.step_wall_ms(step_ms)
        consumer = await join(broker)
        await take(broker, consumer, wait_ms=LEASE_MS - 200)
        early = describe_transaction(broker, DescribeTransaction(transactional_id=WRITER)).state
        await take(broker, consumer, wait_ms=400)
        return [early, describe_transaction(broker, DescribeTransaction(transactional_id=WRITER)).state]

    assert lives.live(wait) == [TransactionState.ONGOING, TransactionState.COMPLETE_ABORT]


def test_a_clock_set_back_before_a_restart_makes_no_lease_longer_than_it_was() -> None:
    lives = Lives(1)
    consumer = lives.live(prepare)

    async def lease(broker: Broker) -> None:
        taken = await take(broker, consumer, visibility_ms=LEASE_MS)
        await extend(broker, taken, LEASE_MS)

    lives.live(lease)
    lives.clock.step_wall_ms(-HOUR_MS)

    found = lives.live(lambda broker: take(broker, consumer, wait_ms=LEASE_MS + 200))

    assert values(found) == ["job"]


@STEPS
def test_after_a_restart_a_lease_ends_when_the_clock_on_the_wall_says_so(step_ms: int) -> None:
    """Also when the clock was set in the life before: what is written then is told by the clock of then."""
    lives = Lives(1)
    consumer = lives.live(prepare)

    async def lease(broker: Broker) -> None:
        lives.clock.step_wall_ms(step_ms)
        taken = await take(broker, consumer, visibility_ms=LEASE_MS)
        await extend(broker, taken, LEASE_MS)

    lives.live(lease)
    early = lives.live(lambda broker: take(broker, consumer))
    lives.clock.advance_ms(LEASE_MS)
    late = lives.live(lambda broker: take(broker, consumer))

    assert (values(early), values(late)) == ([], ["job"])


def test_a_transaction_is_aborted_when_its_time_is_over_and_not_when_somebody_comes_by() -> None:
    lives = Lives(1)

    async def wait(broker: Broker) -> list[TransactionState]:
        await orders(broker)
        slow, quick = await new_writer(broker, "slow"), await new_writer(broker, timeout_ms=2_000)
        for writer in (slow, quick):
            await writer.add(0)
        consumer = await join(broker)
        await take(broker, consumer, wait_ms=2_050)
        return [
            describe_transaction(broker, DescribeTransaction(transactional_id=name)).state
            for name in ("slow", WRITER)
        ]

    assert lives.live(wait) == [TransactionState.ONGOING, TransactionState.COMPLETE_ABORT]


def test_a_producer_that_sends_heartbeats_and_falls_silent_loses_its_transaction_after_a_session() -> None:
    lives = Lives(1)
    session_ms = TransactionConfig().session_ms

    async def wait(broker: Broker) -> list[TransactionState]:
        await orders(broker)
        silent, lively = await new_writer(broker, "silent"), await new_writer(broker)
        for writer in (silent, lively):
            await writer.add(0)
            await hear_producer(
                broker,
                HearProducer(transactional_id=writer.name, producer=writer.producer, is_heartbeat=True),
            )
        consumer = await join(broker)
        await take(broker, consumer, wait_ms=session_ms // 2)
        await hear_producer(broker, HearProducer(transactional_id=lively.name, producer=lively.producer))
        await take(broker, consumer, wait_ms=session_ms // 2 + 100)
        return [
            describe_transaction(broker, DescribeTransaction(transactional_id=name)).state
            for name in ("silent", WRITER)
        ]

    assert lives.live(wait) == [TransactionState.COMPLETE_ABORT, TransactionState.ONGOING]


def test_a_transaction_that_was_open_before_a_restart_is_aborted_in_time_too() -> None:
    lives = Lives(1)

    async def open_one(broker: Broker) -> Consumer:
        await orders(broker)
        writer = await new_writer(broker, timeout_ms=2_000)
        await writer.add(0)
        await writer.put(0, "open")
        return await join(broker)

    consumer = lives.live(open_one)

    async def wait(broker: Broker) -> TransactionState:
        await take(broker, consumer, wait_ms=2_050)
        return describe_transaction(broker, DescribeTransaction(transactional_id=WRITER)).state

    assert lives.live(wait) is TransactionState.COMPLETE_ABORT
