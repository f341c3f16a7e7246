"""Avro: parsing, and the resolution rules between a reader's and a writer's schema."""

from collections.abc import Mapping

import avro.errors
import avro.schema
import fastavro
import msgspec
from avro.compatibility import ReaderWriterCompatibilityChecker, SchemaCompatibilityType

from goqueue.core.schemas.json_documents import Json
from goqueue.model.errors import InvalidSchema
from goqueue.model.schemas import SCHEMA_PARTS_MAX, Break, SchemaKind

_NESTED = frozenset({"type", "items", "values", "fields"})
"""The keys under which other types stand; names elsewhere (a default, a symbol) are only text."""


class AvroSchema:
    """A schema, and the named types of those it refers to."""

    kind = SchemaKind.AVRO

    def __init__(self, root: Json, others: Mapping[str, Json]) -> None:
        self._others = others
        named = dict(others)
        self.parsed = fastavro.parse_schema(root, named_schemas=named)
        self.library = avro.schema.parse(self.written_out())
        """The same for Avro's own library, which is strict about what a schema must have."""
        self.named: Mapping[str, Json] = named
        """All types that can be referred to from now on, by full name."""

    @property
    def record_name(self) -> str | None:
        """What data of this schema is called; types without names have none."""
        return self.parsed.get("name") if isinstance(self.parsed, dict) else None

    def canonical(self) -> str:
        """A text that is the same for two schemas exactly when they differ in spelling only."""
        return msgspec.json.encode(self.parsed, order="deterministic").decode()

    def written_out(self) -> str:
        """The schema in one piece: each type that is not its own stands in full where it is first named."""
        return msgspec.json.encode(self._write_out(self.parsed, set())).decode()

    def _write_out(self, node: Json, written: set[str]) -> Json:
        match node:
            case str() if node in self._others and node not in written:
                return self._write_out(self._others[node], written)
            case list():
                return [self._write_out(branch, written) for branch in node]
            case dict():
                written.add(str(node.get("name")))
                return {
                    key: self._write_out(value, written) if key in _NESTED else value
                    for key, value in node.items()
                    if not key.startswith("__")
                }
        return node


def parse_avro(text: str, others: Mapping[str, AvroSchema] | None = None) -> AvroSchema:
    """A schema that can be used; named types of `others` may be referred to."""
    try:
        root: Json = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        # The name of a primitive type may stand there bare.
        root = text.strip()
        if not root.isalpha():
            raise InvalidSchema(f"the schema is not JSON: {error}") from error
    if _size(root) > SCHEMA_PARTS_MAX:
        raise InvalidSchema(f"an Avro schema has at most {SCHEMA_PARTS_MAX} types and fields")
    named: dict[str, Json] = {}
    for other in (others or {}).values():
        named.update(other.named)
    try:
        return AvroSchema(root, named)
    except (
        avro.errors.AvroException,
        fastavro.schema.SchemaParseException,
        fastavro.schema.UnknownType,
        RecursionError,
    ) as error:
        raise InvalidSchema(f"the Avro schema is not valid: {error}") from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidSchema(f"the Avro schema is not valid: {type(error).__name__} {error}") from error


def _size(root: Json) -> int:
    """How many types and fields a schema has."""
    count, waiting = 0, [root]
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            waiting += part
            count += len(part)
        elif isinstance(part, dict):
            waiting += (part[key] for key in _NESTED & part.keys())
            count += 1
    return count


def avro_breaks(reader: AvroSchema, writer: AvroSchema) -> list[Break]:
    """Why data written with the writer's schema cannot be resolved with the reader's."""
    checker = ReaderWriterCompatibilityChecker()  # type: ignore[no-untyped-call]
    result = checker.get_compatibility(reader.library, writer.library)
    if result.compatibility is SchemaCompatibilityType.compatible:
        return []
    path = ", ".join(sorted(result.locations))
    text = "; ".join(sorted(result.messages))
    return [Break(path, kind.value, text) for kind in result.incompatibilities]
