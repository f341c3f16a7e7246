"""Transactions as people and doors see them: one, all, and in numbers.

There may be very many, and of partitions too: whoever walks over all of them lets others have their turn.
"""

from collections import Counter

from goqueue.broker.broker import Broker
from goqueue.broker.delays.deliveries import DELAYED_TOPIC
from goqueue.broker.slices import Slices
from goqueue.core.transactions.transactions import Transaction
from goqueue.model.errors import ShuttingDown, TransactionNotFound
from goqueue.model.transaction_commands import CountTransactions, DescribeTransaction, ListTransactions
from goqueue.model.transactions import TransactionState, TransactionStats, TransactionView


def describe_transaction(broker: Broker, command: DescribeTransaction) -> TransactionView:
    known = broker.transactions.get(command.transactional_id)
    if known is None:
        raise TransactionNotFound(command.transactional_id)
    return _view(known)


async def list_transactions(broker: Broker, command: ListTransactions) -> list[TransactionView]:
    """All transactional ids, by name."""
    _admit(broker)
    slices = Slices(broker.clock)
    views = []
    for known in tuple(broker.transactions.all()):
        views.append(_view(known))
        await slices.pause()
    return sorted(views, key=lambda view: view.transactional_id)


async def transaction_stats(broker: Broker, command: CountTransactions) -> TransactionStats:
    """How many there are and how they ended, and those that are open."""
    views = await list_transactions(broker, ListTransactions())
    counts = broker.transactions.counts
    ended = counts.committed + counts.aborted
    sequence_states = await _sequence_states(broker)
    logs = [journal.partition.log for journal in broker.transactions]
    unused = broker.producer_ids
    return TransactionStats(
        by_state=Counter(view.state for view in views),
        committed=counts.committed,
        aborted=counts.aborted,
        average_ms=counts.duration_ms / ended if ended else 0.0,
        sequence_states=sequence_states,
        next_producer_id=unused[0] if unused else broker.metadata.producer_ids_end,
        journal_bytes=sum(log.size_bytes for log in logs),
        journal_events=sum(journal.event_count for journal in broker.transactions),
        is_synced=all(log.is_safe for log in logs),
        longest_open=sorted(
            (view for view in views if view.state is TransactionState.ONGOING),
            key=lambda view: view.started_ms,
        ),
    )


async def _sequence_states(broker: Broker) -> int:
    slices = Slices(broker.clock)
    count = 0
    for topic in tuple(broker.topics.values()):
        for partition in topic.partitions:
            count += len(partition.producers)
            await slices.pause()
    return count


def _view(known: Transaction) -> TransactionView:
    return TransactionView(
        transactional_id=known.transactional_id,
        transaction_id=known.transaction_id,
        producer=known.producer,
        state=known.state,
        timeout_ms=known.timeout_ms,
        started_ms=known.started_ms,
        partitions=[place.source for place in known.partitions if place.topic != DELAYED_TOPIC],
        groups=known.groups,
        receipt_count=len(known.receipts),
    )


def _admit(broker: Broker) -> None:
    if not broker.is_open:
        raise ShuttingDown
