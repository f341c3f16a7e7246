"""The decision: one record in a transaction's journal says how it ends, for all that it has touched.

Before it is written what is committed is on the disk; when it is, nothing can call it back. What follows from
it is carried out by `ends`.
"""

import logging

from goqueue.broker.broker import Broker
from goqueue.broker.queue.settle import all_leased
from goqueue.broker.storage.partition import Partition
from goqueue.broker.transactions.ends import finish
from goqueue.broker.transactions.markers import carry_decision, reach_of, still_there
from goqueue.core.transactions.transactions import Transaction
from goqueue.model.errors import GoQueueError
from goqueue.model.transactions import Marker, ProducerEpoch

log = logging.getLogger(__name__)


async def end(
    broker: Broker,
    transactional_id: str,
    producer: ProducerEpoch,
    marker: Marker,
    *,
    is_bumped: bool = False,
) -> None:
    """Decide how a transaction ends: when all it has written is safe, by one record in its journal.

    Whoever holds the id's lock calls it: the verbs of clients, and the sinks for their epochs.
    """
    journal = await broker.transactions.ensure(transactional_id)
    transactions = journal.transactions
    transactions.held_by(transactional_id, producer)
    await finish(broker, transactional_id)
    if marker is Marker.COMMIT:
        known = transactions.held_by(transactional_id, producer)
        await _messages_safe(broker, known)
        if known.receipts:
            all_leased(broker, known.receipts)
    decided = transactions.prepare(
        transactional_id,
        producer,
        marker,
        is_bumped=is_bumped,
        reach=reach_of(broker, transactions.held_by(transactional_id, producer)),
        now_ms=broker.clock.wall_ms(),
    )
    if decided.state.is_prepared:
        await _decide(broker, decided)


async def _decide(broker: Broker, prepared: Transaction) -> None:
    """Journal how a transaction ends and carry that to all it has touched, where readers see it at once.

    That this is on the disk too is left to `finish`: until then the id is not at rest.
    """
    journal = await broker.transactions.ensure(prepared.transactional_id)
    await journal.submit(prepared)
    try:
        carry_decision(broker, prepared)
    except GoQueueError as error:
        log.warning("markers_delayed transaction=%s reason=%s", prepared.transactional_id, error)


async def _messages_safe(broker: Broker, known: Transaction) -> None:
    """Whatever its producer waited for: what is committed is on the disk."""
    for place in known.partitions:
        partition = still_there(broker, place)
        if partition is not None:
            await safe(partition)
    delays = broker.delays.store
    if delays.held.of_producer(known.producer_id):
        await delays.journal.submit()


async def safe(partition: Partition) -> None:
    """Return when the disk has all of a partition."""
    committed = partition.committed(partition.log.end_offset)
    if committed is not None:
        await committed
