"""Reads a simulated broker and compares what it shows with what was given to it."""

from collections.abc import Iterable

from goqueue.broker.broker import Broker
from goqueue.broker.read.find_offset import find_offset
from goqueue.broker.read.read import read, read_messages
from goqueue.broker.topics.verbs import delete_topic, describe_topic, list_topics
from goqueue.model.commands import (
    BatchesRead,
    FindOffset,
    PartitionRead,
    PartitionReadFailed,
    Read,
    ReadMessages,
    Spot,
)
from goqueue.model.errors import Corrupt, GoQueueError, OffsetOutOfRange
from goqueue.model.messages import Acks, StoredMessage
from goqueue.model.settings import MiB
from goqueue.model.topics import DeleteTopic, DescribeTopic, ListTopics, PartitionView, TopicView
from goqueue.records.batch import open_batch
from goqueue.testing.whole.history import TopicHistory
from goqueue.testing.whole.partition_history import (
    PartitionHistory,
    Shown,
    Violation,
    demand,
    name_of,
    value_of,
)
from goqueue.testing.whole.story import Story


async def check_restart(broker: Broker, story: Story) -> None:
    """Everything that must hold whenever a broker has opened."""
    demand(story.cluster_id in ("", broker.cluster_id), "the cluster id must never change")
    story.cluster_id = broker.cluster_id
    found = {view.name: view for view in await list_topics(broker, ListTopics())}
    _check_epochs(found.values(), story)
    for name in found:
        demand(name in story.topics, f"topic {name} exists, though it was deleted or never made")
    for name, topic in list(story.topics.items()):
        if name in found:
            topic.has_become(found[name])
            if any(partition.damage for partition in found[name].partitions):
                await _give_up(broker, story, topic, found[name])
            else:
                await _check_partitions(broker, story, topic.partitions)
        else:
            topic.has_gone()
            story.forget(topic)


def _check_epochs(topics: Iterable[TopicView], story: Story) -> None:
    epochs = {(topic.topic_id, p.partition): p.leader_epoch for topic in topics for p in topic.partitions}
    for place, epoch in epochs.items():
        demand(epoch > story.leader_epochs.get(place, 0), "a partition's epoch must rise with every start")
    story.leader_epochs = epochs


async def _give_up(broker: Broker, story: Story, topic: TopicHistory, view: TopicView) -> None:
    """A bit has flipped in what a group has had, and recovery has cut it off: the operator starts afresh."""
    for shown, partition in zip(view.partitions, topic.partitions, strict=True):
        is_spoilt = any(rot.may_be_cut for rot in partition.rotten)
        demand(
            is_spoilt or not shown.damage, f"{partition.source}: {shown.damage}, but nothing has spoilt it"
        )
    story.note("give up topic", topic.name)
    topic.may_become(None)
    await delete_topic(broker, DeleteTopic(name=topic.name))
    story.forget(topic)


async def _check_partitions(broker: Broker, story: Story, partitions: list[PartitionHistory]) -> None:
    seen: set[bytes] = set()
    for partition in partitions:
        shown = await read_whole(broker, partition)
        values = [value_of(message) for message in shown.messages]
        twice = [name_of(value) for value in values if value in seen or values.count(value) > 1]
        demand(not twice, f"{partition.source} shows messages twice: {twice}")
        seen.update(values)
        partition.check_recovered(shown, wall_ms_max=story.wall_ms_max, now_ns=broker.clock.monotonic_ns())


async def read_whole(broker: Broker, partition: PartitionHistory) -> Shown:
    """Read a partition from its start to its end, stepping over what is refused as corrupt."""
    while True:
        try:
            return await _read_whole(broker, partition)
        except OffsetOutOfRange as error:
            # Retention has overtaken the reader, or a failed fsync has made the log shorter: begin again.
            demand(error.offset < error.start_offset or partition.is_doubtful, f"{partition.source}: {error}")


async def _read_whole(broker: Broker, partition: PartitionHistory) -> Shown:
    view = await _view(broker, partition)
    shown = Shown(view.start_offset, view.start_offset)
    offset = view.start_offset
    while True:
        reply = await _read_one(broker, partition, offset, max_bytes=MiB)
        if isinstance(reply, PartitionReadFailed):
            _check_named(partition, offset, reply.error)
            shown.corrupt_offsets.append(offset)
            offset += 1
            continue
        shown.end_offset = max(offset, reply.high_watermark)
        if offset >= reply.high_watermark:
            return shown
        demand(bool(reply.batches), f"{partition.source}: nothing to read at {offset}, before the end")
        shown.messages += messages_of(reply, offset)
        offset = reply.end_offset


async def check_read(broker: Broker, story: Story, partition: PartitionHistory) -> None:
    """Read a stretch from any offset, in one way or the other."""
    try:
        await _check_read(broker, story, partition)
    except OffsetOutOfRange as error:
        # Retention may remove messages between the choice of an offset and the read.
        demand(error.offset < error.start_offset, f"{partition.source}: {error}")


async def _check_read(broker: Broker, story: Story, partition: PartitionHistory) -> None:
    view = await _view(broker, partition)
    offset = story.random.randint(view.start_offset, max(view.start_offset, view.end_offset))
    max_bytes = story.random.choice((1, 500, 5_000, MiB))
    wait_ms = story.random.choice((0, 0, 50))
    promised_end = partition.promised_end
    if story.is_chosen(0.5):
        command = ReadMessages(source=partition.source, offset=offset, max_bytes=max_bytes, wait_ms=wait_ms)
        try:
            shown = (await read_messages(broker, command)).messages
        except Corrupt as error:
            _check_named(partition, offset, error)
            return
    else:
        reply = await _read_one(broker, partition, offset, max_bytes=max_bytes, wait_ms=wait_ms)
        if isinstance(reply, PartitionReadFailed):
            _check_named(partition, offset, reply.error)
            return
        shown = messages_of(reply, offset)
        demand(
            reply.high_watermark >= promised_end or (partition.is_doubtful and bool(partition.rotten)),
            f"{partition.source}: the high watermark {reply.high_watermark} hides what was acknowledged",
        )
    # While it reads, retention may overtake a reader, who is then taken to where the log begins.
    start_offset = (await _view(broker, partition)).start_offset
    if shown:
        demand(
            shown[0].offset == offset or offset < shown[0].offset <= start_offset,
            f"{partition.source}: a read from {offset} begins at {shown[0].offset}",
        )
    now_ns = broker.clock.monotonic_ns()
    partition.check_read(shown, start_offset=start_offset, acks=Acks.NONE, now_ns=now_ns)
    if shown:
        # What somebody has seen stays, whatever its producer was told: acks and offsets speak of it.
        partition.promise(range(shown[0].offset, shown[-1].offset + 1))


async def check_find(broker: Broker, story: Story, partition: PartitionHistory) -> None:
    """Find an offset by its time, and compare with a look at every message."""
    if partition.rotten:
        return
    try:
        await _check_find(broker, story, partition)
    except Corrupt as error:
        partition.check_corrupt(error.offset)  # a bit may have flipped meanwhile


async def _check_find(broker: Broker, story: Story, partition: PartitionHistory) -> None:
    shown = await read_whole(broker, partition)
    if not shown.messages:
        return
    times = [message.timestamp_ms for message in shown.messages]
    wanted_ms = story.random.choice(times) + story.random.choice((-1, 0, 0, 1))
    found = await find_offset(broker, FindOffset(source=partition.source, spot=wanted_ms))
    latest = await find_offset(broker, FindOffset(source=partition.source, spot=Spot.MAX_TIMESTAMP))
    view = await _view(broker, partition)
    has_moved = view.start_offset != shown.start_offset or view.end_offset != shown.end_offset
    if has_moved or partition.is_doubtful:
        return  # the log is another one than when we looked
    expected = next((m.offset for m in shown.messages if m.timestamp_ms >= wanted_ms), -1)
    demand(
        found.offset == expected,
        f"{partition.source}: time {wanted_ms} is found at {found.offset}, but it is at {expected}",
    )
    demand(
        latest.timestamp_ms == max(times),
        f"{partition.source}: the largest timestamp is {max(times)}, not {latest.timestamp_ms}",
    )


def messages_of(reply: BatchesRead, offset: int) -> list[StoredMessage]:
    """The messages of a reply, without those before the offset asked for."""
    messages: list[StoredMessage] = []
    for batch, lane in zip(reply.batches, reply.lanes, strict=True):
        try:
            messages += open_batch(batch, lane)
        except Exception as error:
            # Every batch given could be opened, so this one is none of them.
            raise Violation(f"a read from {offset} shows bytes which nobody has written") from error
    return [message for message in messages if message.offset >= offset]


async def _view(broker: Broker, partition: PartitionHistory) -> PartitionView:
    topic, number = partition.source
    return (await describe_topic(broker, DescribeTopic(name=topic))).partitions[number]


async def _read_one(
    broker: Broker, partition: PartitionHistory, offset: int, *, max_bytes: int, wait_ms: int = 0
) -> BatchesRead | PartitionReadFailed:
    """A reply, or the failure when it is a Corrupt; every other error is raised."""
    command = Read(
        partitions=[PartitionRead(partition.source, offset, max_bytes)], min_bytes=1, wait_ms=wait_ms
    )
    (reply,) = await read(broker, command)
    if isinstance(reply, PartitionReadFailed) and not isinstance(reply.error, Corrupt):
        raise reply.error
    return reply


def _check_named(partition: PartitionHistory, offset: int, error: GoQueueError) -> None:
    """A Corrupt names its place: the partition, and a spoilt offset at or before the one asked for."""
    assert isinstance(error, Corrupt)
    demand(
        (error.topic, error.partition) == partition.source and 0 <= error.offset <= offset,
        f"{partition.source}: reading {offset} failed with {error!r}, which names another place",
    )
    partition.check_corrupt(offset)
