"""Whose trace messages belong to, learnt from batches that are mostly left unopened."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from goqueue.broker.broker import Broker
from goqueue.broker.tracing.contexts import ContextFinder
from goqueue.broker.tracing.verbs import trace_of
from goqueue.model.settings import MiB
from goqueue.model.telemetry import TraceContext, TraceMessage
from goqueue.node.disk import FolderDisk
from goqueue.records.layout import Codec
from tests.unit.broker.delays.test_producers import batch_of, send
from tests.unit.broker.queue.queue_steps import orders, put
from tests.unit.broker.running import ORDERS_0, running

CONTEXT = TraceContext("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7")
TRACEPARENT = f"00-{CONTEXT.trace_id}-{CONTEXT.parent_span_id}-01".encode()


@asynccontextmanager
async def broker_with_orders(folder: Path) -> AsyncIterator[Broker]:
    async with running(FolderDisk(folder)) as broker:
        await orders(broker)
        yield broker


async def found(broker: Broker, *offsets: int, open_bytes_max: int = MiB) -> dict[int, TraceContext]:
    return await ContextFinder(broker, open_bytes_max=open_bytes_max).find(ORDERS_0, offsets)


def test_messages_without_a_context_have_the_ids_of_their_places(tmp_path: Path) -> None:
    async def main() -> None:
        async with broker_with_orders(tmp_path) as broker:
            await put(broker, "a", "b", "c")

            contexts = await found(broker, 0, 2, open_bytes_max=0)

            told = [
                (await trace_of(broker, TraceMessage(source=ORDERS_0, offset=offset))).context
                for offset in (0, 2)
            ]
            assert contexts == dict(zip((0, 2), told, strict=True))

    asyncio.run(main())


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
@pytest.mark.parametrize("name", ["traceparent", "Traceparent"])
def test_a_producers_context_is_found_in_its_batch(tmp_path: Path, codec: Codec, name: str) -> None:
    async def main() -> None:
        async with broker_with_orders(tmp_path) as broker:
            await put(broker, "a")
            batch = batch_of([(b"b", None), (b"c", (name, TRACEPARENT)), (b"d", None)], codec=codec)
            await send(broker, batch)

            contexts = await found(broker, 0, 1, 2, 3)

            assert list(contexts) == [0, 1, 2, 3]
            assert contexts[2] == CONTEXT
            assert [contexts[offset].parent_span_id for offset in (0, 1, 3)] == [None, None, None]

    asyncio.run(main())


def test_no_more_is_opened_than_there_is_room_for(tmp_path: Path) -> None:
    async def main() -> None:
        async with broker_with_orders(tmp_path) as broker:
            for _ in range(3):
                await send(broker, batch_of([(b"x", ("traceparent", TRACEPARENT))]))
            await put(broker, "a")

            contexts = await found(broker, 0, 1, 2, 3, open_bytes_max=300)

            assert list(contexts) == [0, 1, 3]

    asyncio.run(main())


def test_what_is_not_there_is_left_out(tmp_path: Path) -> None:
    async def main() -> None:
        async with broker_with_orders(tmp_path) as broker:
            await put(broker, "a")

            assert list(await found(broker, 0, 1, 7)) == [0]

    asyncio.run(main())
