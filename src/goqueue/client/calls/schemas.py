"""The schema registry: register, look up, and see whether a schema may follow."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from goqueue.client.call import Call, Reply, body_of, json_of, path
from goqueue.wire.schemas import Fit as Fit
from goqueue.wire.schemas import Registered as Registered
from goqueue.wire.schemas import Schema as Schema
from goqueue.wire.schemas import SchemaReference

SchemaType = Literal["JSON", "AVRO", "PROTOBUF"]


class _Level(msgspec.Struct):
    compatibility: str


def subjects() -> Call[list[str]]:
    """The names of all subjects."""
    return Call(method="GET", path="/schemas/subjects", decode=json_of(list[str]))


def versions(subject: str) -> Call[list[int]]:
    """The numbers of a subject's versions."""
    return Call(
        method="GET", path=path("schemas", "subjects", subject, "versions"), decode=json_of(list[int])
    )


def get(subject: str, version: int | Literal["latest"] = "latest") -> Call[Schema]:
    """One version of a subject."""
    return Call(
        method="GET",
        path=path("schemas", "subjects", subject, "versions", version),
        decode=json_of(Schema),
    )


def by_id(schema_id: int) -> Call[Schema]:
    """A schema by its id."""
    return Call(method="GET", path=path("schemas", "ids", schema_id), decode=json_of(Schema))


def register(
    subject: str,
    schema: str,
    *,
    schema_type: SchemaType | None = None,
    references: Sequence[SchemaReference] = (),
) -> Call[Registered]:
    """Register a schema as the next version of a subject, unless it is registered there already."""
    return Call(
        method="POST",
        path=path("schemas", "subjects", subject, "versions"),
        decode=json_of(Registered),
        body=_body(schema, schema_type, references),
    )


def check(
    subject: str,
    schema: str,
    *,
    schema_type: SchemaType | None = None,
    references: Sequence[SchemaReference] = (),
    version: int | Literal["latest"] | None = None,
) -> Call[Fit]:
    """Whether a schema could follow what a subject has, as its level asks; or one version alone."""
    places: tuple[str | int, ...] = () if version is None else (version,)
    return Call(
        method="POST",
        path=path("schemas", "compatibility", "subjects", subject, "versions", *places),
        decode=json_of(Fit),
        query={"verbose": "true"},
        body=_body(schema, schema_type, references),
    )


def delete(
    subject: str, version: int | Literal["latest"] | None = None, *, permanent: bool = False
) -> Call[list[int]]:
    """Delete a version, or all; for good only what is deleted already."""
    places: tuple[str | int, ...] = () if version is None else ("versions", version)
    decode_all, decode_one = json_of(list[int]), json_of(int)

    def decode(reply: Reply) -> list[int]:
        return decode_all(reply) if version is None else [decode_one(reply)]

    return Call(
        method="DELETE",
        path=path("schemas", "subjects", subject, *places),
        decode=decode,
        query={"permanent": "true"} if permanent else {},
        is_repeatable=False,
    )


def compatibility(subject: str | None = None) -> Call[str]:
    """The level of a subject, or of all."""
    return Call(
        method="GET",
        path=_config(subject),
        decode=lambda reply: _decode_level(reply).compatibility,
        query={} if subject is None else {"defaultToGlobal": "true"},
    )


def set_compatibility(level: str, *, subject: str | None = None) -> Call[str]:
    """Set the level of a subject, or of all: BACKWARD, FULL_TRANSITIVE, NONE …"""
    return Call(
        method="PUT",
        path=_config(subject),
        decode=lambda reply: _decode_level(reply).compatibility,
        body=body_of(compatibility=level),
    )


_decode_level = json_of(_Level)


def _config(subject: str | None) -> str:
    return path("schemas", "config") if subject is None else path("schemas", "config", subject)


def _body(schema: str, schema_type: str | None, references: Sequence[SchemaReference]) -> bytes:
    return body_of(schema=schema, schemaType=schema_type, references=list(references) or None)
