"""What the leader of a partition tells a coordinator that holds no copy of it: its marks, and batches."""

from uuid import UUID

from goqueue.broker.broker import Broker
from goqueue.broker.read.read import read, visible, wait_for_bytes
from goqueue.broker.slices import Slices
from goqueue.broker.storage.commit_written import commit_written
from goqueue.broker.storage.partition import Partition
from goqueue.model.commands import BatchesRead, PartitionRead, PartitionReadFailed, Read
from goqueue.model.errors import GoQueueError, TopicNotFound
from goqueue.model.ids import TopicPartition
from goqueue.model.marks import ConfirmEpoch, Marks, MarksKnown, MarksTold, ReadCommitted, TellMarks


async def tell_marks(broker: Broker, command: TellMarks) -> MarksTold:
    """How far partitions can be read; waits until one of them is at another place than the caller knows."""
    deadline_ns = broker.clock.monotonic_ns() + command.wait_ms * 1_000_000
    must_show = command.wait_ms == 0
    while True:
        told = MarksTold()
        led: list[Partition] = []
        slices = Slices(broker.clock)
        for at, known in enumerate(command.partitions):
            await slices.pause()
            try:
                partition = led_here(broker, known.source, known.topic_id)
                if not must_show:
                    _note(told, at, known, _marks_of(partition), is_asked=command.wait_ms == 0)
                led.append(partition)
            except GoQueueError as error:
                told.refused[at] = error
        if must_show:
            must_show = False
            await commit_written(led)
            continue
        left_ns = deadline_ns - broker.clock.monotonic_ns()
        if told.marks or told.refused or left_ns <= 0 or not broker.is_open:
            return told
        await wait_for_bytes(broker, led, 1, left_ns)


async def read_committed(broker: Broker, command: ReadCommitted) -> BatchesRead:
    """Batches without markers and what was aborted; `end_offset` is where to go on, also behind those."""
    led_here(broker, command.source, command.topic_id)
    part = PartitionRead(command.source, command.offset, command.max_bytes)
    [outcome] = await read(broker, Read(partitions=[part], max_bytes=command.max_bytes))
    if isinstance(outcome, PartitionReadFailed):
        raise outcome.error
    return visible(outcome)._replace(aborted=())


async def confirm_epoch(broker: Broker, command: ConfirmEpoch) -> bool:
    """Whether this node knows of no newer leader. Who has no copy any more cannot be the next one."""
    partition = broker.partition(command.source)
    return partition.topic_id != command.topic_id or partition.leader_epoch <= command.leader_epoch


def led_here(broker: Broker, source: TopicPartition, topic_id: UUID) -> Partition:
    """A partition of that very topic. Raises NotLeader, TopicNotFound, OffsetNotAvailable."""
    partition = broker.partition(source)
    if partition.topic_id != topic_id:
        raise TopicNotFound(source.topic)  # one of that name, made anew, has nothing to do with it
    partition.admit_read()
    partition.admit_look_up()
    return partition


def _marks_of(partition: Partition) -> Marks:
    log = partition.log
    return Marks(
        partition.leader_epoch,
        log.start_offset,
        partition.commit_mark,
        partition.last_stable_offset,
        log.size_bytes,
        partition.oldest_transaction,
    )


def _note(told: MarksTold, at: int, known: MarksKnown, marks: Marks, *, is_asked: bool) -> None:
    now = (marks.leader_epoch, marks.commit_mark, marks.last_stable_offset)
    if is_asked or now != known[2:]:
        told.marks[at] = marks
