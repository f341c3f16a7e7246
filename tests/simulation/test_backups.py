"""Whole backups at any moment: brought back, they keep what a power cut would have left."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from goqueue.broker.backup.whole import verbs
from goqueue.broker.backup.whole.copying import Cut
from goqueue.broker.broker import Broker
from goqueue.model.ports import Disk
from goqueue.testing.rooms.queue_simulation import simulate_queue
from goqueue.testing.rooms.transaction_simulation import simulate_transactions
from goqueue.testing.whole.partition_history import Violation
from goqueue.testing.world import machine


@pytest.fixture
def brought_back(monkeypatch: pytest.MonkeyPatch) -> list[Broker]:
    """Every life that ends with its power is gone on with from a backup; these were the brokers."""
    seen: list[Broker] = []
    copy_whole = machine.copy_whole

    def counted(broker: Broker, target: Disk) -> None:
        copy_whole(broker, target)
        seen.append(broker)

    monkeypatch.setattr(machine, "copy_whole", counted)
    monkeypatch.setattr(machine, "_BACKUP_SHARE", 1.0)
    return seen


@pytest.mark.parametrize("simulate", [simulate_queue, simulate_transactions])
def test_what_was_promised_is_in_a_backup_of_any_moment(
    simulate: Callable[..., object], brought_back: list[Broker]
) -> None:
    for seed in range(3):
        simulate(seed, 300)
    assert len(brought_back) > 3


def test_a_backup_that_lacks_the_last_message_is_found_out(
    monkeypatch: pytest.MonkeyPatch, brought_back: list[Broker]
) -> None:
    def short(broker: Broker, backup_id: str) -> Cut:
        cut = verbs.take_cut(broker, backup_id)
        cuts = [
            replace(each, end_offset=max(each.end_offset - 1, each.start_offset))
            if "/__" not in each.folder
            else each
            for each in cut.partitions
        ]
        return replace(cut, partitions=cuts)

    monkeypatch.setattr(machine, "take_cut", short)
    with pytest.raises(Violation):
        for seed in range(5):
            simulate_queue(seed, 300)
