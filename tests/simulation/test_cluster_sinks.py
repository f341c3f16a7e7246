"""Exactly-once sinks over whole brokers in a simulated cluster: some seeds, and faults that are noticed."""

import asyncio
from collections import Counter

import pytest

from goqueue.broker.broker import Broker
from goqueue.broker.sinks import transacted
from goqueue.broker.sinks.homes import journal_of
from goqueue.broker.transactions.ends import Note
from goqueue.broker.transactions.verbs import end_transaction
from goqueue.model.transaction_commands import EndTransaction
from goqueue.model.transactions import Marker, ProducerEpoch
from goqueue.testing.whole.cluster_sinks import simulate_cluster_sinks
from goqueue.testing.whole.partition_history import Violation

STEPS = 300


def test_an_epoch_is_there_once_and_whole_whoever_dies() -> None:
    assert simulate_cluster_sinks(1, STEPS)["epochs there"] > 0


@pytest.mark.slow
def test_epochs_are_there_once_and_whole_whoever_dies() -> None:
    counts: Counter[str] = Counter()
    for seed in range(1, 9):
        counts += simulate_cluster_sinks(seed, STEPS)
    assert counts["epochs there"] > 60
    assert counts["committed"] > 60
    assert counts["rows seen"] > 100


def is_caught() -> bool:
    for seed in range(1, 40):
        try:
            simulate_cluster_sinks(seed, STEPS)
        except Violation:
            return True
    return False


def test_epochs_that_are_noted_behind_their_decision_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    async def commit_with(broker: Broker, name: str, producer: ProducerEpoch, note: Note) -> None:
        command = EndTransaction(transactional_id=name, producer=producer, marker=Marker.COMMIT)
        await end_transaction(broker, command)
        await asyncio.sleep(1)
        journal = journal_of(broker, name.rpartition("/")[2])
        await journal.submit(note(journal))

    monkeypatch.setattr(transacted, "commit_with", commit_with)
    assert is_caught()
