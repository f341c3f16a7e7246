"""The sink machine: generations fence, epochs are numbered, and the same state comes from its own events."""

from uuid import UUID

import msgspec
import pytest

from goqueue.core.transactions.sinks import EVENT_TYPES, RUNS_MAX, PartitionCount, Sinks
from goqueue.model.errors import SinkFenced, SinkNotFound, SinkOfAnother
from goqueue.model.ids import ProducerId, TopicName
from goqueue.records.layout import SEQUENCE_MASK

ORDERS = TopicName("orders")
FIRST_ID, SECOND_ID = UUID(int=1), UUID(int=2)


def with_sink(name: str = "lake") -> Sinks:
    sinks = Sinks()
    sinks.apply(sinks.take_generation(name, producer_id=ProducerId(7), now_ms=100))
    return sinks


def carry_epoch(sinks: Sinks, epoch: int, *counts: PartitionCount) -> list[int]:
    """Take an epoch through; the sequence number each run began with."""
    prepared = sinks.prepare("lake", epoch, stages=["a"], counts=counts)
    sinks.apply(prepared)
    sinks.apply(sinks.commit("lake", now_ms=200))
    return [run.base_sequence for run in prepared.runs]


def test_a_newer_generation_fences_the_older_and_keeps_the_producer() -> None:
    sinks = with_sink()
    sinks.apply(sinks.take_generation("lake", producer_id=ProducerId(99), now_ms=0))

    with pytest.raises(SinkFenced) as fenced:
        sinks.held_by("lake", 1)
    assert fenced.value.generation == 2
    assert sinks.held_by("lake", 2).producer_id == 7


def take(sinks: Sinks, run: str, writer: str = "") -> int:
    """The generation that a run of a writer gets."""
    taken = sinks.take_generation("lake", producer_id=ProducerId(7), now_ms=0, run=run, writer=writer)
    sinks.apply(taken)
    return taken.generation


def test_a_run_that_asks_again_keeps_its_generation() -> None:
    sinks = with_sink()

    assert [take(sinks, "monday"), take(sinks, "monday"), take(sinks, "tuesday")] == [2, 2, 3]


def test_a_run_that_another_has_followed_gets_no_generation_again() -> None:
    sinks = with_sink()
    take(sinks, "monday")
    take(sinks, "tuesday")

    with pytest.raises(SinkFenced, match="generation 2 may not write"):
        take(sinks, "monday")


def test_only_so_many_runs_are_remembered() -> None:
    sinks = with_sink()
    for number in range(RUNS_MAX + 1):
        take(sinks, f"run-{number}")

    assert len(sinks.sink("lake").runs) == RUNS_MAX
    with pytest.raises(SinkFenced):
        take(sinks, "run-1")


def test_epochs_of_one_writer_are_not_taken_for_those_of_another() -> None:
    sinks = with_sink()
    take(sinks, "first run", writer="a query")
    carry_epoch(sinks, 0)

    assert take(sinks, "second run", writer="a query") == 3
    with pytest.raises(SinkOfAnother, match="counts the epochs of a query"):
        take(sinks, "third run", writer="a query with a new checkpoint")


def test_a_sink_without_epochs_is_anybodys() -> None:
    sinks = with_sink()
    take(sinks, "first run", writer="a query")

    assert take(sinks, "second run", writer="another") == 3
    assert sinks.sink("lake").writer == "another"


def test_a_generation_that_was_never_given_is_fenced_too() -> None:
    with pytest.raises(SinkFenced):
        with_sink().held_by("lake", 2)


def test_a_sink_that_took_no_generation_is_unknown() -> None:
    with pytest.raises(SinkNotFound):
        Sinks().held_by("lake", 1)


def test_messages_are_numbered_per_partition_from_zero_on() -> None:
    sinks = with_sink()
    zero, one = PartitionCount(ORDERS, FIRST_ID, 0, 10), PartitionCount(ORDERS, FIRST_ID, 1, 3)

    assert carry_epoch(sinks, 0, zero, one) == [0, 0]
    assert carry_epoch(sinks, 5, one, zero) == [3, 10]


def test_a_topic_made_anew_under_the_same_name_is_numbered_from_zero() -> None:
    sinks = with_sink()
    carry_epoch(sinks, 0, PartitionCount(ORDERS, FIRST_ID, 0, 10))

    assert carry_epoch(sinks, 1, PartitionCount(ORDERS, SECOND_ID, 0, 1)) == [0]


def test_sequence_numbers_begin_again_behind_the_largest() -> None:
    sinks = with_sink()
    carry_epoch(sinks, 0, PartitionCount(ORDERS, FIRST_ID, 0, SEQUENCE_MASK))
    carry_epoch(sinks, 1, PartitionCount(ORDERS, FIRST_ID, 0, 5))

    assert carry_epoch(sinks, 2, PartitionCount(ORDERS, FIRST_ID, 0, 1)) == [4]


def test_an_epoch_is_decided_from_the_moment_it_is_prepared() -> None:
    sinks = with_sink()
    assert not sinks.sink("lake").is_decided(4)

    sinks.apply(sinks.prepare("lake", 4, stages=[], counts=[]))

    assert sinks.sink("lake").is_decided(4)
    assert not sinks.sink("lake").is_decided(5)
    assert sinks.sink("lake").last_epoch == -1


def test_two_epochs_of_a_sink_are_never_under_way_together() -> None:
    sinks = with_sink()
    sinks.apply(sinks.prepare("lake", 4, stages=[], counts=[]))

    with pytest.raises(AssertionError):
        sinks.prepare("lake", 5, stages=[], counts=[])


def test_a_forgotten_sink_never_gives_out_a_generation_twice() -> None:
    sinks = with_sink()
    sinks.apply(sinks.take_generation("lake", producer_id=ProducerId(7), now_ms=0))
    sinks.apply(sinks.forget("lake"))

    assert sinks.take_generation("lake", producer_id=ProducerId(8), now_ms=0).generation == 3


def test_only_sinks_that_rest_are_called_unused() -> None:
    sinks = with_sink()

    assert sinks.unused_since(101) == ["lake"]
    assert sinks.unused_since(100) == []
    sinks.apply(sinks.prepare("lake", 4, stages=[], counts=[]))
    assert sinks.unused_since(101) == []


def test_the_whole_state_can_be_written_anew_through_the_journals_words() -> None:
    sinks = with_sink()
    for run in ("monday", "tuesday", ""):
        take(sinks, run, writer="a query")
    carry_epoch(sinks, 3, PartitionCount(ORDERS, FIRST_ID, 0, 10))
    sinks.apply(sinks.prepare("lake", 9, stages=["x", "y"], counts=[PartitionCount(ORDERS, FIRST_ID, 0, 2)]))
    sinks.apply(sinks.take_generation("gone", producer_id=ProducerId(8), now_ms=1))
    sinks.apply(sinks.forget("gone"))
    again = with_sink("stale")

    for event in sinks.whole_state():
        written = msgspec.json.encode(event)
        again.apply(msgspec.json.decode(written, type=EVENT_TYPES[type(event).__name__]))

    assert vars(again) == vars(sinks)
