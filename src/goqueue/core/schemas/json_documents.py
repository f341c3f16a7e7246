"""A JSON Schema as a document: its text checked once, its references followed."""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, TypeGuard

import jsonschema_rs
import msgspec

from goqueue.model.errors import InvalidSchema
from goqueue.model.schemas import SchemaKind

Json = Any
"""What JSON can hold: null, booleans, numbers, text, lists and objects. Schemas have no narrower type."""
_REFERENCES_MAX = 100
_DRAFT_7 = "http://json-schema.org/draft-07/schema#"


def is_object(value: Json) -> TypeGuard[dict[str, Json]]:
    return isinstance(value, dict)


class Document:
    """A schema and those it refers to, by the names it calls them."""

    kind = SchemaKind.JSON

    def __init__(self, root: Json, others: Mapping[str, "Document"] | None = None) -> None:
        self.root = root
        self._others = dict(others or {})

    def resolve(self, schema: Json) -> Json:
        """What a schema stands for, when all it says is where to look."""
        for _ in range(_REFERENCES_MAX):
            reference = schema.get("$ref") if is_object(schema) else None
            if not isinstance(reference, str):
                return schema
            schema = self._find(reference)
        return False  # a circle of references allows nothing

    def canonical(self) -> str:
        """A text that is the same for two schemas exactly when they differ in spelling only."""
        return msgspec.json.encode(self.root, order="deterministic").decode()

    @property
    def record_name(self) -> str | None:
        """What data of this schema is called."""
        title = self.root.get("title") if is_object(self.root) else None
        return title if isinstance(title, str) else None

    def misfit(self, payload: bytes) -> str | None:
        """Why a text is not as the schema says, and where; None when it fits."""
        try:
            value: Json = msgspec.json.decode(payload)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            return f"it is not JSON: {error}"
        validator = self.validator
        try:
            if validator.is_valid(value):
                return None
            first = next(iter(validator.iter_errors(value)))
        except ValueError as error:
            return f"it cannot be checked: {error}"
        return f"{_pointer(first.instance_path)}: {first.message}"

    @cached_property
    def validator(self) -> jsonschema_rs.Validator:
        """What tells whether data fits; made once, because every message asks."""
        others = [(name, _with_draft(other.root)) for name, other in self._closure().items()]
        registry = jsonschema_rs.Registry(others) if others else None
        return jsonschema_rs.validator_for(_with_draft(self.root), registry=registry, offline=True)

    def _closure(self) -> dict[str, "Document"]:
        found = dict(self._others)
        for other in self._others.values():
            found.update(other._closure())
        return found

    def _find(self, reference: str) -> Json:
        name, _, pointer = reference.partition("#")
        if name:
            other = self._others.get(name)
            if other is None:
                raise InvalidSchema(f"$ref {reference!r} is not among the references of the schema")
            return other.resolve(other.at(pointer, reference))
        return self.at(pointer, reference)

    def at(self, pointer: str, reference: str) -> Json:
        """The part of the document that a JSON pointer names."""
        found = self.root
        for step in pointer.split("/")[1:]:
            key = step.replace("~1", "/").replace("~0", "~")
            if is_object(found) and key in found:
                found = found[key]
            elif isinstance(found, list) and key.isdigit() and int(key) < len(found):
                found = found[int(key)]
            else:
                raise InvalidSchema(f"$ref {reference!r} leads nowhere")
        return found


def parse_json_schema(text: str, others: Mapping[str, Document] | None = None) -> Document:
    """A schema that can be used: valid JSON, valid under its own draft (7 when it names none)."""
    try:
        root: Json = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidSchema(f"the schema is not JSON: {error}") from error
    if not isinstance(root, (dict, bool)):
        raise InvalidSchema("a JSON schema is an object or a boolean")
    try:
        jsonschema_rs.meta.validate(_with_draft(root))
    except jsonschema_rs.ValidationError as error:
        place = _pointer(error.instance_path)
        raise InvalidSchema(f"the schema is not valid at {place}: {error.message}") from error
    except ValueError as error:
        raise InvalidSchema(f"the schema is not valid: {error}") from error
    document = Document(root, others)
    _check_references(document, root)
    return document


def _with_draft(root: Json) -> Json:
    """The schema under the draft it names, or under the usual one."""
    return {"$schema": _DRAFT_7, **root} if is_object(root) else root


def _pointer(path: Iterable[str | int]) -> str:
    return "#/" + "/".join(str(step) for step in path)


def _check_references(document: Document, schema: Json) -> None:
    """Every reference must lead somewhere, or the schema would fail only when data comes."""
    if isinstance(schema, list):
        for item in schema:
            _check_references(document, item)
    elif is_object(schema):
        if isinstance(schema.get("$ref"), str):
            document.resolve({"$ref": schema["$ref"]})
        for value in schema.values():
            _check_references(document, value)
