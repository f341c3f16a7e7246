"""How a transaction's end reaches what it has delayed: messages get their due times, or are cancelled.

All of it is idempotent by looking, like the markers in partitions: what is held no more was decided already.
A message that is let go is written anew. Its due time may have passed meanwhile, and what was delivered since
says of everything due by then, and stored before, that it is done with.
"""

import sys

from goqueue.broker.broker import Broker
from goqueue.broker.delays.keeper import Change
from goqueue.broker.delays.records import HELD_MS, Cancelled, Record, Waiting
from goqueue.core.delays.held import HeldMessage
from goqueue.core.transactions.transactions import Transaction
from goqueue.log.partition_log import storage_error
from goqueue.model.ids import TopicPartition
from goqueue.model.transactions import TransactionState

_AT_ONCE = 1_000
"""So many messages are read and written together."""


async def decide_held(
    broker: Broker, producer_id: int, *, is_committed: bool, end_number: int = sys.maxsize
) -> None:
    """Carry a decision to all that a producer's transaction has delayed; returns when that is on the disk.

    What has `end_number` or a higher one was delayed by the next transaction.
    """
    store = broker.delays.store
    while some := store.held.of_producer(producer_id, end_number)[:_AT_ONCE]:
        places = {store.moved.get(message.number, message.number): message for message in some}
        found: dict[int, Waiting] = {}
        if is_committed:
            try:
                found = await broker.threads.run(store.read, sorted(places))
            except OSError as error:
                raise storage_error(error, "read of the delayed messages of a transaction") from error
        records: list[Record] = []
        changed: dict[int, Change] = {}
        for offset, message in places.items():
            if store.moved.get(message.number, message.number) != offset or message not in store.held:
                continue  # written anew meanwhile: the next round finds it there; or decided meanwhile
            records.append(_decided(broker, message, found.get(offset)))
            changed[offset] = Change(message.target, HELD_MS)
        if records and (committed := broker.delays.change(changed, records)) is not None:
            await committed


def _decided(broker: Broker, message: HeldMessage, waiting: Waiting | None) -> Record:
    """The record that ends the hold on a message. Of a topic that is gone nothing is let go."""
    target = broker.delays.store.targets.all[message.target]
    if waiting is not None and not target.is_gone:
        return waiting.let_go()
    topic = broker.metadata.names.get(target.topic_id)
    if not target.is_gone:
        target.pending -= 1
    if topic is not None:
        broker.telemetry.of(TopicPartition(topic, target.partition)).cancelled(
            broker.telemetry.delayed, message.number, broker.clock.wall_us()
        )
    return Cancelled(message.number)


async def cancel_hanging(broker: Broker) -> list[Transaction | None]:
    """Cancel what is held for no transaction, open or decided; whose it was, if anybody's."""
    owners: dict[int, Transaction | None] = {}
    if broker.is_one_of_several:
        return []
    for message in broker.delays.store.held:
        owner = broker.transactions.of_producer(message.producer_id)
        if owner is None or not (_is_open(broker, owner, message) or _is_decided(owner, message)):
            owners[message.producer_id] = owner
    for producer_id in owners:
        await decide_held(broker, producer_id, is_committed=False)
    return list(owners.values())


def _is_decided(owner: Transaction, message: HeldMessage) -> bool:
    """Whether a decision that could not be carried out yet will reach a message, too."""
    return owner.state.is_prepared and (owner.reach is None or message.number < owner.reach.delayed_end)


def _is_open(broker: Broker, owner: Transaction, message: HeldMessage) -> bool:
    """Whether a message is part of the open transaction. Its topic may be gone, and with it the name."""
    target = broker.delays.store.targets.all[message.target]
    return (
        owner.state is TransactionState.ONGOING
        and owner.epoch == message.producer_epoch
        and any(
            (place.topic_id, place.partition) == (target.topic_id, target.partition)
            for place in owner.partitions
        )
    )
