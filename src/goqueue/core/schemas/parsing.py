"""Schemas of all kinds, understood: parsed with what they refer to, compared, told apart.

The libraries behind a kind are imported when the first schema of it appears: a broker without schemas
would carry some 20 MB of them for nothing.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar, cast

from goqueue.model.errors import InvalidSchema
from goqueue.model.schemas import Break, SchemaKind, SchemaText

if TYPE_CHECKING:
    from goqueue.core.schemas.avro_rules import AvroSchema
    from goqueue.core.schemas.json_documents import Document
    from goqueue.core.schemas.protobuf_files import ProtobufFile

    Parsed = Document | AvroSchema | ProtobufFile

P = TypeVar("P")


def parse(schema: SchemaText, others: "Mapping[str, Parsed]") -> "Parsed":
    """What a text means; `others` are the schemas it refers to, by the names it calls them."""
    try:
        return _parse(schema, others)
    except RecursionError as error:
        raise InvalidSchema("the schema is nested too deeply") from error


def _parse(schema: SchemaText, others: "Mapping[str, Parsed]") -> "Parsed":
    match schema.kind:
        case SchemaKind.JSON:
            from goqueue.core.schemas.json_documents import Document, parse_json_schema

            return parse_json_schema(schema.text, _all_of(Document, others))
        case SchemaKind.AVRO:
            from goqueue.core.schemas.avro_rules import AvroSchema, parse_avro

            return parse_avro(schema.text, _all_of(AvroSchema, others))
        case SchemaKind.PROTOBUF:
            from goqueue.core.schemas.protobuf_files import ProtobufFile, parse_protobuf

            return parse_protobuf(schema.text, _all_of(ProtobufFile, others))


def breaks(reader: "Parsed", writer: "Parsed") -> list[Break]:
    """Why data written with one schema cannot be read with the other."""
    if reader.kind is not writer.kind:
        text = f"was {writer.kind.value}, is {reader.kind.value} now"
        return [Break("#", "schema_type_changed", text)]
    try:
        return _breaks(reader, writer)
    except RecursionError:
        text = "the two are nested too deeply, or part of themselves, so nobody can tell"
        return [Break("#", "schema_too_complex", text)]


def _breaks(reader: "Parsed", writer: "Parsed") -> list[Break]:
    match reader.kind:
        case SchemaKind.JSON:
            from goqueue.core.schemas.json_rules import json_breaks

            return json_breaks(cast("Document", reader), cast("Document", writer))
        case SchemaKind.AVRO:
            from goqueue.core.schemas.avro_rules import avro_breaks

            return avro_breaks(cast("AvroSchema", reader), cast("AvroSchema", writer))
        case SchemaKind.PROTOBUF:
            from goqueue.core.schemas.protobuf_rules import protobuf_breaks

            files = cast("ProtobufFile", reader), cast("ProtobufFile", writer)
            return protobuf_breaks(files[0].descriptor, files[1].descriptor)


def kind_by_looks(text: str) -> SchemaKind:
    """Of a text that comes without one: Avro if it is valid Avro, JSON Schema otherwise."""
    from goqueue.core.schemas.avro_rules import parse_avro

    try:
        parse_avro(text)
    except InvalidSchema:
        return SchemaKind.JSON
    return SchemaKind.AVRO


def _all_of(kind: type[P], others: Mapping[str, object]) -> dict[str, P]:
    for name, other in others.items():
        if not isinstance(other, kind):
            raise InvalidSchema(f"{name} is of another kind than the schema that refers to it")
    return cast("dict[str, P]", dict(others))
