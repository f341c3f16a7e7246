"""What older versions left of a sink's epoch: prepared in the journal, its batches part of no transaction.

They appended the batches of a prepared epoch for everybody to see, as those of the sink's idempotent
producer. A crash left some of them. Folders of that kind must open, and their epochs be finished.
"""

from collections import Counter
from collections.abc import Sequence

from goqueue.broker.appending import append_once, await_all
from goqueue.broker.broker import Broker
from goqueue.core.transactions.sinks import PartitionCount
from goqueue.log.partition_log import CheckedBatch, storage_error
from goqueue.model.ids import TopicPartition
from goqueue.records.layout import read_header, stamp_producer


async def leave_as_before(
    broker: Broker, name: str, epoch: int, stage_ids: Sequence[str], *, batches: int
) -> None:
    """Prepare an epoch and append so many of its batches, as the versions before did."""
    sink = broker.sinks.machine.sink(name)
    stages = broker.sinks.stages.named(name, epoch, stage_ids)
    totals: Counter[TopicPartition] = Counter()
    for stage in stages:
        totals.update(stage.counts)
    prepared = broker.sinks.machine.prepare(
        name,
        epoch,
        stages=stage_ids,
        counts=[
            PartitionCount(topic, broker.metadata.topic(topic).topic_id, number, count)
            for (topic, number), count in totals.items()
        ],
    )
    await broker.transactions.of_sinks.submit(prepared)
    sequences = {TopicPartition(run.topic, run.partition): run.base_sequence for run in prepared.runs}
    try:
        entries = [entry for stage in stages for entry in broker.sinks.stages.read(stage)]
    except OSError as error:
        raise storage_error(error, f"read of stages of {name}") from error
    for target, lane, body in entries[:batches]:
        stamp_producer(body, producer_id=sink.producer_id, producer_epoch=0, base_sequence=sequences[target])
        header = read_header(body)
        append_once(broker.partition(target), [CheckedBatch(header, body, lane)])
        sequences[target] += header.record_count
    written = [broker.partition(target) for target in totals]
    await await_all(*(partition.committed(partition.log.end_offset) for partition in written))
