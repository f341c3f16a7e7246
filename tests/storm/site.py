"""Where a storm takes place: one broker or several, and how clients reach any of them over HTTP.

An answer that does not come says nothing: what was asked for may have been done. Clients hear `Away` then,
and their models keep it as a doubt. An answer that says no is `Refused`, with its code.
"""

import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import httpx

from tests.integration.running_broker import RunningBroker
from tests.storm.record import Kind, Record

_ANSWER_S = 15.0
_BACK_WITHIN_S = 90.0
_READ_LIMIT = 1_000


class Away(Exception):
    """Nobody knows whether it was done: no answer came, or one that says so."""


class Refused(Exception):
    """The broker said no."""

    def __init__(self, status: int, code: str, text: str) -> None:
        super().__init__(f"{status} {code}: {text}")
        self.status = status
        self.code = code


class Site:
    """Brokers in a storm, and what everybody around them knows."""

    acks_kept: Sequence[str] = ("all", "leader")
    """Who is answered with one of these acks has been promised that it is kept."""
    keeps_leases = True
    """Whether a message that is out stays so for the time it was given out for."""

    weather_codes: Sequence[int] = (503,)
    """What is answered while something is broken on purpose: it may be asked for again."""
    has_dead_letters = True
    """Whether what is rejected is moved to the topic of dead letters."""

    def __init__(
        self,
        kafka: str,
        http: Sequence[str],
        record: Record,
        *,
        topic_settings: Mapping[str, str | int] | None = None,
    ) -> None:
        """`http`: each is as good as the others."""
        self.kafka = kafka
        self.http = http
        self.topic_settings = topic_settings or {}
        """What all topics made here have, whatever their makers want."""
        self.record = record
        self.is_up = threading.Event()
        """Set while the broker is there, as far as the weather knows."""
        self.is_over = threading.Event()
        """Set when the weather has calmed down, and clients are to come to an end."""

    @classmethod
    def of(
        cls, broker: RunningBroker, record: Record, *, topic_settings: Mapping[str, str | int] | None = None
    ) -> "Site":
        """Of one broker."""
        return cls(broker.kafka, [broker.http], record, topic_settings=topic_settings)

    def wait_until_back(self) -> None:
        """Return when the broker is ready, or the patience of its users is at its end."""
        is_back = self.is_up.wait(_BACK_WITHIN_S)
        facts = f"not ready within {_BACK_WITHIN_S} s"
        self.record.check(Kind.UNEXPLAINED, is_back, "broker", facts)


class Door:
    """One client over HTTP, with connections of its own; it asks any broker, each time another."""

    def __init__(self, site: Site, feature: str) -> None:
        self._site = site
        self._feature = feature
        self._clients = [httpx.Client(base_url=url, timeout=_ANSWER_S) for url in site.http]
        self._chance = Random(feature)

    def close(self) -> None:
        for client in self._clients:
            client.close()

    def post(self, path: str, body: Any = None, **query: str | int) -> Any:
        return self.ask("POST", path, json=body if body is not None else {}, params=query)

    def get(self, path: str, **query: str | int) -> Any:
        return self.ask("GET", path, params=query)

    def ask(self, method: str, path: str, **more: Any) -> Any:
        reply = _answer(self._chance.choice(self._clients), method, path, **more)
        if reply.status_code < 300:
            return reply.json()
        told = self._told(reply)
        if reply.status_code in self._site.weather_codes:
            raise Away(f"{told.get('code')}: {told.get('error')}")
        self._site.record.check(
            Kind.UNEXPLAINED, reply.status_code < 500, self._feature, f"{method} {path}: {reply.text[:300]}"
        )
        raise Refused(reply.status_code, str(told.get("code")), str(told.get("error")))

    def create_topic(self, name: str, *, partitions: int, **settings: str | int) -> None:
        """Create a topic, with settings whose dots are written as underscores."""
        dotted = {key.replace("_", "."): value for key, value in settings.items()}
        dotted |= self._site.topic_settings
        self.post("/topics", {"name": name, "num_partitions": partitions, "settings": dotted})
        for client in self._clients:
            self._wait_until_known(client, name)

    @staticmethod
    def _wait_until_known(client: httpx.Client, topic: str) -> None:
        """Brokers hear of a topic one after the other."""
        give_up_s = time.monotonic() + _BACK_WITHIN_S
        path = f"/topics/{topic}/partitions/0/messages?limit=1"
        while _answer(client, "GET", path).status_code != 200:
            assert time.monotonic() < give_up_s, f"{client.base_url} does not know {topic}"
            time.sleep(0.05)

    def publish(self, topic: str, messages: list[dict[str, Any]], *, acks: str = "all") -> list[Any]:
        """The results, one a message."""
        try:
            reply = self.post(f"/topics/{topic}/messages", {"messages": messages, "acks": acks})
        except Refused as refused:
            if len(messages) == 1 and refused.code == "schema_mismatch":
                return [{"error": str(refused), "code": refused.code}]
            raise
        return list(reply["results"])

    def read(self, topic: str, partition: int, *, offset: int = 0, limit: int = _READ_LIMIT) -> list[Any]:
        path = f"/topics/{topic}/partitions/{partition}/messages"
        return list(self.get(path, offset=offset, limit=limit)["messages"])

    def read_all(self, topic: str, partitions: int) -> list[list[Any]]:
        """Every message of a topic, by partition, in log order."""
        found: list[list[Any]] = [[] for _ in range(partitions)]
        for partition, messages in enumerate(found):
            offset = 0
            while page := self.read(topic, partition, offset=offset):
                messages += page
                offset = page[-1]["offset"] + 1
        return found

    def dead_letters(self, topic: str, partitions: int) -> Counter[tuple[int, int]]:
        """How often each place of a topic is among its dead letters."""
        try:
            found = self.read_all(f"{topic}.dlq", partitions)
        except Refused:
            return Counter()  # the first of them would have made their topic
        headers = (message["headers"] for part in found for message in part)
        origin = "goqueue-dlq-original"
        return Counter((int(h[f"{origin}-partition"]), int(h[f"{origin}-offset"])) for h in headers)

    @staticmethod
    def _told(reply: httpx.Response) -> Mapping[str, Any]:
        try:
            told = reply.json()
        except ValueError:
            return {}
        return told if isinstance(told, dict) else {}


def by_places(found: list[list[Any]]) -> dict[tuple[int, int], str]:
    """The value at each partition and offset of a topic that was read whole."""
    return {(number, m["offset"]): m["value"] for number, part in enumerate(found) for m in part}


def _answer(client: httpx.Client, method: str, path: str, **more: Any) -> httpx.Response:
    try:
        return client.request(method, path, **more)
    except httpx.TransportError as error:
        raise Away(repr(error)) from error
