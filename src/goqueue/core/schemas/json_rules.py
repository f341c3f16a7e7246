"""JSON Schema: whether everything that one schema lets through is understood by another.

Data was written to fit the *writer's* schema and is read by somebody who trusts the *reader's*. The
reader's must allow at least as much, place by place. Where that cannot be told from the two texts,
the answer is no: a check that says yes has to be right.
"""

from collections.abc import Callable, Mapping

from goqueue.core.schemas.json_documents import Document, Json, is_object
from goqueue.core.schemas.json_keywords import (
    allows_all,
    has_default,
    is_list,
    items_of,
    key_of,
    mapping_of,
    matches,
    properties_of,
    required_names,
    rest_for,
    types_of,
    values_of,
)
from goqueue.model.schemas import Break

_UPPER_BOUNDS = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties", "maxContains")
_LOWER_BOUNDS = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties", "minContains")
_EXCLUSIONS = (("exclusiveMaximum", "maximum"), ("exclusiveMinimum", "minimum"))
"""In draft 4 the first is no bound of its own: it says whether the other itself is allowed."""
_MUST_STAY = (
    "pattern",
    "format",
    "contains",
    "propertyNames",
    "if",
    "then",
    "else",
    "unevaluatedProperties",
    "unevaluatedItems",
)
"""Keywords of which all that is judged is whether the reader's schema adds or changes them."""
_DEPENDENCIES = ("dependencies", "dependentRequired", "dependentSchemas")
_SUMS = ("oneOf", "anyOf")
_STEPS_MAX = 100_000
"""Alternatives within alternatives multiply; a comparison is made where everybody is served."""
_Pair = tuple[int, int]


def json_breaks(reader: Document, writer: Document) -> list[Break]:
    """Why data that fits the writer's schema may not fit the reader's."""
    comparison = _Comparison(reader, writer, _Notes())
    try:
        comparison.compare("#", reader.root, writer.root)
    except _TooMuch:
        text = f"the two take more than {_STEPS_MAX} comparisons, so nobody can tell"
        return [Break("#", "schema_too_complex", text)]
    return comparison.breaks


class _TooMuch(Exception):
    """The comparison would take too long."""


class _Notes:
    """What a comparison has found out and need not find out again: parts are referred to from many places."""

    def __init__(self) -> None:
        self.step_count = 0
        self.verdicts: dict[_Pair, Break | None] = {}
        """The first break of pairs that were compared; None: they fit."""
        self._made: dict[tuple[int, int | str], Json] = {}
        self._kept: list[object] = []
        """Schemas are told apart by their place in memory, so none of them may go while this is in use."""

    def step(self) -> None:
        self.step_count += 1
        if self.step_count > _STEPS_MAX:
            raise _TooMuch

    def without(self, schema: Mapping[str, Json], keyword: str) -> dict[str, Json]:
        """A schema but for one keyword: the same each time, so that it is known again."""
        key = (id(schema), keyword)
        if key not in self._made:
            self._kept.append(schema)
            self._made[key] = {name: value for name, value in schema.items() if name != keyword}
        made: dict[str, Json] = self._made[key]
        return made

    def joined(self, rest: Mapping[str, Json], branch: Json) -> Json:
        """A branch of an alternative, with what stands beside the alternative."""
        if not rest.keys() - {"$schema", "$id", "title", "description", "$defs", "definitions", "default"}:
            return branch
        key = (id(rest), id(branch))
        if key not in self._made:
            self._kept += (rest, branch)
            self._made[key] = {"allOf": [dict(rest), branch]}
        return self._made[key]


class _Comparison:
    def __init__(self, reader: Document, writer: Document, notes: _Notes) -> None:
        self.breaks: list[Break] = []
        self._reader = reader
        self._writer = writer
        self._notes = notes
        self._under_way: set[_Pair] = set()
        """Pairs that are being compared further up: a schema may refer to itself."""
        self._leaned: set[_Pair] = set()
        """Those of them that were taken to fit. What leans on one is known only when that one is."""

    def compare(self, path: str, reader: Json, writer: Json) -> None:
        self._notes.step()
        reader, writer = self._reader.resolve(reader), self._writer.resolve(writer)
        if allows_all(reader) or writer is False:
            return
        if reader is False:
            self._note(path, "schema_closed", "nothing is allowed here any more")
            return
        if not is_object(reader) or not (is_object(writer) or writer is True):
            self._note(path, "schema_invalid", "not a schema")
            return
        pair = (id(reader), id(writer))
        if pair in self._under_way:
            self._leaned.add(pair)
            return
        verdicts = self._notes.verdicts
        if pair in verdicts:
            if known := verdicts[pair]:
                self._note(path, known.rule, known.text)
            return
        count, leaned = len(self.breaks), self._leaned
        self._under_way.add(pair)
        self._leaned = set()
        self._compare_combined(path, reader, writer if is_object(writer) else {})
        self._under_way.discard(pair)
        self._leaned.discard(pair)
        if len(self.breaks) > count:
            verdicts[pair] = self.breaks[count]
        elif not self._leaned:
            verdicts[pair] = None
        self._leaned |= leaned

    def _compare_combined(self, path: str, reader: Mapping[str, Json], writer: Mapping[str, Json]) -> None:
        """Take alternatives and conjunctions apart until plain schemas meet."""
        for keyword in _SUMS:
            branches = writer.get(keyword)
            if is_list(branches):
                rest = self._notes.without(writer, keyword)
                for at, branch in enumerate(branches):
                    self.compare(f"{path}/{keyword}/{at}", reader, self._notes.joined(rest, branch))
                return
        for keyword in _SUMS:
            branches = reader.get(keyword)
            if is_list(branches):
                self.compare(path, self._notes.without(reader, keyword), writer)
                if not any(self._fits(path, branch, writer) for branch in branches):
                    self._note(
                        f"{path}/{keyword}",
                        "sum_type_narrowed",
                        "what was allowed here fits none of the alternatives",
                    )
                return
        parts = reader.get("allOf")
        if is_list(parts):
            for at, part in enumerate((self._notes.without(reader, "allOf"), *parts)):
                self._compare_part(f"{path}/allOf/{at - 1}" if at else path, part, writer)
            return
        self._compare_negation(path, reader, writer)
        self._compare_plain(path, reader, self._merged(writer))

    def _compare_part(self, path: str, reader: Json, writer: Mapping[str, Json]) -> None:
        """One of several demands of the reader: one part of what the writer promises may be enough."""
        promises = writer.get("allOf")
        if is_list(promises) and any(self._fits(path, reader, promise) for promise in promises):
            return
        self.compare(path, reader, writer)

    def _compare_negation(self, path: str, reader: Mapping[str, Json], writer: Mapping[str, Json]) -> None:
        if "not" not in reader:
            return
        refused = _Comparison(self._writer, self._reader, _Notes())
        refused._notes.step_count = self._notes.step_count
        if "not" in writer:
            refused.compare(path, writer["not"], reader["not"])
        if "not" not in writer or refused.breaks:
            self._note(f"{path}/not", "not_type_extended", "more is refused than before")
        self._notes.step_count = refused._notes.step_count

    def _compare_plain(self, path: str, reader: Mapping[str, Json], writer: Mapping[str, Json]) -> None:
        self._compare_types(path, reader, writer)
        self._compare_values(path, reader, writer)
        self._compare_bounds(path, reader, writer)
        for keyword in _MUST_STAY:
            if keyword in reader and key_of(reader[keyword]) != key_of(writer.get(keyword)):
                rule = f"{keyword}_added" if keyword not in writer else f"{keyword}_changed"
                self._note(f"{path}/{keyword}", rule, f"{keyword!r} is not what it was")
        if "object" in types_of(writer):
            self._compare_objects(path, reader, writer)
        if "array" in types_of(writer):
            self._compare_arrays(path, reader, writer)

    def _compare_types(self, path: str, reader: Mapping[str, Json], writer: Mapping[str, Json]) -> None:
        allowed = types_of(reader)
        if "number" in allowed:
            allowed |= {"integer"}
        if lost := sorted(types_of(writer) - allowed):
            self._note(f"{path}/type", "type_narrowed", f"no longer allowed: {', '.join(lost)}")

    def _compare_values(self, path: str, reader: Mapping[str, Json], writer: Mapping[str, Json]) -> None:
        allowed = values_of(reader)
        if allowed is None:
            return
        written = values_of(writer)
        if written is None:
            self._note(f"{path}/enum", "enum_added", "only some values are allowed now")
        elif lost := _missing(written, allowed):
            self._note(f"{path}/enum", "enum_array_narrowed", f"no longer allowed: {lost}")

    def _compare_bounds(self, path: str, reader: Mapping[str, Json], writer: Mapping[str, Json]) -> None:
        for keyword in _UPPER_BOUNDS:
            self._compare_bound(path, keyword, reader, writer, lambda new, old: new >= old)
        for keyword in _LOWER_BOUNDS:
            self._compare_bound(path, keyword, reader, writer, lambda new, old: new <= old)
        self._compare_bound(path, "multipleOf", reader, writer, lambda new, old: old % new == 0)
        for keyword, bound in _EXCLUSIONS:
            if (
                reader.get(keyword) is True
                and writer.get(keyword) is not True
                and reader.get(bound) == writer.get(bound)
            ):
                self._note(f"{path}/{keyword}", f"{keyword}_added", f"the {bound} itself is not allowed now")
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
        known, written = properties_of(reader), properties_of(writer)
        for name in sorted(known.keys() | written.keys()):
            place = f"{path}/properties/{name}"
            if name in known and name in written:
                self.compare(place, known[name], written[name])
            elif name in known:
                self._compare_added(place, name, known[name], writer)
            else:
                self._compare_removed(place, name, reader, written[name])
        promised = set(required_names(writer))
        for name in required_names(reader):
            if name not in promised and not has_default(self._reader.resolve(known.get(name, True))):
                self._note(
                    f"{path}/required",
                    "required_attribute_added",
                    f"property {name!r} is required now and has no default",
                )
        for keyword in _DEPENDENCIES:
            older = mapping_of(writer, keyword)
            for name, demanded in mapping_of(reader, keyword).items():
                self._compare_dependency(f"{path}/{keyword}/{name}", demanded, older.get(name, True))
        self._compare_rest(f"{path}/additionalProperties", "additional_properties", reader, writer)
        self._compare_patterns(path, reader, writer)

    def _compare_patterns(self, path: str, reader: Mapping[str, Json], writer: Mapping[str, Json]) -> None:
        """Names that patterns mean. Nobody can tell whether two patterns share some: they may."""
        patterns, older = mapping_of(reader, "patternProperties"), mapping_of(writer, "patternProperties")
        for pattern in sorted(patterns):
            place, demanded = f"{path}/patternProperties/{pattern}", patterns[pattern]
            if pattern in older:
                self.compare(place, demanded, older[pattern])
                continue
            self.compare(place, demanded, writer.get("additionalProperties", True))
            for other in sorted(older):
                self.compare(place, demanded, older[other])
            for name, written in sorted(properties_of(writer).items()):
                if matches(pattern, name):
                    self.compare(place, demanded, written)
        for pattern in sorted(older.keys() - patterns.keys()):
            place = f"{path}/patternProperties/{pattern}"
            self.compare(place, reader.get("additionalProperties", True), older[pattern])

    def _compare_dependency(self, place: str, reader: Json, writer: Json) -> None:
        """What must be there, or be so, where a property is."""
        if not is_list(reader):
            self.compare(place, reader, True if is_list(writer) else writer)
        elif added := [name for name in reader if not is_list(writer) or name not in writer]:
            self._note(place, "dependency_array_extended", f"needed now: {', '.join(map(str, added))}")

    def _compare_added(self, place: str, name: str, added: Json, writer: Mapping[str, Json]) -> None:
        """A property that the writer's schema does not name: what might stand there already?"""
        rest = rest_for(name, writer)
        if rest is False or allows_all(self._reader.resolve(added)):
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
        if any(matches(pattern, name) for pattern in mapping_of(reader, "patternProperties")):
            return  # what the patterns demand is compared with them
        rest = rest_for(name, reader)
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
        if allows_all(self._reader.resolve(new)) or old is False:
            return
        if new is False:
            self._note(place, f"{rule}_removed", "what is not named was allowed before")
        elif allows_all(self._writer.resolve(old)):
            self._note(place, f"{rule}_narrowed", "anything was allowed here before")
        else:
            self.compare(place, new, old)

    def _compare_arrays(self, path: str, reader: Mapping[str, Json], writer: Mapping[str, Json]) -> None:
        heads, rest = items_of(reader)
        old_heads, old_rest = items_of(writer)
        for at in range(max(len(heads), len(old_heads))):
            new = heads[at] if at < len(heads) else rest
            old = old_heads[at] if at < len(old_heads) else old_rest
            self.compare(f"{path}/items/{at}", new, old)
        self.compare(f"{path}/items", rest, old_rest)

    def _fits(self, path: str, reader: Json, writer: Json) -> bool:
        trial = _Comparison(self._reader, self._writer, self._notes)
        trial._under_way = set(self._under_way)
        trial.compare(path, reader, writer)
        self._leaned |= trial._leaned
        return not trial.breaks

    def _merged(self, writer: Mapping[str, Json]) -> Mapping[str, Json]:
        """A conjunction of the writer as one schema, as far as its parts do not speak of the same things."""
        parts = writer.get("allOf")
        if not is_list(parts):
            return writer
        merged = {name: value for name, value in writer.items() if name != "allOf"}
        for part in parts:
            resolved = self._writer.resolve(part)
            if not is_object(resolved):
                continue
            for name, value in self._merged(resolved).items():
                if name == "properties" and is_object(value) and is_object(merged.get(name)):
                    merged[name] = {**mapping_of(merged, name), **value}
                elif name == "required" and is_list(value):
                    merged[name] = [*required_names(merged), *value]
                else:
                    merged.setdefault(name, value)
        return merged

    def _note(self, path: str, rule: str, text: str) -> None:
        self.breaks.append(Break(path, rule, text))


def _missing(written: list[Json], allowed: list[Json]) -> list[Json]:
    known = set(map(key_of, allowed))
    return [value for value in written if key_of(value) not in known]
