"""Attacks on the Kafka door: frames that are right, nearly right and wrong, whole, in pieces and in rows."""

import random
import socket
import struct
from contextlib import suppress
from typing import Any

from kio.index import load_response_schema
from kio.serial import entity_reader

from goqueue.edge.kafka.apis import APIS, ApiKey
from tests.doors.kafka import requests
from tests.doors.kafka.raw_client import RawClient, record_batch
from tests.fuzz.frame import Failed
from tests.fuzz.kafka_requests import MUTATIONS, Maker, Stock
from tests.integration.running_broker import RunningBroker

PATIENCE_S = 20.0
"""For an answer or the end of the connection."""
SHORT_PATIENCE_S = 0.05
"""For requests that may rightly wait for long: nobody waits for all of that."""
MAY_WAIT = {ApiKey.FETCH, ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.SHARE_FETCH, ApiKey.PRODUCE}
TOPIC = "neighbour"
_WORDS_MAX = 8
_CORRELATION_ID = slice(4, 8)
_TELLING = (ApiKey.JOIN_GROUP, ApiKey.INIT_PRODUCER_ID, ApiKey.CONSUMER_GROUP_HEARTBEAT)
_GROUPS = (ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE, ApiKey.SHARE_GROUP_HEARTBEAT)


Kind = tuple[ApiKey, int]
"""A request that is whole and so has a reply that can be read: key and version."""


class KafkaDoor:
    def __init__(self, broker: RunningBroker) -> None:
        host, port = broker.kafka.split(":")
        self._address = (host, int(port))
        self._stock = Stock()
        self._socket: socket.socket | None = None
        self._rows = [(api.key, version) for api in APIS.values()
                      for version in range(api.first_version, api.last_version + 1)]  # fmt: skip
        # Attacks on what is newest and has most state are worth more than their share.
        self._rows += [row for row in self._rows if row[0] in _GROUPS] * 10
        self._neighbour = RawClient(int(port))
        self._sent = 0
        self._learn_topics()

    def attack(self, chance: random.Random) -> str:
        if self._socket is None or chance.random() < 0.1:
            self._connect()
        frames, what, may_wait = [], [], False
        kinds: dict[bytes, Kind] = {}
        for _ in range(chance.choice((1, 1, 1, 1, 2, 5))):
            key, version = chance.choice(self._rows)
            lies = chance.choice((0.0, 0.0, 0.02, 0.1))
            frame = bytearray(Maker(chance, self._stock, lies).request(key, version))
            changes = [] if chance.random() < 0.5 else [chance.choice(MUTATIONS)]
            for change in changes:
                change(chance, frame)
            if not changes and not lies:
                kinds[bytes(frame[_CORRELATION_ID])] = (key, version)
            may_wait |= key in MAY_WAIT or bool(changes) or lies > 0
            frames.append(struct.pack(">i", len(frame)) + frame)
            what.append(f"{ApiKey(key).name} v{version} {'+'.join(c.__name__ for c in changes) or 'whole'}")
        self._send(chance, b"".join(frames), what)
        self._await(len(frames), kinds, may_wait=may_wait)
        if chance.random() < 0.02:
            self._learn_topics()
        return ", ".join(what)

    def probe(self) -> None:
        with RawClient(self._address[1]) as client:
            reply = client.ask(
                ApiKey.API_VERSIONS, 3, client_software_name="probe", client_software_version="1"
            )
            if len(reply.api_keys) != len(APIS):
                raise Failed("a probe was answered wrongly")

    def work(self) -> None:
        """Publish a few numbered messages and read them back."""
        values = [b"%d" % number for number in range(self._sent, self._sent + 3)]
        reply = self._neighbour.ask(
            ApiKey.PRODUCE, 9, **requests.produce(TOPIC, record_batch(*values), acks=-1)
        )
        [partition] = reply.responses[0].partition_responses
        if partition.error_code.name != "none" or partition.base_offset != self._sent:
            raise Failed(f"the neighbour's messages went to {partition}, not {self._sent}")
        reply = self._neighbour.ask(ApiKey.FETCH, 11, **requests.fetch(TOPIC, self._sent))
        records = bytes(reply.responses[0].partitions[0].records or b"")
        if not all(value in records for value in values):
            raise Failed("the neighbour does not get its messages back")
        self._sent += 3

    def close(self) -> None:
        self._hang_up()
        self._neighbour.socket.close()

    def _learn_topics(self) -> None:
        """Ids of topics as they are now, and the topics themselves when they are not there."""
        names = (TOPIC, *self._stock.topics)
        for version in (9, 12):
            reply = self._neighbour.ask(ApiKey.METADATA, version, **requests.metadata(*names, create=True))
        known = [topic.topic_id for topic in reply.topics if topic.topic_id is not None]
        self._stock.topic_ids = [
            one.topic_id for one in reply.topics if one.name != TOPIC and one.topic_id
        ] or known

    def _connect(self) -> None:
        self._hang_up()
        self._socket = socket.create_connection(self._address, timeout=PATIENCE_S)

    def _hang_up(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _send(self, chance: random.Random, data: bytes, what: list[str]) -> None:
        assert self._socket is not None
        kind = chance.random()
        with suppress(ConnectionError):
            if kind < 0.06:
                what.append("cut off")
                self._socket.sendall(data[: chance.randrange(len(data))])
                if chance.random() < 0.5:
                    self._socket.shutdown(socket.SHUT_WR)
                self._hang_up()
            elif kind < 0.12:
                what.append("in pieces")
                step = max(len(data) // 7, 1)
                for at in range(0, len(data), step):
                    self._socket.sendall(data[at : at + step])
            elif kind < 0.15:
                what.append("of a lying size")
                size = chance.choice((0, -1, 2**31 - 1, 1 << 26, len(data) + 9, 3))
                self._socket.sendall(struct.pack(">i", size) + data[4:])
                self._hang_up()
            else:
                self._socket.sendall(data)

    def _await(self, count: int, kinds: dict[bytes, Kind], *, may_wait: bool) -> None:
        """Each request is answered, or the connection ends."""
        if self._socket is None:
            return
        self._socket.settimeout(SHORT_PATIENCE_S if may_wait else PATIENCE_S)
        try:
            for _ in range(count):
                (size,) = struct.unpack(">i", self._exactly(4))
                reply = self._exactly(size)
                kind = kinds.get(reply[:4])
                if kind is not None and kind[0] in _TELLING:
                    self._learn(kind, reply)
        except TimeoutError:
            self._hang_up()
            if not may_wait:
                raise Failed("neither answered nor closed") from None
        except ConnectionError:
            self._hang_up()

    def _exactly(self, size: int) -> bytes:
        assert self._socket is not None
        received = bytearray()
        while len(received) < size:
            chunk = self._socket.recv(size - len(received))
            if not chunk:
                raise ConnectionError
            received += chunk
        return bytes(received)

    def _learn(self, kind: Kind, frame: bytes) -> None:
        """Ids that the broker gives out, for requests to come."""
        schema = load_response_schema(*kind)
        _, header_size = entity_reader(schema.__header_schema__)(frame, 0)
        reply: Any = entity_reader(schema)(frame, header_size)[0]
        for words, word in (
            (self._stock.members, getattr(reply, "member_id", None)),
            (self._stock.producer_ids, getattr(reply, "producer_id", None)),
        ):
            if word is not None and word not in words:
                words.append(word)
                del words[3:-_WORDS_MAX]
