"""Sinks of several nodes: stages by their checksums, and epochs that are noted with a decision."""

import pytest

from goqueue.broker.storage.event_codec import EventCodec
from goqueue.core.transactions.journalled import EVENT_TYPES, EpochDecided, Event, Journalled
from goqueue.core.transactions.sinks import GenerationTaken, StageKept
from goqueue.core.transactions.transactions import Transaction
from goqueue.model.errors import StageNotFound
from goqueue.model.ids import NO_PRODUCER, ProducerId
from goqueue.model.transactions import TransactionState

SINK, ID = "copy", "__sink/copy"
CODEC: EventCodec[Event] = EventCodec(EVENT_TYPES)


def kept() -> Journalled:
    machine = Journalled()
    machine.apply(GenerationTaken(SINK, 1, NO_PRODUCER, 5))
    machine.apply(StageKept(SINK, 0, "a", 11))
    machine.apply(StageKept(SINK, 0, "b", 12))
    machine.apply(StageKept(SINK, 1, "a", 13))
    return machine


def read_back(machine: Journalled) -> Journalled:
    """What another node makes of the same journal when it has been written anew."""
    other = Journalled()
    for event in machine.whole_state():
        other.apply(CODEC.decode(CODEC.encode(event)))
    return other


def test_what_was_staged_last_under_a_name_counts_until_it_is_dropped() -> None:
    machine = kept()
    machine.apply(StageKept(SINK, 0, "a", 21))
    for one in (machine, read_back(machine)):
        assert one.sinks.kept(SINK, 0, ["b", "a"]) == {"b": 12, "a": 21}
    dropped = machine.sinks.drop(SINK, 0, ["a", "never", "a"])
    assert dropped.stages == ("a",)
    machine.apply(dropped)
    for one in (machine, read_back(machine)):
        with pytest.raises(StageNotFound):
            one.sinks.kept(SINK, 0, ["a"])


def test_one_event_decides_a_transaction_and_notes_the_epoch() -> None:
    machine = kept()
    decision = Transaction(
        transactional_id=ID,
        producer_id=ProducerId(7),
        epoch=3,
        timeout_ms=1,
        changed_ms=9,
        state=TransactionState.PREPARE_COMMIT,
    )
    decided = EpochDecided(decision, machine.sinks.note_epoch(SINK, 0, now_ms=9))

    machine.apply(CODEC.decode(CODEC.encode(decided)))

    for one in (machine, read_back(machine)):
        assert one.transactions.get(ID) == decision
        assert one.sinks.sink(SINK).last_epoch == 0
        assert one.sinks.sink(SINK).stages == {(1, "a"): 13}, "what the epoch did not take is of no use"
