"""How much work a JSON Schema may make of data, told from the schema alone.

A validator looks at one place of the data as often as alternatives, conjunctions and references lead there.
That number can double with each definition of a schema, so it is counted before any data is checked: along
the paths of the graph that the parts of a schema form. Parts that refer to themselves count as they are if
one path leads round; where two do, the work may double with each level of the data, and nobody can tell
where it ends.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from goqueue.core.schemas.json_documents import Document, Json, is_object
from goqueue.core.schemas.json_keywords import is_list, mapping_of

UNITS_MAX = 10_000_000
"""More is as good as endless."""
_VISIT = 10
"""One look of one part at one place; other costs are measured by it."""
_IN_PLACE_LISTS = ("allOf", "anyOf", "oneOf")
_IN_PLACE = ("not", "if", "then", "else")
_IN_PLACE_MAPS = ("dependentSchemas", "dependencies")
_UNEVALUATED = ("unevaluatedProperties", "unevaluatedItems")
_DYNAMIC = ("$dynamicRef", "$recursiveRef")
_RISKY_PATTERN = re.compile(r"\(\?[=!<P]|\\[1-9k]")
"""Patterns that look around or back are tried one way after the other."""
_REPEATED = re.compile(r"\{(\d*)(?:,(\d*))?\}")
_REPEATED_MAX = 1_000
_RISKY_FORMATS = frozenset({"regex"})


class _Endless(Exception):
    """The schema may make any amount of work."""


@dataclass(slots=True)
class _Part:
    """One part of a schema: what it costs itself, and which others it leads to."""

    units: int = _VISIT
    in_place: list[int] = field(default_factory=list)
    """Parts that look at the same place."""
    of_object: list[list[int]] = field(default_factory=list)
    """Parts that look at what an object holds; of those in one list only one looks at the same value."""
    of_array: list[list[int]] = field(default_factory=list)

    def targets(self) -> Iterator[int]:
        yield from self.in_place
        for groups in (self.of_object, self.of_array):
            for group in groups:
                yield from group


def units_of(document: Document) -> int | None:
    """The work at one place of the data at the most; None: it may be endless."""
    try:
        parts = _Reading(document).read()
        units = _total(parts)
    except (_Endless, RecursionError):
        return None
    return units if units <= UNITS_MAX else None


class _Reading:
    def __init__(self, document: Document) -> None:
        self._document = document
        self._numbers: dict[int, int] = {}
        self._schemas: list[Json] = []

    def read(self) -> list[_Part]:
        """All parts that can be reached, the whole first."""
        self._number(self._document.root)
        parts: list[_Part] = []
        while len(parts) < len(self._schemas):
            parts.append(self._part(self._schemas[len(parts)]))
        return parts

    def _number(self, schema: Json) -> int:
        if is_object(schema) and any(word in schema for word in _DYNAMIC):
            raise _Endless
        schema = self._document.resolve(schema)
        number = self._numbers.get(id(schema))
        if number is None:
            number = self._numbers[id(schema)] = len(self._schemas)
            self._schemas.append(schema)
        return number

    def _all(self, schemas: Iterable[Json]) -> list[int]:
        return [self._number(schema) for schema in schemas if isinstance(schema, dict | bool)]

    def _part(self, schema: Json) -> _Part:
        part = _Part()
        if not is_object(schema):
            return part
        part.units += _own_units(schema)
        part.in_place = self._all(
            [branch for word in _IN_PLACE_LISTS if is_list(schema.get(word)) for branch in schema[word]]
            + [schema[word] for word in _IN_PLACE if word in schema]
            + [branch for word in _IN_PLACE_MAPS for branch in mapping_of(schema, word).values()]
        )
        if any(word in schema for word in _UNEVALUATED):
            part.in_place *= 2  # once more to see what they have looked at
        values = list(mapping_of(schema, "properties").values())
        values += [schema.get("additionalProperties"), schema.get("unevaluatedProperties")]
        part.of_object = [self._all(values)]
        part.of_object += [self._all([each]) for each in mapping_of(schema, "patternProperties").values()]
        part.of_object.append(self._all([schema.get("propertyNames")]))
        items = schema.get("items")
        heads = schema.get("prefixItems")
        every = [*(items if is_list(items) else [items]), *(heads if is_list(heads) else [])]
        every += [schema.get("additionalItems"), schema.get("unevaluatedItems")]
        part.of_array = [self._all(every), self._all([schema.get("contains")])]
        return part


def _own_units(schema: dict[str, Json]) -> int:
    units = len(mapping_of(schema, "properties")) + _length(schema.get("required"))
    units += sum(_length(each) for each in mapping_of(schema, "dependentRequired").values())
    units += 2 * sum(_size(schema[word]) for word in ("enum", "const") if word in schema)
    patterns = list(mapping_of(schema, "patternProperties"))
    if isinstance(schema.get("pattern"), str):
        patterns.append(schema["pattern"])
    if schema.get("format") in _RISKY_FORMATS:
        raise _Endless
    units += _VISIT * sum(word in schema for word in ("format", "uniqueItems", "contentMediaType"))
    return units + sum(map(_pattern_units, patterns))


def _pattern_units(pattern: str) -> int:
    if _RISKY_PATTERN.search(pattern):
        raise _Endless
    repeated = 1
    for least, most in _REPEATED.findall(pattern):
        repeated *= max(int(most or least or 1), 1)
        if repeated > _REPEATED_MAX:
            raise _Endless
    return 4 * len(pattern) * repeated


def _length(value: Json) -> int:
    return len(value) if is_list(value) else 0


def _size(value: Json) -> int:
    """How many values there are in a value."""
    count, waiting = 0, [value]
    while waiting:
        each = waiting.pop()
        count += 1
        if isinstance(each, list):
            waiting += each
        elif isinstance(each, dict):
            waiting += each.values()
    return count


@dataclass(slots=True)
class _Work:
    """What a part and all below it may cost at one place."""

    here: int = 0
    below: int = 0
    height: int = 0

    @property
    def units(self) -> int:
        return max(self.here, self.below)


def _total(parts: list[_Part]) -> int:
    works = [_Work()] * len(parts)
    # Knots come in an order in which what a part leads to is known before it.
    for knot in _knots(parts):
        if len(knot) == 1 and knot[0] not in parts[knot[0]].targets():
            works[knot[0]] = _simple(parts[knot[0]], works)
        else:
            work = _tangled(knot, parts, works)
            for number in knot:
                works[number] = work
        if works[knot[0]].units > UNITS_MAX:
            raise _Endless
    return works[0].units


def _simple(part: _Part, works: list[_Work]) -> _Work:
    beside = [works[number] for number in part.in_place]
    here = part.units + sum(work.here for work in beside)
    below = max(
        sum(max((works[number].units for number in group), default=0) for group in groups)
        for groups in (part.of_object, part.of_array)
    )
    height = 1 + max((works[number].height for number in part.targets()), default=0)
    return _Work(here, below + sum(work.below for work in beside), height)


def _tangled(knot: list[int], parts: list[_Part], works: list[_Work]) -> _Work:
    """Parts that lead to each other: what leaves the knot on some level of the data may meet below."""
    inside = set(knot)
    total = height = 0
    for number in knot:
        part = parts[number]
        ways = sum(target in inside for target in part.in_place) + max(
            sum(not inside.isdisjoint(group) for group in groups)
            for groups in (part.of_object, part.of_array)
        )
        if ways > 1:
            raise _Endless
        outside = [works[target] for target in part.targets() if target not in inside]
        total += part.units + sum(work.units for work in outside)
        height = max([height, *(work.height for work in outside)])
    units = total * (1 + height)
    return _Work(units, units, height + 1)


def _knots(parts: list[_Part]) -> Iterator[list[int]]:
    """Parts that lead to each other, together; each knot behind those it leads to (Tarjan's way)."""
    order: dict[int, int] = {}
    lowest: dict[int, int] = {}
    open_parts: list[int] = []
    is_open: set[int] = set()
    walk: list[tuple[int, Iterator[int]]] = []

    def enter(number: int) -> None:
        order[number] = lowest[number] = len(order)
        open_parts.append(number)
        is_open.add(number)
        walk.append((number, parts[number].targets()))

    enter(0)
    while walk:
        number, targets = walk[-1]
        for target in targets:
            if target not in order:
                enter(target)
                break
            if target in is_open:
                lowest[number] = min(lowest[number], order[target])
        else:
            walk.pop()
            if walk:
                lowest[walk[-1][0]] = min(lowest[walk[-1][0]], lowest[number])
            if lowest[number] == order[number]:
                knot = [open_parts.pop()]
                while knot[-1] != number:
                    knot.append(open_parts.pop())
                is_open.difference_update(knot)
                yield knot
