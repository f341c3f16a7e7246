"""What the keywords of a JSON Schema say, read as one would in a comparison of two."""

from collections.abc import Hashable, Mapping, Sequence
from functools import lru_cache
from typing import TypeGuard

import jsonschema_rs

from goqueue.core.schemas.json_documents import Json, is_object

_ALL_TYPES = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})


def allows_all(schema: Json) -> bool:
    if schema is True:
        return True
    if not is_object(schema):
        return False
    keywords = schema.keys() - {
        "$schema",
        "$id",
        "id",
        "title",
        "description",
        "default",
        "examples",
        "$comment",
    }
    return not keywords - {"definitions", "$defs"}


def is_list(value: Json) -> TypeGuard[list[Json]]:
    return isinstance(value, list)


def types_of(schema: Mapping[str, Json]) -> frozenset[str]:
    kind = schema.get("type")
    if isinstance(kind, str):
        return frozenset({kind})
    if is_list(kind):
        return frozenset(str(name) for name in kind)
    values = values_of(schema)
    return _ALL_TYPES if values is None else frozenset(_type_of(value) for value in values)


def _type_of(value: Json) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
    return "object"


def values_of(schema: Mapping[str, Json]) -> list[Json] | None:
    """The only values that are allowed, where a schema lists them."""
    if "const" in schema:
        return [schema["const"]]
    values = schema.get("enum")
    return values if is_list(values) else None


def key_of(value: Json) -> Hashable:
    """Two values are equal in JSON exactly when these are: there, unlike in Python, true is not 1."""
    match value:
        case bool():
            return bool, value
        case list():
            return list, *map(key_of, value)
        case dict():
            return dict, frozenset((name, key_of(inner)) for name, inner in value.items())
    return value  # type: ignore[no-any-return]  # a text, a number or nothing


def mapping_of(schema: Mapping[str, Json], keyword: str) -> Mapping[str, Json]:
    value = schema.get(keyword)
    return value if is_object(value) else {}


def properties_of(schema: Mapping[str, Json]) -> Mapping[str, Json]:
    return mapping_of(schema, "properties")


def required_names(schema: Mapping[str, Json]) -> list[str]:
    required = schema.get("required")
    return [str(name) for name in required] if is_list(required) else []


def rest_for(name: str, schema: Mapping[str, Json]) -> Json:
    """What a schema says of a property that it does not name."""
    for pattern, allowed in mapping_of(schema, "patternProperties").items():
        if matches(pattern, name):
            return allowed
    rest = schema.get("additionalProperties", True)
    return True if allows_all(rest) else rest


def has_default(schema: Json) -> bool:
    return is_object(schema) and "default" in schema


def items_of(schema: Mapping[str, Json]) -> tuple[Sequence[Json], Json]:
    """What the first items must be, one by one, and what all others must be."""
    items = schema.get("items", True)
    if is_list(items):
        return items, schema.get("additionalItems", True)
    heads = schema.get("prefixItems")
    return (heads if is_list(heads) else []), items


@lru_cache(maxsize=256)
def matches(pattern: str, name: str) -> bool:
    """Whether a name is one of those that a pattern means.

    By the library that checks data: Python's own patterns are another language, and one of them can be
    written so that it never ends.
    """
    return jsonschema_rs.validator_for({"type": "string", "pattern": pattern}).is_valid(name)
