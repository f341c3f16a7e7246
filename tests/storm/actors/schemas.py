"""A topic that checks its messages: what fits is stored, what does not never is; schemas keep their ids."""

import json
from random import Random
from typing import Any

from tests.storm.actor import Actor
from tests.storm.record import Kind
from tests.storm.site import Refused, Site

TOPIC = "checked"
_SUBJECT = f"{TOPIC}-value"
_SCHEMA = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}
_VERSIONS_MAX = 30


class SchemaWriter(Actor):
    feature = "schemas"
    pause_s = 0.05

    def __init__(self, site: Site, chance: Random, *, pace: float = 1.0) -> None:
        super().__init__(site, chance, pace=pace)
        self._next = 0
        self._stored: set[str] = set()
        self._refused: set[str] = set()
        self._ids: dict[int, int] = {}

    def prepare(self) -> None:
        self.door.create_topic(
            TOPIC, partitions=1, goqueue_schema_validation="full", goqueue_schema_on_invalid="refuse"
        )
        self._register(0)

    def step(self) -> None:
        if self.chance.random() < 0.05:
            self._register(self.chance.randint(0, _VERSIONS_MAX))
        else:
            self._publish()

    def verify(self) -> None:
        [found] = self.door.read_all(TOPIC, 1)
        values = {message["value"] for message in found}
        for value in self._stored:
            self.check(Kind.LOST, value in values, f"{value} was acknowledged")
        for value in values:
            is_good = isinstance(json.loads(value)["id"], int)
            self.check(Kind.RESURRECTED, is_good and value not in self._refused, f"{value} does not fit")
        for number in list(self._ids):
            self._register(number)

    def _register(self, number: int) -> None:
        """The same text has the same id, before a kill and after it."""
        schema = json.dumps(_SCHEMA | {"description": f"number {number}"})
        path = f"/schemas/subjects/{_SUBJECT}/versions"
        told = self.door.post(path, {"schema": schema, "schemaType": "JSON"})["id"]
        known = self._ids.setdefault(number, told)
        self.check(Kind.LOST, told == known, f"schema {number} had the id {known}, and has {told}")
        self.check(
            Kind.DOUBLED, len(set(self._ids.values())) == len(self._ids), f"two schemas have the id {told}"
        )

    def _send(self, values: list[str]) -> list[Any]:
        """The results; of a single message that does not fit there is a refusal instead."""
        try:
            return self.door.publish(TOPIC, [{"value": value} for value in values])
        except Refused as refused:
            return [{"error": str(refused), "code": refused.code}]

    def _publish(self) -> None:
        values = []
        for _ in range(self.chance.randint(1, 8)):
            self._next += 1
            number = self._next if self.chance.random() < 0.8 else f"not a number {self._next}"
            values.append(json.dumps({"id": number}))
        for value, result in zip(values, self._send(values), strict=True):
            is_good = isinstance(json.loads(value)["id"], int)
            if "error" not in result:
                self.check(Kind.UNEXPLAINED, is_good, f"{value} was taken")
                self._stored.add(value)
                self.record.count(self.feature)
            elif result.get("code") == "schema_mismatch":
                self.check(Kind.UNEXPLAINED, not is_good, f"{value} was refused: {result}")
                self._refused.add(value)
