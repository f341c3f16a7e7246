"""What the machines keep for transactions whose places are led by several nodes."""

from uuid import UUID

from goqueue.core.groups.groups import Groups
from goqueue.core.transactions.transactions import Transaction, Transactions
from goqueue.model.groups import NO_GENERATION, Membership, TopicOffsets
from goqueue.model.ids import ProducerId, TopicName
from goqueue.model.settings import GroupConfig
from goqueue.model.transaction_commands import InitProducer
from goqueue.model.transactions import Epochs, Marker, ProducerEpoch, TransactionalPartition

PRODUCER = ProducerEpoch(ProducerId(7), 0)
ORDERS = TopicName("orders")
FIRST, SECOND = (TransactionalPartition(ORDERS, UUID(int=1), number) for number in (0, 1))


def added(transactions: Transactions, place: TransactionalPartition, epoch: int) -> Transaction:
    step = transactions.add(
        "clerk", PRODUCER, partitions=[place], epochs=Epochs((epoch,)), transaction_id="txn-1", now_ms=1
    )
    transactions.apply(step)
    return step


def begun() -> Transactions:
    transactions = Transactions()
    command = InitProducer(transactional_id="clerk", timeout_ms=1_000)
    transactions.apply(transactions.init(command, fresh_id=PRODUCER.producer_id, was_fenced=False, now_ms=0))
    return transactions


def test_a_place_that_joins_again_raises_its_epoch_and_never_lowers_it() -> None:
    transactions = begun()
    added(transactions, FIRST, 3)
    added(transactions, SECOND, 5)
    raised = added(transactions, FIRST, 4)
    assert raised.epochs == Epochs((4, 5))
    assert raised.partitions == (FIRST, SECOND)

    assert added(transactions, FIRST, 2) is raised


def test_epochs_are_gone_with_what_the_transaction_has_touched() -> None:
    transactions = begun()
    added(transactions, FIRST, 3)
    transactions.apply(transactions.prepare("clerk", PRODUCER, Marker.COMMIT, now_ms=2))
    assert transactions.complete("clerk", now_ms=3).epochs is None


def test_a_decision_that_comes_late_does_not_take_offsets_of_the_next_transaction_along() -> None:
    groups = Groups(GroupConfig())
    offsets = TopicOffsets(ORDERS, UUID(int=1), ((0, 5, -1, ""),), ())
    who = Membership("readers", "", NO_GENERATION)
    groups.apply(groups.pend_offsets(who, 7, [offsets], now_ns=0, transaction_id="txn-2"))

    late = groups.decide_pending("readers", 7, is_committed=True, now_ms=1, transaction_id="txn-1")
    own = groups.decide_pending("readers", 7, is_committed=True, now_ms=1, transaction_id="txn-2")

    assert late == ()
    assert len(own) == 2
