"""compact_partition: an operator does not wait until a partition is due."""

from goqueue.broker.broker import Broker
from goqueue.broker.compaction.compacting import compact, look_at
from goqueue.broker.storage.commit_written import commit_written
from goqueue.model.errors import CompactionRefused, InvalidSetting
from goqueue.model.topics import CompactPartition, PartitionCompacted


async def compact_partition(broker: Broker, command: CompactPartition) -> PartitionCompacted:
    """Seal what is written, and compact all that may be, in as many rounds as it takes.

    What is younger than `min.compaction.lag.ms`, or belongs to an open transaction, stays. In a cluster it is
    the leader's copy; the others are compacted when they are due.
    """
    broker.admit(command.target.topic)
    partition = broker.partition(command.target)
    partition.admit_write()
    partition.admit_read()
    if not partition.log.settings.is_compacted:
        raise InvalidSetting(f"topic {command.target.topic} is not compacted: see cleanup.policy")
    await commit_written([partition])
    partition.log.roll()
    before = removed = 0
    ratio = None
    while True:
        while (ended := broker.compaction.at_work.get(command.target)) is not None:
            await ended.wait()  # it was due, or somebody else has asked
        looked = await look_at(broker, partition)
        if looked is None:
            reason = broker.compaction.why_not(partition.source, partition.log)
            raise CompactionRefused(*command.target, reason or "its log is being opened anew")
        done = await compact(broker, partition, looked, dry_run=command.dry_run)
        if done is None and command.target in broker.compaction.at_work:
            continue  # another round came first
        if done is None:
            reason = broker.compaction.why_not(partition.source, partition.log)
            raise CompactionRefused(*command.target, reason or "its log has changed meanwhile")
        before = before or done.records_before
        removed += done.records_before - done.records_after
        ratio = looked.due.dirty_ratio if ratio is None else ratio
        looked = None if command.dry_run else await look_at(broker, partition)
        if looked is None or not looked.due.dirty_bytes:
            return PartitionCompacted(before, before - removed, ratio)
