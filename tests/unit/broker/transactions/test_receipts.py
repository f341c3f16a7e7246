"""Messages that a transaction will acknowledge: hidden as long as it is open, and not a moment longer.

Only the transaction's journal says that it holds them, so no crash can leave one journal that knows of it
and one that does not.
"""

from contextlib import suppress

import pytest

from goqueue.broker.broker import Broker
from goqueue.broker.transactions.verbs import abort_transaction, add_receipts
from goqueue.broker.transactions.views import list_transactions
from goqueue.model.errors import GoQueueError, LeaseLost
from goqueue.model.transaction_commands import AbortTransaction, AddReceiptsToTransaction, ListTransactions
from goqueue.model.transactions import Marker, TransactionState
from tests.unit.broker.lives import NEVER, Lives, PowerLost
from tests.unit.broker.queue.queue_steps import (
    Consumer,
    ack,
    extend,
    floor,
    join,
    nack,
    orders,
    put,
    take,
    values,
)
from tests.unit.broker.transactions.transaction_steps import WRITER, Writer, new_writer

LEASE_MS = 2_000
HOLD_MS = 50_000
"""Longer than the lease, shorter than the transaction may take."""


async def prepare(broker: Broker) -> Consumer:
    await orders(broker)
    await put(broker, "job")
    return await join(broker)


async def hold(broker: Broker, consumer: Consumer) -> Writer:
    """Take the message for a short while, and have a transaction keep it."""
    writer = await new_writer(broker)
    taken = await take(broker, consumer, visibility_ms=LEASE_MS)
    await add_receipts(
        broker,
        AddReceiptsToTransaction(
            transactional_id=WRITER, producer=writer.producer, receipts=[one.receipt for one in taken]
        ),
    )
    return writer


class Holding:
    """The work of `hold`, and whether it was answered."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self.is_answered = False

    async def __call__(self, broker: Broker) -> None:
        await hold(broker, self._consumer)
        self.is_answered = True


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")  # the power was cut
@pytest.mark.parametrize("is_killed", [False, True], ids=["power", "kill"])
@pytest.mark.parametrize("stride", [3, pytest.param(1, marks=pytest.mark.slow)])
def test_a_message_is_hidden_as_long_as_an_open_transaction_has_it_wherever_it_is_cut(
    stride: int, is_killed: bool
) -> None:
    seen = set()
    for cut_after in range(0, NEVER, stride):
        lives = Lives(2_000 + cut_after)
        consumer = lives.live(prepare)
        work = Holding(consumer)
        with suppress(PowerLost):
            lives.live(work, cut_after=cut_after, is_killed=is_killed)
        lives.clock.advance_ms(LEASE_MS)

        async def look(broker: Broker, consumer: Consumer = consumer) -> tuple[int, int, list[str]]:
            held = sum(view.receipt_count for view in await list_transactions(broker, ListTransactions()))
            before = len(await take(broker, consumer))
            for view in await list_transactions(broker, ListTransactions()):
                if view.state is TransactionState.ONGOING:
                    await abort_transaction(broker, AbortTransaction(name=view.transactional_id))
            return held, before, values(await take(broker, consumer, wait_ms=10_000)) if held else []

        held, before, after = lives.live(look)

        assert (held, before, after) in ((0, 1, []), (1, 0, ["job"])), cut_after
        assert held or not work.is_answered, cut_after
        seen.add(held)
        if work.is_answered:
            break
    assert seen == {0, 1}


def test_a_held_message_outlasts_its_lease_and_a_restart_until_the_commit() -> None:
    lives = Lives(1)
    consumer = lives.live(prepare)

    async def hold_for_long(broker: Broker) -> Writer:
        writer = await hold(broker, consumer)
        lives.clock.advance_ms(LEASE_MS)
        assert await take(broker, consumer) == []
        return writer

    async def commit(broker: Broker) -> int:
        assert await take(broker, consumer, wait_ms=1) == []
        begun = Writer(broker, writer.producer, WRITER)
        await begun.end(Marker.COMMIT, until_complete=True)
        return floor(broker)

    writer = lives.live(hold_for_long)
    lives.clock.advance_ms(HOLD_MS)

    assert lives.live(commit) == 1


def test_nothing_happens_to_a_held_message_by_itself() -> None:
    lives = Lives(1)
    consumer = lives.live(prepare)

    async def next_time_ms(broker: Broker) -> int | None:
        await put(broker, "other")
        writer = await new_writer(broker)
        taken = await take(broker, consumer, visibility_ms=LEASE_MS)
        extended = await extend(broker, taken[1:], HOLD_MS)
        await add_receipts(
            broker,
            AddReceiptsToTransaction(
                transactional_id=WRITER, producer=writer.producer, receipts=[taken[0].receipt]
            ),
        )
        lives.clock.advance_ms(LEASE_MS)
        [delivery] = [one for journal in broker.coordinator.journals for one in journal.deliveries]
        # A poll that waits would else look again and again.
        assert delivery.next_time_ms() == extended.times_ms[0]
        await ack(broker, taken[1:])
        assert await take(broker, consumer, wait_ms=20_000) == []
        return delivery.next_time_ms()

    assert lives.live(next_time_ms) is None


def test_what_is_settled_or_given_back_otherwise_is_not_held_any_more() -> None:
    lives = Lives(1)
    consumer = lives.live(prepare)

    async def give_back(broker: Broker) -> list[str]:
        writer = await new_writer(broker)
        taken = await take(broker, consumer, visibility_ms=LEASE_MS)
        await add_receipts(
            broker,
            AddReceiptsToTransaction(
                transactional_id=WRITER, producer=writer.producer, receipts=[one.receipt for one in taken]
            ),
        )
        await nack(broker, taken, delay_ms=0)
        with pytest.raises(LeaseLost):
            await writer.commit()
        again = await take(broker, consumer)
        await ack(broker, again)
        await writer.abort()
        return values(again)

    assert lives.live(give_back) == ["job"]
    assert lives.live(lambda broker: take(broker, consumer)) == []


def test_a_lease_that_ran_out_cannot_be_held() -> None:
    lives = Lives(1)
    consumer = lives.live(prepare)

    async def come_late(broker: Broker) -> tuple[GoQueueError, int]:
        writer = await new_writer(broker)
        taken = await take(broker, consumer, visibility_ms=LEASE_MS)
        await extend(broker, taken, LEASE_MS)
        lives.clock.advance_ms(LEASE_MS)
        with pytest.raises(LeaseLost) as refused:
            await add_receipts(
                broker,
                AddReceiptsToTransaction(
                    transactional_id=WRITER, producer=writer.producer, receipts=[one.receipt for one in taken]
                ),
            )
        return refused.value, sum(
            view.receipt_count for view in await list_transactions(broker, ListTransactions())
        )

    error, held = lives.live(come_late)

    assert (error.code, held) == ("lease_lost", 0)
