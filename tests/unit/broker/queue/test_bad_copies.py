"""Where there are several copies, what is bad in one is waited for: it is whole in another."""

from collections.abc import Sequence
from uuid import UUID

import pytest

from goqueue.broker.broker import Broker
from goqueue.broker.queue import delivery as module
from goqueue.broker.queue import read as reading
from goqueue.broker.queue.delivery import delivery_of, scan
from goqueue.broker.queue.read import open_runs
from goqueue.model.cluster import NodeId, PartitionRecord
from goqueue.model.commands import PartitionReadFailed, Read
from goqueue.model.errors import Corrupt, OffsetNotAvailable
from tests.unit.broker.lives import Lives
from tests.unit.broker.queue.queue_steps import join, orders, put, take
from tests.unit.broker.running import ORDERS, ORDERS_0

A, B = NodeId("a"), NodeId("b")


async def read_badly(broker: Broker, command: Read) -> Sequence[PartitionReadFailed]:
    error = Corrupt("orders/0 is corrupt at offset 0", offset=0, next_offset=1)
    return [PartitionReadFailed(error, 0, 3)]


def held_by(broker: Broker, *isr: NodeId, elr: tuple[NodeId, ...] = ()) -> None:
    topic: UUID = broker.metadata.topics[ORDERS].topic_id
    broker.metadata.records[topic, 0] = PartitionRecord(leader=A, epoch=1, replicas=(A, B), isr=isr, elr=elr)


@pytest.mark.parametrize(("isr", "elr"), [((A, B), ()), ((A,), (B,))])
def test_a_group_waits_for_what_another_copy_has(
    monkeypatch: pytest.MonkeyPatch, isr: tuple[NodeId, ...], elr: tuple[NodeId, ...]
) -> None:
    async def story(broker: Broker) -> None:
        await orders(broker)
        await put(broker, "a", "b", "c")
        ann = await join(broker)
        held_by(broker, *isr, elr=elr)
        journal = await broker.coordinator.journals.ensure("workers")
        delivery = delivery_of(broker, journal, "workers", ORDERS_0)
        with monkeypatch.context() as patch:
            patch.setattr(Broker, "is_one_of_several", True)
            patch.setattr(module, "read", read_badly)
            patch.setattr(reading, "read", read_badly)
            with pytest.raises(OffsetNotAvailable):
                await scan(broker, journal, delivery, 10)
            with pytest.raises(OffsetNotAvailable):
                await open_runs(broker, ORDERS_0, [(0, 3)], 1_000)
        assert [one.value for one in await take(broker, ann)] == ["a", "b", "c"]

    Lives(1).live(story)


def test_a_group_passes_over_what_nobody_else_has(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(broker: Broker) -> None:
        await orders(broker)
        await put(broker, "a", "b", "c")
        held_by(broker, A)
        with monkeypatch.context() as patch:
            patch.setattr(Broker, "is_one_of_several", True)
            patch.setattr(reading, "read", read_badly)
            opened = await open_runs(broker, ORDERS_0, [(0, 1)], 1_000)
        assert [(run.first, run.end) for run in opened.damaged] == [(0, 1)]

    Lives(2).live(story)
