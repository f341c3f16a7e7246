"""The walk of batches that are admitted to a partition: delay, duplicate, quarantine, store, wait.

Every batch takes it, whoever built it; nothing is awaited, so that offsets are fixed in the order of calls.
"""

from goqueue.broker.appending import STRICT, Numbering, appended, await_all, store
from goqueue.broker.broker import Broker
from goqueue.broker.schemas.check import Looked, screen
from goqueue.broker.storage.partition import Partition
from goqueue.broker.write.incoming import Incoming, in_lanes
from goqueue.broker.write.later import find_known, part_by_time, take_parted
from goqueue.model.commands import Appended
from goqueue.model.messages import Acks
from goqueue.model.schemas import OnInvalid


def take_in(
    broker: Broker, partition: Partition, incoming: Incoming, acks: Acks, looked: Looked | None = None
) -> Appended:
    """Store what comes now, keep what comes later, and tell what is left to wait for.

    `looked`: what is wrong with the messages; None: the topic asks nothing of them.
    """
    if splits := part_by_time(broker, partition, incoming):
        return take_parted(broker, partition, splits, incoming.headers, acks, looked=looked)
    return take_whole(broker, partition, incoming, acks, looked)


def take_whole(
    broker: Broker,
    partition: Partition,
    incoming: Incoming,
    acks: Acks,
    looked: Looked | None = None,
    numbering: Numbering = STRICT,
) -> Appended:
    """The same where all comes now."""
    count = incoming.message_count
    stored_offset = find_known(broker, partition, incoming.headers[0], count, numbering)
    if looked is not None and looked.problems:
        return _take_screened(broker, partition, stored_offset, count, acks, looked)
    if stored_offset is not None:
        return appended(partition, stored_offset, count, acks)._replace(is_duplicate=True)
    return store(partition, in_lanes(incoming) if looked is None else looked.batches, count, acks)


def _take_screened(
    broker: Broker, partition: Partition, stored_offset: int | None, count: int, acks: Acks, looked: Looked
) -> Appended:
    """The same where some messages do not fit. They are refused, or in quarantine by then."""
    keeps_aside = partition.log.settings.schema_on_invalid is OnInvalid.QUARANTINE
    if stored_offset is not None and not keeps_aside:
        return appended(partition, stored_offset, count, acks)._replace(is_duplicate=True)
    # What a crash has taken out of quarantine is put there again with a batch that is stored already.
    batches, quarantine = screen(broker, partition, looked)
    if stored_offset is None:
        outcome = store(partition, batches, count, acks)
    else:
        outcome = appended(partition, stored_offset, count, acks)._replace(is_duplicate=True)
    outcome = outcome._replace(quarantined=looked.problems)
    if acks is not Acks.ALL or quarantine is None:
        return outcome
    kept = quarantine.committed(quarantine.log.end_offset)
    return outcome._replace(committed=await_all(kept, outcome.committed))
