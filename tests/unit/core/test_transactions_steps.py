"""The transactions machine step by step: who may speak, what is touched, what takes too long."""

from typing import get_args
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goqueue.core.transactions.open_transactions import OpenTransactions
from goqueue.core.transactions.sinks import StateReset
from goqueue.core.transactions.transactions import (
    EVENT_TYPES,
    NOBODY,
    NOT_BEGUN_MS,
    TRANSITIONS,
    Event,
    Transaction,
    TransactionForgotten,
    Transactions,
)
from goqueue.model.errors import (
    InvalidTransactionState,
    ProducerFenced,
    ProducerNotFound,
    TransactionBusy,
)
from goqueue.model.ids import ProducerId, TopicName
from goqueue.model.transaction_commands import InitProducer
from goqueue.model.transactions import Marker, ProducerEpoch, Reach, TransactionalPartition, TransactionState
from goqueue.records.layout import CONTROL, TRANSACTIONAL, BatchHeader

MINUTE_MS = 60_000
SEVEN = ProducerEpoch(ProducerId(7), 0)
REACH = Reach((10, 20), 30)
OPEN, EMPTY = TransactionState.ONGOING, TransactionState.EMPTY


def place(partition: int, topic: str = "orders") -> TransactionalPartition:
    return TransactionalPartition(TopicName(topic), UUID(int=1), partition)


def asking(name: str = "writer", *, timeout_ms: int = MINUTE_MS) -> InitProducer:
    return InitProducer(transactional_id=name, timeout_ms=timeout_ms, current=None)


def with_producer(*names: str) -> Transactions:
    machine = Transactions()
    for number, name in enumerate(names or ("writer",), 7):
        machine.apply(machine.init(asking(name), fresh_id=ProducerId(number), was_fenced=False, now_ms=0))
    return machine


def begin(machine: Transactions, name: str = "writer", *, now_ms: int = 10) -> Transaction:
    known = machine.get(name)
    assert known is not None
    begun = machine.begin(name, known.producer, transaction_id="txn-1", now_ms=now_ms)
    machine.apply(begun)
    return begun


def finish(machine: Transactions, marker: Marker = Marker.COMMIT, *, now_ms: int = 20) -> Transaction:
    known = machine.get("writer")
    assert known is not None
    machine.apply(machine.prepare("writer", known.producer, marker, reach=REACH, now_ms=now_ms))
    completed = machine.complete("writer", now_ms=now_ms + 1)
    machine.apply(completed)
    return completed


def test_an_id_that_is_new_has_nothing_open_and_epoch_0() -> None:
    machine = Transactions()
    assert machine.wants_producer_id("writer")

    first = machine.init(asking(timeout_ms=5), fresh_id=ProducerId(7), was_fenced=False, now_ms=99)

    assert (first.producer, first.state, first.previous) == (SEVEN, EMPTY, NOBODY)
    assert (first.timeout_ms, first.changed_ms, first.started_ms) == (5, 99, NOT_BEGUN_MS)
    assert machine.get("writer") is None, "deciding changes nothing"
    machine.apply(first)
    assert not machine.wants_producer_id("writer")
    assert not machine.has_used_up_epochs("writer")


def test_a_transaction_can_begin_before_it_has_touched_anything() -> None:
    machine = with_producer()

    begun = begin(machine)

    assert (begun.state, begun.transaction_id, begun.started_ms) == (OPEN, "txn-1", 10)
    assert (begun.partitions, begun.groups, begun.receipts) == ((), (), ())
    with pytest.raises(InvalidTransactionState):
        begin(machine)


@pytest.mark.parametrize(
    ("producer", "error"),
    [
        (ProducerEpoch(ProducerId(7), 1), ProducerFenced),
        (ProducerEpoch(ProducerId(8), 0), ProducerNotFound),
    ],
)
def test_nobody_else_can_speak_for_an_id(producer: ProducerEpoch, error: type[Exception]) -> None:
    machine = with_producer()

    with pytest.raises(error):
        machine.begin("writer", producer, transaction_id="t", now_ms=1)
    with pytest.raises(error):
        machine.add("writer", producer, groups=["g"], transaction_id="t", now_ms=1)
    with pytest.raises(error):
        machine.prepare("writer", producer, Marker.ABORT, now_ms=1)
    with pytest.raises(ProducerNotFound):
        machine.held_by("ghost", SEVEN)


def test_what_a_transaction_touches_adds_up_in_order_and_once() -> None:
    machine = with_producer()
    for partitions, groups, receipts in (
        ([place(0), place(1)], ["g"], []),
        ([place(1), place(2)], [], ["r1"]),
        ([], ["g", "h"], ["r1", "r2"]),
    ):
        machine.apply(
            machine.add(
                "writer",
                SEVEN,
                partitions=partitions,
                groups=groups,
                receipts=receipts,
                transaction_id="txn",
                now_ms=5,
            )
        )

    known = machine.held_by("writer", SEVEN)

    assert known.partitions == (place(0), place(1), place(2))
    assert (known.groups, known.receipts) == (("g", "h"), ("r1", "r2"))


@pytest.mark.parametrize("count", [7, 8, 9, 40])
def test_few_partitions_and_many_are_known_again_alike(count: int) -> None:
    machine = with_producer()
    many = [place(partition) for partition in range(count)]
    machine.apply(machine.add("writer", SEVEN, partitions=many, transaction_id="txn", now_ms=5))
    known = machine.held_by("writer", SEVEN)

    assert machine.add("writer", SEVEN, partitions=many, transaction_id="txn", now_ms=9) is known
    grown = machine.add("writer", SEVEN, partitions=[*many, place(count)], transaction_id="txn", now_ms=9)
    assert grown.partitions == (*many, place(count))


@pytest.mark.parametrize("more", ["groups", "receipts"])
def test_a_group_or_a_receipt_alone_is_something_new(more: str) -> None:
    machine = with_producer()
    machine.apply(machine.add("writer", SEVEN, partitions=[place(0)], transaction_id="txn", now_ms=5))

    added = machine.add(
        "writer",
        SEVEN,
        groups=["g"] if more == "groups" else [],
        receipts=["r"] if more == "receipts" else [],
        transaction_id="txn",
        now_ms=6,
    )

    assert (added.groups, added.receipts) == ((("g",), ()) if more == "groups" else ((), ("r",)))
    assert added.changed_ms == 6


def test_what_is_open_in_a_partition_or_for_a_group_is_the_transactions_only_while_it_is_open() -> None:
    machine = with_producer()
    machine.apply(
        machine.add("writer", SEVEN, partitions=[place(0)], groups=["g"], transaction_id="txn", now_ms=5)
    )
    known = machine.held_by("writer", SEVEN)

    assert (known.is_open_in(place(0)), known.is_open_in(place(1))) == (True, False)
    assert (known.is_open_for("g"), known.is_open_for("h")) == (True, False)
    prepared = machine.prepare("writer", SEVEN, Marker.COMMIT, now_ms=6)
    assert not prepared.is_open_in(place(0))
    assert not prepared.is_open_for("g")


@pytest.mark.parametrize("marker", list(Marker))
def test_a_decision_says_how_far_it_reaches_until_it_has_reached_everything(marker: Marker) -> None:
    machine = with_producer()
    machine.apply(machine.add("writer", SEVEN, partitions=[place(0)], transaction_id="t", now_ms=5))

    prepared = machine.prepare("writer", SEVEN, marker, reach=REACH, now_ms=6)
    assert (prepared.marker, prepared.reach, prepared.partitions) == (marker, REACH, (place(0),))
    machine.apply(prepared)
    completed = machine.complete("writer", now_ms=7)

    assert (completed.reach, completed.partitions, completed.changed_ms) == (None, (), 7)
    with pytest.raises(AssertionError):
        assert completed.marker


@pytest.mark.parametrize("marker", list(Marker))
def test_an_end_that_comes_again_after_it_was_complete_is_known(marker: Marker) -> None:
    machine = with_producer()
    begin(machine)
    completed = finish(machine, marker)

    other = Marker.ABORT if marker is Marker.COMMIT else Marker.COMMIT
    assert machine.prepare("writer", SEVEN, marker, now_ms=30) is completed
    with pytest.raises(InvalidTransactionState):
        machine.prepare("writer", SEVEN, other, now_ms=30)


def test_nothing_can_end_that_has_not_begun() -> None:
    machine = with_producer()

    for marker in Marker:
        with pytest.raises(InvalidTransactionState):
            machine.prepare("writer", SEVEN, marker, now_ms=1)
    assert not machine.has_ended("writer", NOBODY, Marker.ABORT)
    assert not machine.has_ended("ghost", SEVEN, Marker.ABORT)


def test_while_a_decision_is_being_carried_out_nothing_new_begins() -> None:
    machine = with_producer()
    begin(machine)
    machine.apply(machine.prepare("writer", SEVEN, Marker.COMMIT, now_ms=20))

    with pytest.raises(TransactionBusy):
        machine.begin("writer", SEVEN, transaction_id="txn-2", now_ms=21)
    machine.apply(machine.complete("writer", now_ms=22))
    second = machine.begin("writer", SEVEN, transaction_id="txn-2", now_ms=23)
    assert (second.transaction_id, second.started_ms, second.state) == ("txn-2", 23, OPEN)


def test_a_fenced_transaction_is_aborted_in_the_next_epoch() -> None:
    machine = with_producer()
    begin(machine)

    fenced = machine.fence("writer", reach=REACH, now_ms=30)

    assert (fenced.state, fenced.epoch, fenced.reach) == (TransactionState.PREPARE_ABORT, 1, REACH)
    assert fenced.marker is Marker.ABORT


class TestDeadlines:
    """A transaction may be open for as long as its producer said, and as long as the producer lives."""

    def test_the_time_runs_from_where_it_began_and_touching_more_does_not_prolong_it(self) -> None:
        machine = with_producer()
        assert machine.deadline_ms("writer") is None
        begin(machine, now_ms=10)

        machine.apply(machine.add("writer", SEVEN, groups=["g"], transaction_id="t", now_ms=500))

        assert machine.deadline_ms("writer") == MINUTE_MS + 10
        assert machine.next_deadline_ms() == MINUTE_MS + 10

    def test_events_tell_wall_time_and_deadlines_are_in_running_time(self) -> None:
        machine = with_producer()

        machine.apply(machine.begin("writer", SEVEN, transaction_id="t", now_ms=10), ahead_ms=-4)

        assert machine.deadline_ms("writer") == MINUTE_MS + 6

    def test_the_first_deadline_of_all_is_the_next(self) -> None:
        machine = with_producer("a", "b", "c")
        for name, now_ms in (("a", 30), ("b", 10), ("c", 20)):
            begin(machine, name, now_ms=now_ms)

        assert machine.next_deadline_ms() == MINUTE_MS + 10
        assert machine.overdue(now_ms=MINUTE_MS + 20) == ["b", "c"]

    @pytest.mark.parametrize("marker", list(Marker))
    def test_what_is_decided_has_no_deadline(self, marker: Marker) -> None:
        machine = with_producer()
        begin(machine)

        machine.apply(machine.prepare("writer", SEVEN, marker, now_ms=20))

        assert machine.next_deadline_ms() is None
        assert machine.deadline_ms("writer") is None

    def test_a_producer_that_sends_heartbeats_is_believed_dead_when_they_stop(self) -> None:
        machine = with_producer()
        begin(machine)
        assert not machine.has_session("writer")

        machine.keep_session("writer", 100)

        assert machine.has_session("writer")
        assert (machine.deadline_ms("writer"), machine.next_deadline_ms()) == (100, 100)
        assert (machine.overdue(now_ms=99), machine.overdue(now_ms=100)) == ([], ["writer"])

    def test_heartbeats_do_not_prolong_what_is_open_for_too_long(self) -> None:
        machine = with_producer()
        begin(machine)

        machine.keep_session("writer", 10 * MINUTE_MS)

        assert machine.deadline_ms("writer") == machine.next_deadline_ms() == MINUTE_MS + 10

    def test_a_heartbeat_without_a_transaction_is_no_deadline(self) -> None:
        machine = with_producer()

        machine.keep_session("writer", 100)

        assert machine.next_deadline_ms() is None
        assert machine.overdue(now_ms=10**9) == []

    def test_the_session_of_a_producer_is_not_that_of_the_next(self) -> None:
        machine = with_producer()
        machine.keep_session("writer", 100)

        machine.apply(machine.init(asking(), fresh_id=ProducerId(8), was_fenced=False, now_ms=5))

        assert not machine.has_session("writer")

    def test_a_session_lasts_from_one_transaction_to_the_next(self) -> None:
        machine = with_producer()
        machine.keep_session("writer", 100)
        begin(machine)
        finish(machine)

        assert machine.has_session("writer")


@pytest.mark.parametrize(
    ("changed_ms", "since_ms", "is_unused"), [(10, 10, False), (10, 11, True), (10, 5, False)]
)
def test_an_id_at_rest_is_unused_since_its_last_change(
    changed_ms: int, since_ms: int, is_unused: bool
) -> None:
    machine = Transactions()
    machine.apply(machine.init(asking(), fresh_id=ProducerId(7), was_fenced=False, now_ms=changed_ms))

    assert (machine.unused_since(since_ms) == ["writer"]) is is_unused


def test_only_an_id_at_rest_is_forgotten() -> None:
    machine = with_producer()
    begin(machine)
    with pytest.raises(AssertionError):
        machine.forget("writer")
    machine.apply(machine.prepare("writer", SEVEN, Marker.ABORT, now_ms=20))
    assert machine.unused_since(10**9) == []

    machine.apply(machine.complete("writer", now_ms=21))
    machine.keep_session("writer", 100)
    machine.apply(machine.forget("writer"))

    assert (list(machine), machine.of_producer(7), machine.has_session("writer")) == ([], None, False)


def test_a_reset_leaves_nothing_behind() -> None:
    machine = with_producer("a", "b")
    begin(machine, "a")
    machine.keep_session("a", 100)

    machine.apply(StateReset())

    assert vars(machine) == vars(Transactions())


def test_every_event_has_a_name_for_the_journal() -> None:
    assert {kind.__name__: kind for kind in get_args(Event)} == EVENT_TYPES


STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["init", "begin", "add", "commit", "abort", "bump", "complete", "fence", "forget", "renew"]
        ),
        st.sampled_from(("a", "b")),
    ),
    max_size=30,
)


@given(STEPS)
def test_the_same_events_lead_to_the_same_transactions(steps: list[tuple[str, str]]) -> None:
    machine, again, anew = Transactions(), Transactions(), Transactions()
    epochs: dict[str, tuple[int, int]] = {}
    for now_ms, (step, name) in enumerate(steps):
        event = decided(machine, step, name, now_ms)
        if event is None:
            continue
        before = machine.get(name)
        machine.apply(event)
        again.apply(event)
        if isinstance(event, Transaction):
            was = EMPTY if before is None else before.state
            assert event.state in TRANSITIONS[was]
            assert event.producer >= epochs.get(name, (0, 0)), "who once held an id never does again"
            epochs[name] = event.producer
            known = machine.of_producer(event.producer_id)
            assert known == event
    for record in machine:
        anew.apply(record)

    assert vars(again) == vars(machine)
    assert list(anew) == list(machine)
    assert anew.next_deadline_ms() == machine.next_deadline_ms()


def decided(machine: Transactions, step: str, name: str, now_ms: int) -> Event | None:
    """The event of a step, if the id stands so that it can be taken."""
    known = machine.get(name)
    fresh_id = ProducerId(100 + 2 * now_ms + (name == "b"))
    if known is None:
        if step != "init":
            return None
        return machine.init(asking(name), fresh_id=fresh_id, was_fenced=False, now_ms=now_ms)
    is_at_rest = TransactionState.DEAD in TRANSITIONS[known.state]
    match step:
        case "init" if is_at_rest:
            return machine.init(asking(name), fresh_id=fresh_id, was_fenced=False, now_ms=now_ms)
        case "begin" if is_at_rest:
            return machine.begin(name, known.producer, transaction_id="t", now_ms=now_ms)
        case "add" if not known.state.is_prepared:
            return machine.add(
                name, known.producer, partitions=[place(now_ms % 3)], transaction_id="t", now_ms=now_ms
            )
        case "commit" | "abort" | "bump" if known.state is OPEN:
            marker = Marker.ABORT if step == "abort" else Marker.COMMIT
            return machine.prepare(name, known.producer, marker, is_bumped=step == "bump", now_ms=now_ms)
        case "complete" if known.state.is_prepared:
            return machine.complete(name, now_ms=now_ms)
        case "fence" if known.state is OPEN:
            return machine.fence(name, now_ms=now_ms)
        case "renew" if known.state in (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT):
            return machine.renew(name, fresh_id=fresh_id, now_ms=now_ms)
        case "forget" if is_at_rest:
            return TransactionForgotten(name)
    return None


class TestOpenInAPartition:
    """What a partition knows of transactions comes from its batches alone."""

    def opened(self) -> OpenTransactions:
        opened = OpenTransactions()
        self.store(opened, 1, 10)
        self.store(opened, 2, 15)
        return opened

    def store(self, opened: OpenTransactions, producer_id: int, offset: int, newest_ms: int = 5) -> None:
        header = BatchHeader(0, 0, 0, 2, 0, TRANSACTIONAL, 0, 0, newest_ms, producer_id, 3, 0, 1)
        assert opened.apply(header, None, base_offset=offset, seen_ms=offset * 10) is None

    def end(self, opened: OpenTransactions, producer_id: int, marker: Marker) -> object:
        header = BatchHeader(0, 0, 0, 2, 0, TRANSACTIONAL | CONTROL, 0, 0, 5, producer_id, 3, 0, 1)
        return opened.apply(header, marker, base_offset=99, seen_ms=0)

    def test_a_batch_outside_a_transaction_opens_nothing(self) -> None:
        opened = OpenTransactions()
        header = BatchHeader(0, 0, 0, 2, 0, 0, 0, 0, 5, 1, 3, 0, 1)

        assert opened.apply(header, None, base_offset=1, seen_ms=0) is None
        assert not opened

    def test_who_has_something_open_here_is_known(self) -> None:
        opened = self.opened()

        assert (1 in opened, 2 in opened, 3 in opened) == (True, True, False)
        self.end(opened, 1, Marker.COMMIT)
        assert (1 in opened, 2 in opened) == (False, True)

    @pytest.mark.parametrize(("end_offset", "is_open"), [(9, False), (10, False), (11, True), (50, True)])
    def test_what_begins_behind_the_reach_of_a_decision_is_of_a_later_one(
        self, end_offset: int, is_open: bool
    ) -> None:
        opened = self.opened()

        assert opened.is_open_before(1, end_offset) is is_open
        assert not opened.is_open_before(3, end_offset)

    def test_the_newest_message_tells_the_time_of_the_marker(self) -> None:
        opened = self.opened()
        self.store(opened, 1, 20, newest_ms=70)
        self.store(opened, 1, 21, newest_ms=60)

        assert (opened.newest_ms(1), opened.newest_ms(2)) == (70, 5)

    def test_a_marker_of_nothing_that_is_open_tells_nothing(self) -> None:
        assert self.end(self.opened(), 8, Marker.ABORT) is None

    def test_a_recovery_point_keeps_the_order_in_which_they_opened(self) -> None:
        opened, twin = self.opened(), self.opened()

        twin.restore(opened.snapshot())
        self.end(twin, 1, Marker.COMMIT)

        assert twin.first_offset == 15

    def test_without_a_recovery_point_nothing_is_open(self) -> None:
        opened = self.opened()

        opened.restore(None)

        assert (opened.first_offset, opened.all()) == (None, [])
