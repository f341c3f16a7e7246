"""Frames out of a stream of bytes, and when a client is not read from."""

import asyncio
import logging
import struct
from collections.abc import Callable, Iterable
from random import Random
from types import SimpleNamespace
from typing import cast

import pytest

from goqueue.broker.broker import Broker
from goqueue.core.access.client_quotas import ClientQuotas
from goqueue.edge.kafka.apis import ApiKey
from goqueue.edge.kafka.config import KafkaConfig
from goqueue.edge.kafka.context import Context
from goqueue.edge.kafka.frame_memory import FrameMemory
from goqueue.edge.kafka.protocol import KafkaProtocol
from goqueue.edge.limited_log import LimitedLog
from goqueue.model.settings import BrokerConfig, KiB, Limits, MiB
from goqueue.testing.world.threads import SimulatedThreads

CONFIG = KafkaConfig(limits=Limits(message_bytes=MiB, request_bytes=3 * MiB), unanswered_requests_max=8)


class Lobby:
    """Lets everybody in. ApiVersions is asked for here, and that needs no broker."""

    def __init__(self, *, is_full: bool = False) -> None:
        self.is_full = is_full
        self.memory = FrameMemory()
        self.log = LimitedLog(logging.getLogger("goqueue.edge.kafka"))
        self.left: list[KafkaProtocol] = []

    def admit(self, client: KafkaProtocol) -> str | None:
        return "full" if self.is_full else None

    def context_for(self, transport: asyncio.Transport) -> Context:
        return Context(
            broker=cast(
                Broker,
                SimpleNamespace(
                    threads=SimulatedThreads(Random(1)), config=BrokerConfig(), client_quotas=ClientQuotas()
                ),
            ),
            config=CONFIG,
            host="here",
            port=1,
        )

    def know(self, client: KafkaProtocol) -> None:
        """Nobody is asked here."""

    def leave(self, client: KafkaProtocol) -> None:
        self.left.append(client)


class Transport(asyncio.Transport):
    """Remembers what it was told."""

    def __init__(self) -> None:
        super().__init__({"peername": ("peer", 1)})
        self.sent = bytearray()
        self.write_count = 0
        self.is_read_from = True
        self.is_closed = False

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        assert not self.is_closed
        self.write_count += 1
        for data in list_of_data:
            self.sent += data

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def pause_reading(self) -> None:
        self.is_read_from = False

    def resume_reading(self) -> None:
        self.is_read_from = True

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True

    def abort(self) -> None:
        self.is_closed = True

    def answered(self) -> list[int]:
        """The correlation ids of the replies, in the order they left."""
        position, answered = 0, []
        while position < len(self.sent):
            size, correlation_id = struct.unpack_from(">ii", self.sent, position)
            answered.append(correlation_id)
            position += 4 + size
        return answered


def request(correlation_id: int, *, client_id_bytes: int = 3) -> bytes:
    client_id = b"c" * client_id_bytes
    header = struct.pack(">hhih", ApiKey.API_VERSIONS, 0, correlation_id, len(client_id))
    return framed(header + client_id)


def produce_without_topics(correlation_id: int) -> bytes:
    """A request that is answered at once, without a turn of the loop."""
    header = struct.pack(">hhih", ApiKey.PRODUCE, 3, correlation_id, -1)
    return framed(header + struct.pack(">hhii", -1, 1, 1_000, 0))


def framed(frame: bytes) -> bytes:
    return struct.pack(">i", len(frame)) + frame


def connected(lobby: Lobby | None = None) -> tuple[KafkaProtocol, Transport]:
    protocol, transport = KafkaProtocol(lobby or Lobby()), Transport()
    protocol.connection_made(transport)
    return protocol, transport


def feed(protocol: KafkaProtocol, received: bytes, *, step: int = 64 * KiB) -> None:
    """Bytes as the loop hands them over: into the protocol's own buffer."""
    position = 0
    while position < len(received):
        buffer = protocol.get_buffer(-1)
        taken = min(len(buffer), step, len(received) - position)
        buffer[:taken] = received[position : position + taken]
        position += taken
        protocol.buffer_updated(taken)


async def wait_until(is_done: Callable[[], bool]) -> None:
    """Let the loop turn until it is so."""
    async with asyncio.timeout(5):
        while not is_done():
            await asyncio.sleep(0)


@pytest.mark.parametrize("step", [1, 2, 3, 5, 19, 64, 1_000])
def test_frames_are_found_however_the_bytes_are_cut(step: int) -> None:
    async def scenario() -> list[int]:
        protocol, transport = connected()
        feed(protocol, b"".join(request(number) for number in range(5)), step=step)
        await wait_until(lambda: len(transport.answered()) == 5)
        return transport.answered()

    assert asyncio.run(scenario()) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("size", [300 * KiB, 2 * MiB + 1])
def test_a_frame_larger_than_the_scratch_is_read_into_memory_of_its_own(size: int) -> None:
    async def scenario() -> list[int]:
        protocol, transport = connected()
        large = struct.pack(">hhih", ApiKey.API_VERSIONS, 0, 1, 0) + bytes(size)
        feed(protocol, request(0) + framed(large) + request(2), step=100 * KiB)
        await wait_until(lambda: len(transport.answered()) == 3)
        return transport.answered()

    assert asyncio.run(scenario()) == [0, 1, 2]


def test_two_connections_share_the_scratch_and_keep_their_bytes_apart() -> None:
    async def scenario() -> tuple[list[int], list[int]]:
        (first, first_out), (second, second_out) = connected(), connected()
        for first_byte, second_byte in zip(request(1), request(2), strict=True):
            feed(first, bytes([first_byte]))
            feed(second, bytes([second_byte]))
        await wait_until(lambda: bool(first_out.sent and second_out.sent))
        return first_out.answered(), second_out.answered()

    assert asyncio.run(scenario()) == ([1], [2])


def test_a_client_with_enough_requests_under_way_is_not_read_from_until_they_are_answered() -> None:
    async def scenario() -> None:
        protocol, transport = connected()
        many = 10 * CONFIG.unanswered_requests_max
        feed(protocol, b"".join(request(number) for number in range(many)))
        assert not transport.is_read_from
        assert transport.answered() == []

        await wait_until(lambda: len(transport.answered()) == many)

        assert transport.answered() == list(range(many))
        assert transport.is_read_from

    asyncio.run(scenario())


def test_a_client_that_does_not_take_its_replies_gets_no_more_of_them() -> None:
    async def scenario() -> None:
        protocol, transport = connected()
        protocol.pause_writing()
        assert not transport.is_read_from
        # What the loop had read already still comes in.
        feed(protocol, request(1) + request(2))
        for _ in range(10):
            await asyncio.sleep(0)
        assert transport.answered() == []

        protocol.resume_writing()
        await wait_until(lambda: len(transport.answered()) == 2)

        assert transport.is_read_from

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "received",
    [
        struct.pack(">i", -1),
        struct.pack(">i", 0),
        struct.pack(">i", CONFIG.limits.request_bytes + 1),
        b"GET / HTTP/1.1\r\n\r\n",
        framed(b"short"),
        framed(struct.pack(">hhih", 999, 0, 1, -1)),
        framed(struct.pack(">hhih", ApiKey.METADATA, 99, 1, -1)),
        framed(struct.pack(">hhih", ApiKey.METADATA, 1, 1, 500) + b"too short a client id"),
    ],
)
def test_what_cannot_be_understood_closes_the_connection_with_one_log_line(
    received: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> Transport:
        protocol, transport = connected()
        feed(protocol, received + request(1) + request(2))
        return transport

    transport = asyncio.run(scenario())

    assert transport.is_closed
    assert transport.answered() == []
    assert [record.message for record in caplog.records] == ["kafka_frame_refused"]


def test_a_request_that_ends_too_early_closes_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> Transport:
        protocol, transport = connected()
        feed(protocol, framed(struct.pack(">hhih", ApiKey.CREATE_TOPICS, 2, 1, -1) + b"\x00\x00"))
        await wait_until(lambda: transport.is_closed)
        return transport

    transport = asyncio.run(scenario())

    assert transport.answered() == []
    assert [record.message for record in caplog.records] == ["kafka_request_refused"]


def test_nobody_is_let_in_when_the_house_is_full() -> None:
    async def scenario() -> Transport:
        protocol, transport = connected(Lobby(is_full=True))
        protocol.connection_lost(None)
        return transport

    assert asyncio.run(scenario()).is_closed


def test_a_connection_that_is_lost_leaves_the_lobby() -> None:
    async def scenario() -> Lobby:
        lobby = Lobby()
        protocol, _ = connected(lobby)
        feed(protocol, request(1))
        protocol.connection_lost(ConnectionResetError())
        await asyncio.sleep(0)
        return lobby

    assert len(asyncio.run(scenario()).left) == 1


def test_a_stopping_client_is_closed_once_its_replies_are_sent() -> None:
    async def scenario() -> Transport:
        protocol, transport = connected()
        feed(protocol, request(1) + request(2))
        protocol.stop()
        assert not transport.is_closed
        await wait_until(lambda: transport.is_closed)
        return transport

    # The first was begun and is answered; the second was not, and a client asks elsewhere again.
    assert asyncio.run(scenario()).answered() == [1]


def test_replies_to_what_came_before_garbage_still_leave() -> None:
    async def scenario() -> Transport:
        protocol, transport = connected()
        feed(protocol, produce_without_topics(1) + produce_without_topics(2) + struct.pack(">i", -1))
        return transport

    transport = asyncio.run(scenario())

    assert transport.is_closed
    assert transport.answered() == [1, 2]
    assert transport.write_count == 1


def test_a_refused_request_is_logged_with_what_its_client_calls_it(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        protocol, _ = connected()
        feed(protocol, framed(struct.pack(">hhih", 9_999, 0, 42, 3) + b"app"))

    asyncio.run(scenario())

    [record] = [record for record in caplog.records if record.msg == "kafka_frame_refused"]
    fields = vars(record)
    assert {name: fields[name] for name in ("peer", "api", "version", "client_id", "correlation_id")} == {
        "peer": "peer:1",
        "api": 9_999,
        "version": 0,
        "client_id": "app",
        "correlation_id": 42,
    }


def test_replies_that_wait_for_a_turn_go_with_a_client_that_hangs_up_meanwhile() -> None:
    async def hang_up() -> list[dict[str, object]]:
        told: list[dict[str, object]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
        client, transport = connected()
        client.gather()
        client.send([b"reply"])
        transport.close()
        client.connection_lost(None)
        await asyncio.sleep(0)
        assert transport.write_count == 0
        return told

    assert asyncio.run(hang_up()) == []
