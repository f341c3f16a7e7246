"""Steps of a transactional producer at the broker, for tests."""

from collections import Counter

from goqueue.broker.broker import Broker
from goqueue.broker.groups.offsets import fetch_offsets
from goqueue.broker.read.read import read_messages
from goqueue.broker.storage.partition import FlushRequests, Partition
from goqueue.broker.transactions.journal import TransactionJournal
from goqueue.broker.transactions.verbs import (
    add_group,
    add_partitions,
    end_transaction,
    init_transactional,
    pend_offsets,
)
from goqueue.broker.write.append import append
from goqueue.model.commands import Append, ReadMessages
from goqueue.model.group_commands import FetchOffsets
from goqueue.model.groups import NO_GENERATION, Membership, TopicCommit
from goqueue.model.ids import TopicPartition
from goqueue.model.messages import Acks, Message
from goqueue.model.transaction_commands import (
    AddGroupToTransaction,
    AddPartitionsToTransaction,
    EndTransaction,
    InitProducer,
    PendOffsets,
)
from goqueue.model.transactions import Marker, ProducerEpoch
from goqueue.records.batch import encode
from goqueue.records.layout import stamp_producer
from tests.unit.broker.running import ORDERS

WRITER = "writer"
GROUP = "readers"
MINUTE_MS = 60_000


class IdleFlusher(FlushRequests):
    """A disk that takes its time."""

    def request(self, partition: Partition) -> None:
        pass

    def request_snapshot(self, partition: Partition) -> None:
        pass

    def note_dirty(self, partition: Partition, size: int) -> None:
        pass


class Writer:
    """Holds a transactional id and counts what it sends."""

    def __init__(self, broker: Broker, producer: ProducerEpoch, name: str) -> None:
        self.broker = broker
        self.producer = producer
        self.name = name
        self._sequences: Counter[int] = Counter()

    async def add(self, *partitions: int) -> None:
        targets = [TopicPartition(ORDERS, number) for number in partitions]
        await add_partitions(
            self.broker,
            AddPartitionsToTransaction(transactional_id=self.name, producer=self.producer, targets=targets),
        )

    async def put(self, partition: int, value: str, *, may_join: bool = False) -> int:
        body = transactional_batch(self.producer, value, self._sequences[partition])
        target = TopicPartition(ORDERS, partition)
        appended = append(self.broker, Append(target, body, Acks.ALL, may_join))
        self._sequences[partition] += 1
        if appended.committed is not None:
            await appended.committed
        return appended.base_offset

    async def read_up_to(self, offset: int) -> None:
        """Have the group's offset committed with the transaction."""
        await add_group(
            self.broker,
            AddGroupToTransaction(transactional_id=self.name, producer=self.producer, group=GROUP),
        )
        who = Membership(GROUP, "", NO_GENERATION)
        commit = TopicCommit(ORDERS, [(0, offset, -1, "")])
        refused = await pend_offsets(
            self.broker,
            PendOffsets(transactional_id=self.name, producer=self.producer, who=who, commits=[commit]),
        )
        assert not refused

    async def end(self, marker: Marker, *, until_complete: bool = False) -> None:
        await end_transaction(
            self.broker,
            EndTransaction(
                transactional_id=self.name,
                producer=self.producer,
                marker=marker,
                until_complete=until_complete,
            ),
        )

    async def commit(self) -> None:
        await self.end(Marker.COMMIT)

    async def abort(self) -> None:
        await self.end(Marker.ABORT)


async def new_writer(broker: Broker, name: str = WRITER, *, timeout_ms: int = MINUTE_MS) -> Writer:
    command = InitProducer(transactional_id=name, timeout_ms=timeout_ms)
    return Writer(broker, await init_transactional(broker, command), name)


async def journal_of(writer: Writer) -> TransactionJournal:
    return await writer.broker.transactions.ensure(writer.name)


def transactional_batch(producer: ProducerEpoch, value: str, sequence: int) -> memoryview:
    [(body, _)] = encode([Message(value.encode())], now_ms=1)
    stamp_producer(
        body,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        base_sequence=sequence,
        is_transactional=True,
    )
    return body


async def values(broker: Broker, partition: int) -> list[str]:
    """All that a reader of committed messages sees, in order."""
    source = TopicPartition(ORDERS, partition)
    found = await read_messages(broker, ReadMessages(source=source, limit=100_000))
    return [(message.value or b"").decode() for message in found.messages]


async def committed_offset(broker: Broker) -> int:
    [found] = await fetch_offsets(broker, FetchOffsets(group=GROUP, wanted=[(ORDERS, [0])]))
    return found.rows[0][1]
