"""The walk of batches that are admitted to a partition: quarantine, delay, duplicate, store, wait.

Every batch takes it, whoever built it; nothing is awaited, so that offsets are fixed in the order of calls.
"""

from collections.abc import Mapping

from goqueue.broker.appending import STRICT, Numbering, appended, await_all, store
from goqueue.broker.broker import Broker
from goqueue.broker.delays.asking import Told
from goqueue.broker.schemas.check import Looked, Unset, keep_misfits, quarantine_for, without_misfits
from goqueue.broker.storage.partition import Partition
from goqueue.broker.write.incoming import Incoming, in_lanes
from goqueue.broker.write.later import find_known, part_by_time, take_parted
from goqueue.model.commands import Appended
from goqueue.model.errors import SchemaMismatch
from goqueue.model.messages import Acks
from goqueue.model.schemas import OnInvalid

_NONE: Mapping[int, str] = {}


def take_in(
    broker: Broker,
    partition: Partition,
    incoming: Incoming,
    acks: Acks,
    looked: Looked | None = None,
    numbering: Numbering = STRICT,
    told: Told | None = None,
) -> Appended:
    """Store what comes now, keep what comes later, and tell what is left to wait for.

    `looked`: what is wrong with the messages; None: the topic asks nothing of them. `told`: what the keeper
    of the delays has said, where that is another node; raises Unasked where it must be asked.
    """
    if looked is not None and looked.problems:
        return _take_screened(broker, partition, incoming, acks, looked, numbering, told)
    if splits := part_by_time(broker, partition, incoming, _NONE, told):
        return take_parted(broker, partition, splits, incoming.headers, acks, numbering, told)
    count = incoming.message_count
    stored_offset = find_known(broker, partition, incoming.headers[0], count, numbering, told)
    if stored_offset is not None:
        return appended(partition, stored_offset, count, acks)._replace(is_duplicate=True)
    return store(partition, in_lanes(incoming) if looked is None else looked.batches, count, acks)


def _take_screened(
    broker: Broker,
    partition: Partition,
    incoming: Incoming,
    acks: Acks,
    looked: Looked,
    numbering: Numbering,
    told: Told | None,
) -> Appended:
    """The same where some messages do not fit: they are refused, or in quarantine by then.

    What a crash has taken out of quarantine is put there again with a batch that is stored already. With
    several nodes they must be there before: raises Unset.
    """
    count, problems = incoming.message_count, looked.problems
    keeps_aside = partition.log.settings.schema_on_invalid is OnInvalid.QUARANTINE
    splits = part_by_time(broker, partition, incoming, problems, told)
    stored_offset = None
    if not splits:
        stored_offset = find_known(broker, partition, incoming.headers[0], count, numbering, told)
    if not keeps_aside and stored_offset is None:
        raise SchemaMismatch(problems)
    quarantine = None
    if keeps_aside and not broker.is_one_of_several:
        quarantine = keep_misfits(broker, partition, looked)
    elif keeps_aside and not looked.is_set_aside:
        target = quarantine_for(broker, partition.source.topic, partition.log.settings)
        raise SchemaMismatch(problems) if target is None else Unset(partition.source, target, looked)
    if splits:
        outcome = take_parted(broker, partition, splits, incoming.headers, acks, numbering, told)
    elif stored_offset is None:
        outcome = store(partition, without_misfits(looked), count, acks)
    else:
        outcome = appended(partition, stored_offset, count, acks)._replace(is_duplicate=True)
    if not keeps_aside:
        return outcome
    outcome = outcome._replace(quarantined=problems)
    if acks is not Acks.ALL or quarantine is None:
        return outcome
    kept = quarantine.committed(quarantine.log.end_offset)
    return outcome._replace(committed=await_all(kept, outcome.committed))
