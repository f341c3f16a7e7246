"""The scrub: bytes that have gone bad are known before a reader meets them."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from goqueue.broker.broker import Broker
from goqueue.broker.health.scrub import scrub_all
from goqueue.broker.topics.verbs import delete_records
from goqueue.broker.write.publish import publish
from goqueue.core.telemetry.checks import Verdict
from goqueue.model.commands import Publish
from goqueue.model.messages import Message
from goqueue.model.settings import BrokerConfig, MiB
from goqueue.model.topics import DeleteRecords
from goqueue.node.disk import FolderDisk
from tests.unit.broker.queue.queue_steps import orders
from tests.unit.broker.running import ORDERS, ORDERS_0, running

FAST = BrokerConfig(scrub_bytes_per_s=1024 * MiB)


def live(root: Path, work: Callable[[Broker], Awaitable[None]]) -> None:
    async def walk() -> None:
        async with running(FolderDisk(root), FAST) as broker:
            await work(broker)

    asyncio.run(walk())


async def fill(broker: Broker) -> None:
    """Two sealed segments, the second with a batch that is larger than what is read at a time."""
    await orders(broker)
    for size in (100,) * 10:
        await put(broker, size)
    broker.partition(ORDERS_0).log.roll()
    for size in (100, 300_000, 100):
        await put(broker, size)
    broker.partition(ORDERS_0).log.roll()
    await put(broker, 100)


async def put(broker: Broker, size: int) -> None:
    await publish(broker, Publish(topic=ORDERS, messages=[Message(b"." * size)]))


def flip(path: Path, position: int) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        [byte] = file.read(1)
        file.seek(position)
        file.write(bytes([byte ^ 1]))


def test_a_folder_that_is_well_is_read_to_its_end(tmp_path: Path) -> None:
    async def work(broker: Broker) -> None:
        await fill(broker)
        await scrub_all(broker)
        sealed = broker.partition(ORDERS_0).log.sealed_segments
        assert [segment.base_offset for segment in sealed] == [0, 10]
        assert broker.health.scrub.scrubbed_bytes == sum(segment.size for segment in sealed)
        assert broker.health.scrub.bad == {}
        assert (await broker.health.check(broker))["scrub"].verdict is Verdict.PASS

    live(tmp_path, work)


@pytest.mark.parametrize(("base", "position"), [(0, 500), (10, 200_000), (10, 10)])
def test_a_bit_that_has_flipped_is_told_until_it_is_gone(tmp_path: Path, base: int, position: int) -> None:
    async def work(broker: Broker) -> None:
        await fill(broker)
        path = tmp_path / f"logs/orders/0/{base:020d}.log"
        flip(path, position)
        for _ in range(2):
            await scrub_all(broker)
            assert list(broker.health.scrub.bad) == [(ORDERS_0, base)]
            assert broker.health.scrub.bad_frames == 1
        check = (await broker.health.check(broker))["scrub"]
        assert (check.verdict, f"orders/0 (segment {base})" in check.message) == (Verdict.WARN, True)

        await delete_records(broker, DeleteRecords(target=ORDERS_0, before_offset=-1))
        await scrub_all(broker)
        assert broker.health.scrub.bad == {}

    live(tmp_path, work)


def test_a_file_that_is_cut_while_the_broker_runs_is_told(tmp_path: Path) -> None:
    async def work(broker: Broker) -> None:
        await fill(broker)
        path = tmp_path / f"logs/orders/0/{10:020d}.log"
        with path.open("r+b") as file:
            file.truncate(1_000)
        await scrub_all(broker)
        [[problem]] = broker.health.scrub.bad.values()
        assert "shorter" in problem

    live(tmp_path, work)
