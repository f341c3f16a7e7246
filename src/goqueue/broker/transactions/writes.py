"""Which batches may be written: those of a transaction while it is open, by the producer that holds it."""

from collections.abc import Sequence

from goqueue.broker.broker import Broker
from goqueue.broker.schemas.check import Unchecked
from goqueue.broker.storage.partition import Partition
from goqueue.broker.transactions.markers import place_of
from goqueue.model.errors import InvalidRecord, InvalidTransactionState, NotVerified, ProducerNotFound
from goqueue.model.ids import ProducerId
from goqueue.model.transactions import ProducerEpoch
from goqueue.records.layout import TRANSACTIONAL, BatchHeader


class Unverified(Unchecked):
    """The coordinator, which may be another node, must be asked first whether this may be written."""

    def __init__(
        self,
        partition: Partition,
        producer: ProducerEpoch,
        *,
        may_join: bool,
        transactional_id: str | None,
    ) -> None:
        super().__init__()
        self.partition = partition
        self.producer = producer
        self.may_join = may_join
        self.transactional_id = transactional_id


def admit_batches(
    broker: Broker,
    partition: Partition,
    headers: Sequence[BatchHeader],
    *,
    may_join: bool,
    transactional_id: str | None = None,
) -> None:
    """Refuse batches that belong to no open transaction though they should, or the other way round.

    `may_join`: the partition becomes part of the transaction by this.
    """
    header = headers[0]
    if not header.attributes & TRANSACTIONAL:
        if header.producer_id in partition.transactions:
            raise InvalidTransactionState(
                f"producer {header.producer_id} has a transaction open in {partition.source}, "
                "and this batch is not part of it"
            )
        return
    if any(_producer_of(other) != _producer_of(header) for other in headers):
        raise InvalidRecord("the batches of one publish must be of the same transaction")
    join_transaction(
        broker, partition, _producer_of(header), may_join=may_join, transactional_id=transactional_id
    )


def join_transaction(
    broker: Broker,
    partition: Partition,
    producer: ProducerEpoch,
    *,
    may_join: bool,
    transactional_id: str | None = None,
) -> None:
    """Check that a producer may write to a partition within its open transaction.

    With several nodes that is known, or must be asked first: raises Unverified.

    Nobody waits for the disk to know that the partition is part of it: a batch that is found without is
    aborted when the broker opens, and so is the transaction. But the journal is asked to share the batch's
    way to the disk, so that a transaction whose batches are stored outlives a power failure if it can.
    """
    if broker.is_one_of_several:
        if not broker.transactions.verified.is_told(partition, producer.producer_id, producer.epoch):
            raise Unverified(partition, producer, may_join=may_join, transactional_id=transactional_id)
        return
    known = broker.transactions.of_producer(producer.producer_id)
    journal = None if known is None else broker.transactions.find(known.transactional_id)
    if known is None or journal is None:
        raise ProducerNotFound(producer.producer_id)
    if transactional_id not in (None, known.transactional_id):
        # A client that writes in the name of another: producer ids can be guessed.
        raise ProducerNotFound(producer.producer_id, transactional_id or "")
    journal.transactions.held_by(known.transactional_id, producer)
    place = place_of(broker, partition.source)
    if known.is_open_in(place):
        journal.submit().hurry()
        return
    if not may_join:
        raise InvalidTransactionState(
            f"{partition.source} is not part of an open transaction of {known.transactional_id}"
        )
    added = journal.transactions.add(
        known.transactional_id,
        producer,
        partitions=[place],
        transaction_id=new_transaction_id(broker),
        now_ms=broker.clock.wall_ms(),
    )
    journal.submit(added).hurry()


def demand_open(broker: Broker, partition: Partition, producer: ProducerEpoch) -> None:
    """Raises NotVerified where a transaction that was open before something was waited for is so no more."""
    if not broker.transactions.verified.is_told(partition, producer.producer_id, producer.epoch):
        raise NotVerified(*partition.source, "it has ended meanwhile")


def new_transaction_id(broker: Broker) -> str:
    """A name for one transaction."""
    return f"txn-{broker.clock.wall_ms() * 1_000_000}-{broker.chance.getrandbits(64):016x}"


def _producer_of(header: BatchHeader) -> ProducerEpoch:
    return ProducerEpoch(ProducerId(header.producer_id), header.producer_epoch)
