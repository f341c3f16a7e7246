"""Simulated clients: they publish, append, retry, read and delete, and note what the broker tells them."""

from goqueue.broker.broker import Broker
from goqueue.broker.producers import init_producer
from goqueue.broker.topics.verbs import delete_records
from goqueue.broker.write.append import append
from goqueue.broker.write.publish import publish
from goqueue.model.commands import Append, Placed, Publish
from goqueue.model.errors import (
    DuplicateSequence,
    GoQueueError,
    OffsetOutOfRange,
    OutOfSequence,
    WrongChecksum,
)
from goqueue.model.messages import Acks, Message
from goqueue.model.topics import DeleteRecords
from goqueue.model.transaction_commands import TakeProducerId
from goqueue.testing.rooms.answers import Answers
from goqueue.testing.whole.history import TopicHistory
from goqueue.testing.whole.partition_history import PartitionHistory, Violation, demand, name_of, value_of
from goqueue.testing.whole.story import Story
from goqueue.testing.whole.witness import check_find, check_read, read_whole
from goqueue.testing.whole.workload import (
    PIPELINE_MAX,
    Sent,
    SimulatedProducer,
    build_batch,
    choose_codec,
    spoil,
)

PRODUCERS_MAX = 6
_EVERYTHING = 2**62


class Clients:
    """What clients do in one life of a broker. Each method is one step; most leave something under way."""

    def __init__(self, story: Story, broker: Broker, answers: Answers) -> None:
        self._story = story
        self._broker = broker
        self._answers = answers

    async def publish(self) -> None:
        topic = self._story.choose_topic()
        if topic is None:
            return
        messages = self._story.messages.some(wall_ms=self._wall_ms, partitions=len(topic.partitions))
        acks = self._story.random.choice((Acks.ALL, Acks.ALL, Acks.LEADER, Acks.NONE))
        self._story.note("publish", f"{len(messages)} to {topic.name} acks={acks.value}")
        self._answers.start(self._publish(topic, messages, acks))

    async def append(self) -> None:
        partition = self._story.choose_partition()
        if partition is None:
            return
        messages = self._story.messages.some(wall_ms=self._wall_ms, lane_by_header=True)
        batch = build_batch(messages, codec=choose_codec(self._story.random, messages))
        acks = self._story.random.choice(list(Acks))
        self._story.note("append", f"{len(messages)} to {partition.source} acks={acks.value}")
        self._answers.start(self._send(partition, messages, batch, acks))

    async def append_spoilt(self) -> None:
        """A batch that was damaged on its way must be refused, and leave no trace."""
        partition = self._story.choose_partition()
        if partition is None:
            return
        messages = self._story.messages.some(wall_ms=self._wall_ms, lane_by_header=True)
        batch = spoil(self._story.random, build_batch(messages))
        self._story.note("append spoilt", partition.source)
        try:
            append(self._broker, Append(partition.source, memoryview(bytearray(batch)), Acks.ALL))
        except WrongChecksum:
            return
        except GoQueueError as error:
            self._answers.permit(error)
            return
        raise Violation(f"{partition.source} took a batch that does not match its checksum")

    async def begin_producer(self) -> None:
        partition = self._story.choose_partition()
        if partition is None or len(self._story.producers) >= PRODUCERS_MAX:
            return
        try:
            producer_id = await self._answers.wait_for(init_producer(self._broker, TakeProducerId()))
        except GoQueueError as error:
            self._answers.permit(error)
            return
        demand(producer_id not in self._story.producer_ids, f"producer id {producer_id} was given twice")
        self._story.producer_ids.add(producer_id)
        acks = self._story.random.choice((Acks.ALL, Acks.ALL, Acks.LEADER))
        self._story.producers.append(SimulatedProducer(producer_id, partition, acks))
        self._story.note("producer", f"{producer_id} for {partition.source} acks={acks.value}")

    async def append_idempotent(self) -> None:
        """The next batch of a producer, one that waits to be sent again, or one whose reply got lost."""
        if not self._story.producers:
            await self.begin_producer()
            return
        producer = self._story.random.choice(self._story.producers)
        if producer.done and self._story.is_chosen(0.15):
            sent = self._story.random.choice(producer.done)
        elif (waiting := producer.next_to_send()) is not None:
            sent = waiting
        elif len(producer.waiting) < PIPELINE_MAX:
            messages = self._story.messages.some(wall_ms=self._wall_ms, lane_by_header=True)
            sent = producer.build(self._story.random, messages)
        else:
            return
        who = f"{sent.sequence}+{len(sent.messages)} of producer {producer.producer_id}"
        self._story.note("append idempotent", f"{who} to {producer.partition.source}")
        is_first_time, sent.was_sent, sent.is_under_way = not sent.was_sent, True, True
        self._answers.start(self._send_idempotent(producer, sent, is_first_time=is_first_time))

    async def read(self) -> None:
        if partition := self._story.choose_partition():
            self._story.note("read", partition.source)
            self._answers.start(check_read(self._broker, self._story, partition))

    async def find(self) -> None:
        if partition := self._story.choose_partition():
            self._story.note("find", partition.source)
            self._answers.start(check_find(self._broker, self._story, partition))

    async def delete_records(self) -> None:
        partition = self._story.choose_partition()
        if partition is None or not partition.entries:
            return
        before_offset = self._story.random.choice([-1, *partition.entries])
        asked = _EVERYTHING if before_offset == -1 else before_offset
        partition.deleted_before = max(partition.deleted_before, asked)
        self._story.note("delete records", f"{partition.source} before {before_offset}")
        work = delete_records(
            self._broker, DeleteRecords(target=partition.source, before_offset=before_offset)
        )
        try:
            start_offset = await self._answers.wait_for(work)
        except OffsetOutOfRange as error:
            demand(partition.is_doubtful, f"{partition.source}: {error}")
            return
        except GoQueueError as error:
            self._answers.permit(error)
            return
        demand(start_offset >= before_offset, f"{partition.source} starts at {start_offset}")
        partition.start_offset = max(start_offset, partition.start_offset)
        partition.deleted_before = partition.promised_start = partition.start_offset

    @property
    def _wall_ms(self) -> int:
        return self._broker.clock.wall_ms()

    async def _publish(self, topic: TopicHistory, messages: list[Message], acks: Acks) -> None:
        topic.given.add(messages, wall_ms=self._wall_ms)
        now_ns = self._broker.clock.monotonic_ns()
        replies = await publish(self._broker, Publish(topic=topic.name, messages=messages, acks=acks))
        if not self._answers.has_power:
            return
        for message, reply in zip(messages, replies, strict=True):
            if isinstance(reply, GoQueueError):
                self._answers.permit(reply)
                continue
            assert isinstance(reply, Placed), "no message here asks for a delay"
            demand(message.partition in (None, reply.partition), f"{message} went to {reply}")
            self._note_placed(topic.partitions[reply.partition], reply, message, acks, now_ns)

    def _note_placed(
        self, partition: PartitionHistory, place: Placed, message: Message, acks: Acks, now_ns: int
    ) -> None:
        partition.put(place.offset, [message], acks=acks, now_ns=now_ns)
        if acks is Acks.ALL:
            partition.promise(range(place.offset, place.offset + 1))

    async def _send(
        self, partition: PartitionHistory, messages: list[Message], batch: bytes, acks: Acks
    ) -> None:
        """Append a batch and note what is said about it."""
        partition.given.add(messages, wall_ms=self._wall_ms)
        appended = append(self._broker, Append(partition.source, memoryview(bytearray(batch)), acks))
        offsets = range(appended.base_offset, appended.base_offset + len(messages))
        partition.put(offsets.start, messages, acks=acks, now_ns=self._broker.clock.monotonic_ns())
        if appended.committed is not None:
            await appended.committed
        if acks is Acks.ALL and self._answers.has_power:
            partition.promise(offsets)

    async def _send_idempotent(self, producer: SimulatedProducer, sent: Sent, *, is_first_time: bool) -> None:
        partition = producer.partition
        try:
            await self._send(partition, sent.messages, sent.batch, producer.acks)
        except OutOfSequence as error:
            if any(earlier.sequence < sent.sequence for earlier in producer.waiting):
                producer.failed()  # one before it was refused: all are sent again, in order
                return
            demand(
                producer.may_miss_some or partition.is_doubtful,
                f"{partition.source}: what came before is acknowledged, but: {error}",
            )
            self._retire(producer)
        except DuplicateSequence as error:
            demand(not is_first_time, f"{partition.source}: sent for the first time, but: {error}")
            producer.acknowledged(sent)
            if not producer.may_miss_some:
                await self._check_contains(partition, sent.messages)
        except GoQueueError:
            producer.failed()
            raise
        else:
            producer.acknowledged(sent)

    def _retire(self, producer: SimulatedProducer) -> None:
        """As a Kafka client does after an error it cannot mend: begin again with a new id."""
        if producer in self._story.producers:
            self._story.producers.remove(producer)

    async def _check_contains(self, partition: PartitionHistory, messages: list[Message]) -> None:
        """A client that hears `duplicate` believes that its messages are stored: so they must be."""
        if partition.rotten or partition.is_doubtful:
            return
        shown = await read_whole(self._broker, partition)
        shown_values = {value_of(message) for message in shown.messages}
        missing = [name_of(value_of(m)) for m in messages if value_of(m) not in shown_values]
        demand(
            not missing or shown.start_offset > 0,
            f"{partition.source}: called duplicates, but not in the log: {missing}",
        )
