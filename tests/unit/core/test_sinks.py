"""The sink machine: generations fence, epochs are numbered, and the same state comes from its own events."""

from typing import get_args
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goqueue.core.transactions.sinks import (
    EVENT_TYPES,
    RUNS_MAX,
    Event,
    GenerationTaken,
    PartitionCount,
    Sinks,
)
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


def test_a_writer_that_names_nothing_takes_the_next_generation_each_time() -> None:
    sinks = with_sink()

    assert [take(sinks, "") for _ in range(3)] == [2, 3, 4]


def test_a_sink_knows_its_writer_when_a_later_one_does_not_say() -> None:
    sinks = with_sink()
    take(sinks, "r1", "job")
    take(sinks, "")

    assert sinks.sink("lake").writer == "job"


def test_what_an_epoch_holds_is_named_before_it_is_in_the_log() -> None:
    sinks = with_sink()
    counts = [PartitionCount(ORDERS, FIRST_ID, 0, 5), PartitionCount(ORDERS, FIRST_ID, 3, 2)]

    prepared = sinks.prepare("lake", 4, stages=["s1", "s2"], counts=counts)
    sinks.apply(prepared)

    assert (prepared.stages, prepared.epoch) == (("s1", "s2"), 4)
    assert [(run.partition, run.base_sequence, run.message_count) for run in prepared.runs] == [
        (0, 0, 5),
        (3, 0, 2),
    ]
    assert sinks.sink("lake").prepared == prepared
    assert sinks.sink("lake").last_epoch == -1
    sinks.apply(sinks.commit("lake", now_ms=300))
    sink = sinks.sink("lake")
    assert (sink.prepared, sink.last_epoch, sink.used_ms) == (None, 4, 300)
    assert sink.sequences == {(FIRST_ID, 0): 5, (FIRST_ID, 3): 2}


@pytest.mark.parametrize("epoch", [3, 4])
def test_an_epoch_that_is_in_the_log_is_not_prepared_again(epoch: int) -> None:
    sinks = with_sink()
    carry_epoch(sinks, 4, PartitionCount(ORDERS, FIRST_ID, 0, 5))

    with pytest.raises(AssertionError):
        sinks.prepare("lake", epoch, stages=[], counts=[])


def test_nothing_is_committed_that_was_not_prepared() -> None:
    with pytest.raises(AssertionError):
        with_sink().commit("lake", now_ms=1)


@pytest.mark.parametrize("verb", ["commit", "forget", "prepare", "held_by"])
def test_a_sink_that_is_not_there_cannot_be_used(verb: str) -> None:
    sinks = Sinks()
    with pytest.raises(SinkNotFound):
        match verb:
            case "commit":
                sinks.commit("ghost", now_ms=0)
            case "forget":
                sinks.forget("ghost")
            case "prepare":
                sinks.prepare("ghost", 1, stages=[], counts=[])
            case _:
                sinks.held_by("ghost", 1)


def test_a_new_sink_begins_behind_all_generations_of_those_that_were_forgotten() -> None:
    sinks = with_sink("a")
    for _ in range(4):
        sinks.apply(sinks.take_generation("a", producer_id=ProducerId(7), now_ms=0))
    sinks.apply(sinks.take_generation("b", producer_id=ProducerId(8), now_ms=0))
    for name in ("a", "b"):
        sinks.apply(sinks.forget(name))

    taken = sinks.take_generation("c", producer_id=ProducerId(9), now_ms=0)

    assert (taken.generation, taken.producer_id) == (6, 9)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(("take", "prepare", "commit", "forget")),
        st.sampled_from(("lake", "sea")),
        st.integers(0, 4),
    ),
    max_size=25,
)


@given(STEPS)
def test_the_same_events_lead_to_the_same_sinks_and_so_does_the_state_written_anew(
    steps: list[tuple[str, str, int]],
) -> None:
    sinks, again, anew = Sinks(), Sinks(), Sinks()
    given_out: dict[str, int] = {}
    for step, name, number in steps:
        known = sinks.sinks.get(name)
        if step == "take":
            try:
                event: Event = sinks.take_generation(
                    name, producer_id=ProducerId(number), now_ms=number, run=f"run-{number}" if number else ""
                )
            except SinkFenced:
                continue
            assert isinstance(event, GenerationTaken)
            assert event.generation >= given_out.get(name, 0), "generations never fall"
            given_out[name] = event.generation
        elif known is None:
            continue
        elif step == "prepare" and known.prepared is None:
            counts = [PartitionCount(ORDERS, FIRST_ID, number, number)]
            event = sinks.prepare(name, known.last_epoch + 1, stages=["s"], counts=counts)
        elif step == "commit" and known.prepared is not None:
            event = sinks.commit(name, now_ms=number)
        elif step == "forget" and known.prepared is None:
            event = sinks.forget(name)
        else:
            continue
        sinks.apply(event)
        again.apply(event)
    for event in sinks.whole_state():
        anew.apply(event)

    assert vars(again) == vars(sinks)
    assert vars(anew) == vars(sinks)


def test_every_event_has_a_name_for_the_journal() -> None:
    assert {kind.__name__: kind for kind in get_args(Event)} == EVENT_TYPES
