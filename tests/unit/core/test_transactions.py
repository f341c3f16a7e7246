"""The transactions machine and what a partition knows of open transactions, on plain values."""

from uuid import UUID

import pytest

from goqueue.core.transactions.journalled import Journalled
from goqueue.core.transactions.open_transactions import OpenTransactions
from goqueue.core.transactions.transactions import TRANSITIONS, Transaction, Transactions
from goqueue.model.errors import (
    InvalidTransactionState,
    ProducerFenced,
    ProducerNotFound,
    TransactionBusy,
)
from goqueue.model.ids import NO_PRODUCER, ProducerId, TopicName
from goqueue.model.transaction_commands import InitProducer
from goqueue.model.transactions import (
    EPOCH_MAX,
    AbortedTransaction,
    Marker,
    OpenInPartition,
    ProducerEpoch,
    TransactionalPartition,
    TransactionState,
)
from goqueue.records.control import encode_marker, marker_of
from goqueue.records.layout import CONTROL, TRANSACTIONAL, BatchHeader, read_header

NAME = "writer"
MINUTE_MS = 60_000
PRODUCER = ProducerEpoch(ProducerId(7), 0)
PLACE = TransactionalPartition(TopicName("orders"), UUID(int=1), 0)


def machine_with_producer() -> Transactions:
    machine = Transactions()
    machine.apply(machine.init(asking(), fresh_id=ProducerId(7), was_fenced=False, now_ms=0))
    return machine


def asking(current: ProducerEpoch | None = None) -> InitProducer:
    return InitProducer(transactional_id=NAME, timeout_ms=MINUTE_MS, current=current)


def add(machine: Transactions, producer: ProducerEpoch = PRODUCER, *, now_ms: int = 1) -> Transaction:
    added = machine.add(NAME, producer, partitions=[PLACE], transaction_id="txn-1", now_ms=now_ms)
    machine.apply(added)
    return added


def end(machine: Transactions, marker: Marker, producer: ProducerEpoch = PRODUCER) -> Transaction:
    prepared = machine.prepare(NAME, producer, marker, now_ms=2)
    machine.apply(prepared)
    return prepared


def take_over(machine: Transactions, *, was_fenced: bool = False) -> ProducerEpoch:
    taken = machine.init(asking(), fresh_id=ProducerId(8), was_fenced=was_fenced, now_ms=5)
    machine.apply(taken)
    return taken.producer


def test_a_transaction_walks_from_empty_to_complete() -> None:
    machine = machine_with_producer()
    states = [machine.held_by(NAME, PRODUCER).state]
    states.append(add(machine).state)
    states.append(end(machine, Marker.COMMIT).state)
    completed = machine.complete(NAME, now_ms=3)
    states.append(completed.state)

    assert [state.value for state in states] == ["Empty", "Ongoing", "PrepareCommit", "CompleteCommit"]
    assert (completed.partitions, completed.groups) == ((), ())


def test_every_state_has_a_line_in_the_table() -> None:
    assert set(TRANSITIONS) == set(TransactionState)
    reachable = {target for targets in TRANSITIONS.values() for target in targets}
    assert reachable == set(TransactionState)


def test_the_next_producer_of_an_id_fences_the_one_before() -> None:
    machine = machine_with_producer()

    assert take_over(machine) == (7, 1)
    with pytest.raises(ProducerFenced):
        add(machine)
    with pytest.raises(ProducerNotFound):
        machine.held_by(NAME, ProducerEpoch(ProducerId(99), 0))


def test_a_transaction_that_was_taken_away_leaves_its_epoch_to_the_next_producer() -> None:
    machine = machine_with_producer()
    add(machine)
    fenced = machine.fence(NAME, now_ms=3)
    machine.apply(fenced)
    machine.apply(machine.complete(NAME, now_ms=4))

    assert (fenced.state, fenced.producer) == (TransactionState.PREPARE_ABORT, (7, 1))
    assert take_over(machine, was_fenced=True) == (7, 1)


def test_an_id_whose_epochs_are_used_up_goes_on_under_a_new_producer_id() -> None:
    machine = machine_with_producer()
    for _ in range(EPOCH_MAX):
        last = take_over(machine)

    assert last == (7, EPOCH_MAX)
    assert machine.wants_producer_id(NAME)
    assert take_over(machine) == (8, 0)
    assert machine.of_producer(7) is None
    assert machine.of_producer(8) is not None


def test_a_producer_that_asks_again_for_its_next_epoch_hears_the_same() -> None:
    machine = machine_with_producer()
    assert not machine.admit_init(asking(PRODUCER))
    taken = machine.init(asking(PRODUCER), fresh_id=NO_PRODUCER, was_fenced=False, now_ms=1)
    machine.apply(taken)

    assert machine.admit_init(asking(PRODUCER))
    assert not machine.admit_init(asking(taken.producer))
    with pytest.raises(ProducerFenced):
        machine.admit_init(asking(ProducerEpoch(ProducerId(7), 9)))


def test_what_is_decided_cannot_be_called_back() -> None:
    machine = machine_with_producer()
    add(machine)
    prepared = end(machine, Marker.COMMIT)

    assert end(machine, Marker.COMMIT) is prepared
    with pytest.raises(InvalidTransactionState):
        end(machine, Marker.ABORT)
    with pytest.raises(TransactionBusy):
        add(machine)


def end_with_bump(machine: Transactions, marker: Marker, producer: ProducerEpoch = PRODUCER) -> ProducerEpoch:
    machine.apply(machine.prepare(NAME, producer, marker, is_bumped=True, now_ms=2))
    completed = machine.complete(NAME, now_ms=3)
    machine.apply(completed)
    return completed.producer


def test_an_end_that_bumps_the_epoch_is_known_again_by_the_one_before() -> None:
    machine = machine_with_producer()
    add(machine)

    assert end_with_bump(machine, Marker.COMMIT) == (7, 1)
    assert machine.has_ended(NAME, PRODUCER, Marker.COMMIT)
    with pytest.raises(InvalidTransactionState):
        machine.has_ended(NAME, PRODUCER, Marker.ABORT)
    with pytest.raises(InvalidTransactionState):
        end_with_bump(machine, Marker.COMMIT, ProducerEpoch(ProducerId(7), 1))


def test_what_began_since_is_not_taken_for_an_end_that_is_asked_for_again() -> None:
    machine = machine_with_producer()
    add(machine)
    bumped = end_with_bump(machine, Marker.COMMIT)
    add(machine, bumped)

    assert not machine.has_ended(NAME, PRODUCER, Marker.COMMIT)
    machine.apply(machine.fence(NAME, now_ms=4))
    machine.apply(machine.complete(NAME, now_ms=5))
    assert not machine.has_ended(NAME, PRODUCER, Marker.ABORT)
    assert not machine.has_ended(NAME, bumped, Marker.ABORT)


def test_an_abort_of_nothing_is_an_end_with_the_next_epoch() -> None:
    machine = machine_with_producer()
    machine.apply(machine.abort_nothing(NAME, now_ms=1))

    assert machine.has_ended(NAME, PRODUCER, Marker.ABORT)
    assert machine.held_by(NAME, ProducerEpoch(ProducerId(7), 1)).state is TransactionState.COMPLETE_ABORT


def test_a_producer_is_never_told_an_epoch_behind_the_last() -> None:
    machine = machine_with_producer()
    for _ in range(EPOCH_MAX):
        last = take_over(machine)
    add(machine, last)
    end_with_bump(machine, Marker.COMMIT, last)

    assert machine.has_used_up_epochs(NAME)
    assert not machine.admit_init(asking(last))
    machine.apply(machine.renew(NAME, fresh_id=ProducerId(8), now_ms=4))
    assert machine.has_ended(NAME, last, Marker.COMMIT)
    assert machine.held_by(NAME, ProducerEpoch(ProducerId(8), 0)).previous == last


def test_what_is_known_already_makes_no_event() -> None:
    machine = machine_with_producer()
    added = add(machine)

    assert machine.add(NAME, PRODUCER, partitions=[PLACE], transaction_id="other", now_ms=9) is added


def test_a_transaction_that_takes_too_long_is_overdue_and_one_at_rest_expires() -> None:
    machine = machine_with_producer()
    add(machine, now_ms=10)

    assert machine.overdue(now_ms=MINUTE_MS + 9) == []
    assert machine.overdue(now_ms=MINUTE_MS + 10) == [NAME]
    assert machine.unused_since(MINUTE_MS) == []
    end(machine, Marker.ABORT)
    machine.apply(machine.complete(NAME, now_ms=20))
    assert (machine.overdue(now_ms=MINUTE_MS * 9), machine.unused_since(MINUTE_MS)) == ([], [NAME])
    machine.apply(machine.forget(NAME))
    assert (machine.get(NAME), machine.of_producer(7)) == (None, None)


def test_the_whole_state_of_a_journal_leads_to_the_same_state() -> None:
    journalled = Journalled()
    journalled.apply(journalled.sinks.take_generation("lake", producer_id=ProducerId(3), now_ms=1))
    journalled.transactions = machine_with_producer()
    add(journalled.transactions)
    twin = Journalled()

    for event in journalled.whole_state():
        twin.apply(event)

    assert list(twin.transactions) == list(journalled.transactions)
    assert twin.sinks.sinks == journalled.sinks.sinks


def batch(producer_id: int, *, epoch: int = 0, newest_ms: int = 5, count: int = 1) -> BatchHeader:
    return BatchHeader(0, 0, 0, 2, 0, TRANSACTIONAL, count - 1, 0, newest_ms, producer_id, epoch, 0, count)


def marker(
    opened: OpenTransactions, kind: Marker, producer_id: int, offset: int
) -> AbortedTransaction | None:
    body = encode_marker(kind, producer_id=producer_id, producer_epoch=0, coordinator_epoch=1, timestamp_ms=1)
    return opened.apply(read_header(body), marker_of(body), base_offset=offset, seen_ms=9)


def test_the_oldest_open_transaction_is_where_readers_stop() -> None:
    opened = OpenTransactions()
    opened.apply(batch(1), None, base_offset=10, seen_ms=100)
    opened.apply(batch(2), None, base_offset=11, seen_ms=200)
    opened.apply(batch(1, newest_ms=9), None, base_offset=12, seen_ms=300)

    assert (opened.first_offset, opened.newest_ms(1)) == (10, 9)
    assert marker(opened, Marker.COMMIT, 1, 13) is None
    assert opened.all() == [OpenInPartition(2, 0, 11, 200)]
    assert marker(opened, Marker.ABORT, 2, 14) == (2, 11, 14, 15)
    assert (opened.first_offset, bool(opened)) == (None, False)


def test_an_abort_tells_where_later_ones_can_begin() -> None:
    opened = OpenTransactions()
    opened.apply(batch(1), None, base_offset=10, seen_ms=0)
    opened.apply(batch(2), None, base_offset=11, seen_ms=0)

    aborted = marker(opened, Marker.ABORT, 2, 12)

    assert aborted == AbortedTransaction(2, 11, 12, last_stable_offset=10)
    assert marker(opened, Marker.ABORT, 2, 13) is None


def test_open_transactions_survive_in_a_recovery_point() -> None:
    opened, twin = OpenTransactions(), OpenTransactions()
    opened.apply(batch(1, epoch=3), None, base_offset=10, seen_ms=100)

    twin.restore(opened.snapshot())

    assert twin.all() == opened.all()
    assert twin.newest_ms(1) == opened.newest_ms(1)


def test_a_marker_is_a_control_batch_of_one_record() -> None:
    body = encode_marker(
        Marker.COMMIT, producer_id=7, producer_epoch=3, coordinator_epoch=2, timestamp_ms=1_000
    )
    header = read_header(body)

    assert (header.attributes, header.record_count, header.size_bytes) == (
        TRANSACTIONAL | CONTROL, 1, len(body)
    )  # fmt: skip
    assert (header.producer_id, header.producer_epoch, header.max_timestamp_ms) == (7, 3, 1_000)
    assert marker_of(body) is Marker.COMMIT
