"""Requests for every operation of the OpenAPI document: right, nearly right and wrong.

A request is made of its document: path, parameters and body by their schemas, with words that are known to
lead somewhere. Then lies are told: other types, numbers without end, halves of surrogate pairs, wrong bytes.
"""

import json
import random
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

Json = Any
_EXTREMES = (
    0,
    -1,
    1,
    2**31 - 1,
    2**31,
    -(2**31),
    2**63 - 1,
    2**63,
    2**64,
    10**30,
    -(10**30),
    0.5,
    1e308,
    -1e-9,
)
_TEXTS = (
    "",
    "x",
    ".",
    "..",
    "a/b",
    "a\x00b",
    "\x1b[31m",
    "größe",
    "\u202e",
    "👍",
    "%2F",
    "-1",
    "null",
    "latest",
    "x" * 300,
)
_TIMES = ("0s", "1ms", "20ms", "1h", "-5s", "9" * 60, "1h1h", "2026-01-31T12:00:00Z", "0", "9" * 30)
_RAW = (
    b'"\\ud800"', b'"\\udfff\\ud800"', b'"\\u0000"', b"1e999", b"-0", b"9" * 400, b"NaN", b"[" * 20_000,
    b'{"a":' * 3_000, b"\xff\xfe", b"\x00", b"{}", b"[]", b"null", b"tru", b"", b'"' + b"x" * 200_000 + b'"',
)  # fmt: skip
_SMALL = ("partition", "count", "replica")
_HEADERS = (
    ("Content-Type", "application/json"),
    ("Content-Type", "text/plain"),
    ("Content-Type", "application/octet-stream"),
    ("Accept", "text/html;q=0.9, */*;q=bad"),
    ("Accept", "application/openmetrics-text; version=1.0.0"),
    ("Origin", "http://evil.example"),
    ("Sec-Fetch-Site", "same-origin"),
    ("Host", "evil.example"),
    ("X-Request-ID", "x" * 200),
    ("traceparent", "00-" + "a" * 32 + "-" + "b" * 16 + "-01"),
    ("traceparent", "\x80\xff"),
    ("Expect", "100-continue"),
    ("Connection", "Upgrade, HTTP2-Settings"),
    ("Upgrade", "h2c"),
    ("Upgrade", "websocket"),
    ("Connection", "close"),
    ("Accept-Encoding", "gzip, br"),
    ("Cookie", "a=" + "b" * 3_000),
    ("X-Forwarded-For", "1.2.3.4"),
    ("Content-Length", "7"),
    ("Transfer-Encoding", "identity"),
)


@dataclass
class Stock:
    """Words that mean something to the broker, by what parameters and fields are called."""

    words: dict[str, list[Json]] = field(
        default_factory=lambda: {
            "topic": ["fuzz-0", "fuzz-1", "fuzz-2"],
            "name": ["fuzz-0", "fuzz-1", "fuzz-2"],
            "group": ["g", "a/b", "h"],
            "sink": ["s"],
            "subject": ["fuzz-0-value", "t"],
            "tenant": ["acme", "__system"],
            "schema": ['"int"', '{"type":"object"}', '{"type":"record","name":"r","fields":[]}', "{"],
            "client_id": ["c"],
            "transactional_id": ["t1"],
            "cron": ["0 3 * * *", "99 * * * *"],
            "partition": [0, 1],
            "offset": [0, 1, 5],
            "version": ["1", "latest"],
        }
    )

    def learn(self, name: str, value: Json) -> None:
        known = self.words.setdefault(name, [])
        if value not in known:
            known.append(value)
            del known[6:-3]


class Maker:
    """Makes the parts of one request. `lies` is how often something wrong stands where something should."""

    def __init__(self, chance: random.Random, stock: Stock, document: Json, lies: float) -> None:
        self._chance = chance
        self._stock = stock
        self._document = document
        self._lies = lies

    def target(self, path: str, operation: Json) -> str:
        query = []
        for parameter in operation.get("parameters", ()):
            name, schema = parameter["name"], parameter["schema"]
            if parameter["in"] == "path":
                value = self._text(self._value(schema, name, 0))
                path = path.replace(f"{{{name}}}", quote(value, safe="", errors="replace"))
            elif parameter["in"] == "query" and (parameter.get("required") or self._chance.random() < 0.3):
                query.append(f"{name}={quote(self._text(self._value(schema, name, 0)), errors='replace')}")
        if self._is_lying():
            query.append(self._chance.choice(("=", "&&", "%zz=%", "limit=1&limit=2", "a" * 5_000)))
        return path + ("?" + "&".join(query) if query else "")

    def body(self, operation: Json) -> bytes | None:
        content = operation.get("requestBody", {}).get("content", {})
        if not content:
            return self._chance.choice(_RAW) if self._is_lying() else None
        if "application/json" not in content:
            return self._chance.randbytes(self._chance.choice((0, 1, 34, 500)))
        value = self._value(content["application/json"]["schema"], "", 0)
        text = json.dumps(value, ensure_ascii=self._chance.random() < 0.5).encode("utf-8", "surrogatepass")
        return self._damaged(text) if self._is_lying() else text

    def headers(self) -> list[tuple[str, str]]:
        count = self._chance.choice((0, 0, 0, 1, 1, 3)) if self._lies else 0
        return [self._chance.choice(_HEADERS) for _ in range(count)]

    def _is_lying(self) -> bool:
        return self._chance.random() < self._lies

    def _damaged(self, text: bytes) -> bytes:
        at = self._chance.randrange(len(text) + 1)
        kind = self._chance.randrange(4)
        if kind == 0:
            return text[:at]
        if kind == 1:
            return text[:at] + self._chance.randbytes(2) + text[at + 2 :]
        if kind == 2:
            return self._chance.choice(_RAW)
        return text[:at] + self._chance.choice(_RAW) + text[at:]

    def _value(self, schema: Json, name: str, depth: int) -> Json:
        if self._is_lying():
            return self._lie(name)
        while "$ref" in schema:
            schema = self._document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        if choices := schema.get("anyOf") or schema.get("oneOf"):
            return self._value(self._chance.choice(choices), name, depth)
        if "enum" in schema:
            return self._chance.choice(schema["enum"])
        word = self._word(name)
        kind = schema.get("type", "object")
        if isinstance(kind, list):
            kind = self._chance.choice(kind)
        if kind == "object":
            return self._object(schema, depth)
        if kind == "array":
            count = 0 if depth > 6 else self._chance.choice((0, 1, 1, 2, 5))
            return [self._value(schema.get("items", {}), name, depth + 1) for _ in range(count)]
        if kind in ("integer", "number"):
            return word if isinstance(word, int) else self._chance.choice((0, 1, 2, 3, 10))
        if kind == "boolean":
            return self._chance.random() < 0.5
        if kind == "null":
            return None
        if "pattern" in schema and word is None:
            return self._chance.choice(_TIMES)
        return self._text(word) if word is not None else self._chance.choice(("x", "10ms", "a b"))

    def _object(self, schema: Json, depth: int) -> Json:
        required = set(schema.get("required", ()))
        made = {
            name: self._value(one, name, depth + 1)
            for name, one in schema.get("properties", {}).items()
            if name in required or (depth < 6 and self._chance.random() < 0.5)
        }
        further = schema.get("additionalProperties")
        if isinstance(further, dict):
            made |= {self._text(self._word("topic")): self._value(further, "", depth + 1)}
        return made

    def _word(self, name: str) -> Json:
        """Something that was seen under the name of a field or parameter."""
        stem = name.lower().removesuffix("s").removesuffix("_id").removesuffix("_name")
        words = self._stock.words.get(name) or self._stock.words.get(stem)
        return self._chance.choice(words) if words else None

    def _lie(self, name: str) -> Json:
        kind = self._chance.randrange(5)
        if kind == 0:
            # Thousands of partitions may rightly be made, and take their time.
            is_small = any(word in name for word in _SMALL)
            return self._chance.choice(_EXTREMES[:3] if is_small else _EXTREMES)
        if kind == 1:
            return self._chance.choice(_TEXTS)
        if kind == 2:
            return self._chance.choice(_TIMES)
        if kind == 3:
            return self._chance.choice((None, True, [], {}, [[]], {"a": {"a": None}}, "\ud800", "x" * 20_000))
        return [self._chance.choice(_TEXTS)] * self._chance.choice((1, 100))

    def _text(self, value: Json) -> str:
        return value if isinstance(value, str) else json.dumps(value)
