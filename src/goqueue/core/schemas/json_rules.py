"""JSON Schema: whether everything that one schema lets through is understood by another.

Data was written to fit the *writer's* schema and is read by somebody who trusts the *reader's*. The
reader's must allow at least as much, place by place. Where that cannot be told from the two texts,
the answer is no: a check that says yes has to be right.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeGuard

from goqueue.core.schemas.json_documents import Document, Json, is_object
from goqueue.model.schemas import Break

_ALL_TYPES = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})
_UPPER_BOUNDS = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties", "maxContains")
_LOWER_BOUNDS = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties", "minContains")
_MUST_STAY = (
    "pattern",
    "format",
    "contains",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "propertyNames",
    "if",
    "then",
    "else",
    "unevaluatedProperties",
    "unevaluatedItems",
)
"""Keywords of which all that is judged is whether the reader's schema adds or changes them."""
_SUMS = ("oneOf", "anyOf")
_STRUCTURE = frozenset({"oneOf", "anyOf", "allOf", "not", "$ref"})


def json_breaks(reader: Document, writer: Document) -> list[Break]:
    """Why data that fits the writer's schema may not fit the reader's."""
    comparison = _Comparison(reader, writer)
    comparison.compare("#", reader.root, writer.root)
    return comparison.breaks


class _Comparison:
    def __init__(self, reader: Document, writer: Document) -> None:
        self.breaks: list[Break] = []
        self._reader = reader
        self._writer = writer
        self._under_way: set[tuple[int, int]] = set()
        """Pairs that are being compared further up: a schema may refer to itself."""

    def compare(self, path: str, reader: Json, writer: Json) -> None:
        reader, writer = self._reader.resolve(reader), self._writer.resolve(writer)
        if _allows_all(reader) or writer is False:
            return
        if reader is False:
            self._note(path, "schema_closed", "nothing is allowed here any more")
            return
        if not is_object(reader) or not (is_object(writer) or writer is True):
            self._note(path, "schema_invalid", "not a schema")
            return
        pair = (id(reader), id(writer))
        if pair in self._under_way:
            return
        self._under_way.add(pair)
        try:
            self._compare_combined(path, reader, writer if is_object(writer) else {})
        finally:
            self._under_way.discard(pair)

    def _compare_combined(self, path: str, reader: Mapping[str, Json], writer: Mapping[str, Json]) -> None:
        """Take alternatives and conjunctions apart until plain schemas meet."""
        for keyword in _SUMS:
            branches = writer.get(keyword)
            if _is_list(branches):
                rest = {name: value for name, value in writer.items() if name != keyword}
                for at, branch in enumerate(branches):
                    self.compare(f"{path}/{keyword}/{at}", reader, self._joined(rest, branch))
                return
        for keyword in _SUMS:
            branches = reader.get(keyword)
            if _is_list(branches):
                rest = {name: value for name, value in reader.items() if name != keyword}
                self.compare(path, rest, writer)
                if not any(self._fits(path, branch, writer) for branch in branches):
                    self._note(
                        f"{path}/{keyword}",
                        "sum_type_narrowed",
                        "what was allowed here fits none of the alternatives",
                    )
                return
        parts = reader.get("allOf")
        if _is_list(parts):
            rest = {name: value for name, value in reader.items() if name != "allOf"}
            for at, part in enumerate((rest, *parts)):
                self._compare_part(f"{path}/allOf/{at - 1}" if at else path, part, writer)
            return
        self._compare_negation(path, reader, writer)
        self._compare_plain(path, reader, self._merged(writer))

    def _compare_part(self, path: str, reader: Json, writer: Mapping[str, Json]) -> None:
        """One of several demands of the reader: one part of what the writer promises may be enough."""
        promises = writer.get("allOf")
        if _is_list(promises) and any(self._fits(path, reader, promise) for promise in promises):
            return
        self.compare(path, reader, writer)

    def _compare_negation(self, path: str, reader: Mapping[str, Json], writer: Mapping[str, Json]) -> None:
        if "not" not in reader:
            return
        refused = _Comparison(self._writer, self._reader)
        if "not" in writer:
            refused.compare(path, writer["not"], reader["not"])
        if "not" not in writer or refused.breaks:
            self._note(f"{path}/not", "not_type_extended", "more is refused than before")

    def _compare_plain(self, path: str, reader: Mapping[str, Json], writer: Mapping[str, Json]) -> None:
        self._compare_types(path, reader, writer)
        self._compare_values(path, reader, writer)
        self._compare_bounds(path, reader, writer)
        for keyword in _MUST_STAY:
            if keyword in reader and reader[keyword] != writer.get(keyword):
                rule = f"{keyword}_added" if keyword not in writer else f"{keyword}_changed"
                self._note(f"{path}/{keyword}", rule, f"{keyword!r} is not what it was")
        if "object" in _types(writer):
            self._compare_objects(path, reader, writer)
        if "array" in _types(writer):
            self._compare_arrays(path, reader, writer)

    def _compare_types(self, path: str, reader: Mapping[str, Json], writer: Mapping[str, Json]) -> None:
        allowed = _types(reader)
        if "number" in allowed:
            allowed |= {"integer"}
        if lost := sorted(_types(writer) - allowed):
            self._note(f"{path}/type", "type_narrowed", f"no longer allowed: {', '.join(lost)}")

    def _compare_values(self, path: str, reader: Mapping[str, Json], writer: Mapping[str, Json]) -> None:
        allowed = _values(reader)
        if allowed is None:
            return
        written = _values(writer)
        if written is None:
            self._note(f"{path}/enum", "enum_added", "only some values are allowed now")
        elif lost := [value for value in written if value not in allowed]:
            self._note(f"{path}/enum", "enum_array_narrowed", f"no longer allowed: {lost}")

    def _compare_bounds(self, path: str, reader: Mapping[str, Json], writer: Mapping[str, Json]) -> None:
        for keyword in _UPPER_BOUNDS:
            self._compare_bound(path, keyword, reader, writer, lambda new, old: new >= old)
        for keyword in _LOWER_BOUNDS:
            self._compare_bound(path, keyword, reader, writer, lambda new, old: new <= old)
        self._compare_bound(path, "multipleOf", reader, writer, lambda new, old: old % new == 0)
        if reader.get("uniqueItems") is True and writer.get("uniqueItems") is not True:
            self._note(f"{path}/uniqueItems", "unique_items_added", "items must differ now")

    def _compare_bound(
        self,
        path: str,
        keyword: str,
        reader: Mapping[str, Json],
        writer: Mapping[str, Json],
        is_wider: Callable[[float, float], bool],
    ) -> None:
        new, old = reader.get(keyword), writer.get(keyword)
        if not isinstance(new, (int, float)) or isinstance(new, bool):
            return
        if not isinstance(old, (int, float)) or isinstance(old, bool):
            self._note(f"{path}/{keyword}", f"{keyword}_added", f"{keyword} is {new} now")
        elif not is_wider(new, old):
            self._note(f"{path}/{keyword}", f"{keyword}_narrowed", f"{keyword} was {old} and is {new} now")

    def _compare_objects(self, path: str, reader: Mapping[str, Json], writer: Mapping[str, Json]) -> None:
        known, written = _properties(reader), _properties(writer)
        for name in sorted(known.keys() | written.keys()):
            place = f"{path}/properties/{name}"
            if name in known and name in written:
                self.compare(place, known[name], written[name])
            elif name in known:
                self._compare_added(place, name, known[name], writer)
            else:
                self._compare_removed(place, name, reader, written[name])
        promised = set(_names(writer))
        for name in _names(reader):
            if name not in promised and not _has_default(self._reader.resolve(known.get(name, True))):
                self._note(
                    f"{path}/required",
                    "required_attribute_added",
                    f"property {name!r} is required now and has no default",
                )
        self._compare_rest(f"{path}/additionalProperties", "additional_properties", reader, writer)
        patterns, older = _mapping(reader, "patternProperties"), _mapping(writer, "patternProperties")
        for pattern in sorted(patterns):
            place = f"{path}/patternProperties/{pattern}"
            self.compare(
                place, patterns[pattern], older.get(pattern, writer.get("additionalProperties", True))
            )

    def _compare_added(self, place: str, name: str, added: Json, writer: Mapping[str, Json]) -> None:
        """A property that the writer's schema does not name: what might stand there already?"""
        rest = _rest_for(name, writer)
        if rest is False or _allows_all(self._reader.resolve(added)):
            return
        if rest is True:
            self._note(
                place,
                "property_added_to_open_content_model",
                "anything could stand under this name before: close the content model, or give no schema",
            )
        else:
            self.compare(place, added, rest)

    def _compare_removed(self, place: str, name: str, reader: Mapping[str, Json], removed: Json) -> None:
        rest = _rest_for(name, reader)
        if rest is True or self._writer.resolve(removed) is False:
            return
        if rest is False:
            self._note(
                place,
                "property_removed_from_closed_content_model",
                "data may still have it, and nothing but the named properties is allowed",
            )
        else:
            self.compare(place, rest, removed)

    def _compare_rest(
        self, place: str, rule: str, reader: Mapping[str, Json], writer: Mapping[str, Json]
    ) -> None:
        keyword = place.rsplit("/", 1)[1]
        new, old = reader.get(keyword, True), writer.get(keyword, True)
        if _allows_all(self._reader.resolve(new)) or old is False:
            return
        if new is False:
            self._note(place, f"{rule}_removed", "what is not named was allowed before")
        elif _allows_all(self._writer.resolve(old)):
            self._note(place, f"{rule}_narrowed", "anything was allowed here before")
        else:
            self.compare(place, new, old)

    def _compare_arrays(self, path: str, reader: Mapping[str, Json], writer: Mapping[str, Json]) -> None:
        heads, rest = _items(reader)
        old_heads, old_rest = _items(writer)
        for at in range(max(len(heads), len(old_heads))):
            new = heads[at] if at < len(heads) else rest
            old = old_heads[at] if at < len(old_heads) else old_rest
            self.compare(f"{path}/items/{at}", new, old)
        self.compare(f"{path}/items", rest, old_rest)

    def _fits(self, path: str, reader: Json, writer: Json) -> bool:
        trial = _Comparison(self._reader, self._writer)
        trial._under_way = set(self._under_way)
        trial.compare(path, reader, writer)
        return not trial.breaks

    def _joined(self, rest: Mapping[str, Json], branch: Json) -> Json:
        """A branch of an alternative, with what stands beside the alternative."""
        if not rest.keys() - {"$schema", "$id", "title", "description", "$defs", "definitions", "default"}:
            return branch
        return {"allOf": [dict(rest), branch]}

    def _merged(self, writer: Mapping[str, Json]) -> Mapping[str, Json]:
        """A conjunction of the writer as one schema, as far as its parts do not speak of the same things."""
        parts = writer.get("allOf")
        if not _is_list(parts):
            return writer
        merged = {name: value for name, value in writer.items() if name != "allOf"}
        for part in parts:
            resolved = self._writer.resolve(part)
            if not is_object(resolved):
                continue
            for name, value in self._merged(resolved).items():
                if name == "properties" and is_object(value) and is_object(merged.get(name)):
                    merged[name] = {**_mapping(merged, name), **value}
                elif name == "required" and _is_list(value):
                    merged[name] = [*_names(merged), *value]
                else:
                    merged.setdefault(name, value)
        return merged

    def _note(self, path: str, rule: str, text: str) -> None:
        self.breaks.append(Break(path, rule, text))


def _allows_all(schema: Json) -> bool:
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


def _is_list(value: Json) -> TypeGuard[list[Json]]:
    return isinstance(value, list)


def _types(schema: Mapping[str, Json]) -> frozenset[str]:
    kind = schema.get("type")
    if isinstance(kind, str):
        return frozenset({kind})
    if _is_list(kind):
        return frozenset(str(name) for name in kind)
    values = _values(schema)
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


def _values(schema: Mapping[str, Json]) -> list[Json] | None:
    """The only values that are allowed, where a schema lists them."""
    if "const" in schema:
        return [schema["const"]]
    values = schema.get("enum")
    return values if _is_list(values) else None


def _mapping(schema: Mapping[str, Json], keyword: str) -> Mapping[str, Json]:
    value = schema.get(keyword)
    return value if is_object(value) else {}


def _properties(schema: Mapping[str, Json]) -> Mapping[str, Json]:
    return _mapping(schema, "properties")


def _names(schema: Mapping[str, Json]) -> list[str]:
    required = schema.get("required")
    return [str(name) for name in required] if _is_list(required) else []


def _rest_for(name: str, schema: Mapping[str, Json]) -> Json:
    """What a schema says of a property that it does not name."""
    for pattern, allowed in _mapping(schema, "patternProperties").items():
        if re.search(pattern, name):
            return allowed
    rest = schema.get("additionalProperties", True)
    return True if _allows_all(rest) else rest


def _has_default(schema: Json) -> bool:
    return is_object(schema) and "default" in schema


def _items(schema: Mapping[str, Json]) -> tuple[Sequence[Json], Json]:
    """What the first items must be, one by one, and what all others must be."""
    items = schema.get("items", True)
    if _is_list(items):
        return items, schema.get("additionalItems", True)
    heads = schema.get("prefixItems")
    return (heads if _is_list(heads) else []), items
