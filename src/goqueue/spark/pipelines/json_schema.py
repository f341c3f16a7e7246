"""A JSON Schema file as the columns of `from_json`. What Spark has no type for is refused, with its path."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from goqueue.model.errors import Invalid

CORRUPT = "_corrupt"
"""Where Spark puts the text of a value that does not fit. No property may have that name."""
_SCALARS = {"string": "STRING", "integer": "BIGINT", "number": "DOUBLE", "boolean": "BOOLEAN"}
_FORMATS = {"date-time": "TIMESTAMP", "date": "DATE"}
_DEPTH_MAX = 20
"""Deeper than any sane message; a schema that refers to itself would go on for ever."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonColumns:
    """How JSON values become columns."""

    ddl: str
    """The fields, as Spark writes them: `id` BIGINT, `total` DOUBLE."""
    required: tuple[tuple[str, ...], ...]
    """Paths of the fields that must be there."""
    file_name: str


def read_json_schema(path: Path) -> JsonColumns:
    """The columns that a JSON Schema file describes; Invalid names everything Spark has no type for."""
    try:
        schema = msgspec.json.decode(path.read_bytes())
    except OSError as error:
        raise Invalid(f"{path} cannot be read: {error.strerror}") from error
    except msgspec.DecodeError as error:
        raise Invalid(f"{path} is not JSON: {error}") from error
    return json_columns(schema, file_name=path.name)


def json_columns(schema: object, *, file_name: str) -> JsonColumns:
    """The columns that a JSON Schema describes."""
    reading = _Reading(schema)
    ddl = reading.fields(schema, "#", depth=0)
    if reading.problems:
        raise Invalid("; ".join(reading.problems))
    reading.note_required(schema, ())
    return JsonColumns(ddl=ddl, required=tuple(reading.required), file_name=file_name)


class _Reading:
    """One walk through a schema, with what was found on the way."""

    def __init__(self, root: object) -> None:
        self._root = root
        self.problems: list[str] = []
        self.required: list[tuple[str, ...]] = []

    def fields(self, schema: object, path: str, *, depth: int) -> str:
        """The fields of an object."""
        properties = schema.get("properties") if isinstance(schema, Mapping) else None
        if not isinstance(properties, Mapping) or not properties:
            self._refuse(path, "an object must say its properties")
            return ""
        if CORRUPT in properties:
            self._refuse(f"{path}/properties/{CORRUPT}", "this name is taken")
        separator = " " if depth == 0 else ": "
        return ", ".join(
            f"{_quoted(name)}{separator}{self._type(each, f'{path}/properties/{name}', depth=depth + 1)}"
            for name, each in properties.items()
        )

    def note_required(self, schema: object, path: tuple[str, ...]) -> None:
        """Note the fields that must be there; one that may be null is never told from one that is missing."""
        schema, _ = self._resolved(schema, "#")
        properties = schema.get("properties")
        if not isinstance(properties, Mapping) or len(path) > _DEPTH_MAX:
            return
        named = schema.get("required")
        required = named if isinstance(named, list) else []
        for name, each in properties.items():
            resolved, may_be_null = self._resolved(each, "#")
            if name in required and not may_be_null:
                self.required.append((*path, name))
            if resolved.get("type") == "object":
                self.note_required(resolved, (*path, name))

    def _type(self, schema: object, path: str, *, depth: int) -> str:
        if depth > _DEPTH_MAX:
            self._refuse(path, f"nested more than {_DEPTH_MAX} deep, or refers to itself")
            return "STRING"
        resolved, _ = self._resolved(schema, path)
        kind = resolved.get("type")
        if isinstance(kind, list) and len(kind) == 1:
            kind = kind[0]
        match kind:
            case "object" if isinstance(resolved.get("properties"), Mapping):
                return f"STRUCT<{self.fields(resolved, path, depth=depth)}>"
            case "object" if isinstance(resolved.get("additionalProperties"), Mapping):
                inner = resolved["additionalProperties"]
                return f"MAP<STRING, {self._type(inner, f'{path}/additionalProperties', depth=depth + 1)}>"
            case "object":
                self._refuse(path, "an object must say its properties, or what its additionalProperties are")
            case "array" if isinstance(resolved.get("items"), Mapping):
                return f"ARRAY<{self._type(resolved['items'], f'{path}/items', depth=depth + 1)}>"
            case "array":
                self._refuse(path, "an array must say what its items are")
            case "string":
                return _FORMATS.get(str(resolved.get("format")), "STRING")
            case str() if kind in _SCALARS:
                return _SCALARS[kind]
            case None if _is_of_texts(resolved):
                return "STRING"
            case None:
                self._refuse(path, "no type is given")
            case _:
                self._refuse(path, f"Spark has no one type for {kind!r}")
        return "STRING"

    def _resolved(self, schema: object, path: str) -> tuple[Mapping[str, object], bool]:
        """A schema with its references followed and null taken out, and whether null is allowed."""
        may_be_null = False
        for _ in range(_DEPTH_MAX):
            if not isinstance(schema, Mapping):
                break
            kind, choices = schema.get("type"), schema.get("anyOf", schema.get("oneOf"))
            if "$ref" in schema:
                schema = self._referred(str(schema["$ref"]), path)
            elif isinstance(kind, list) and "null" in kind:
                may_be_null = True
                schema = {**schema, "type": [each for each in kind if each != "null"]}
            elif isinstance(choices, list):
                others = [each for each in choices if each != {"type": "null"}]
                may_be_null = may_be_null or len(others) < len(choices)
                if len(others) != 1:
                    self._refuse(path, "Spark has no type for a choice of several")
                    return {"type": "string"}, may_be_null
                schema = others[0]
            else:
                return schema, may_be_null
        self._refuse(path, "this is not a schema that says its type")
        return {"type": "string"}, may_be_null

    def _referred(self, reference: str, path: str) -> object:
        found: object = self._root
        if not reference.startswith("#"):
            self._refuse(
                path, f"{reference} lies in another file; only references like #/$defs/… are followed"
            )
            return {"type": "string"}
        for part in reference.removeprefix("#").split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            found = found.get(name) if isinstance(found, Mapping) else None
        if found is None:
            self._refuse(path, f"there is no {reference}")
            return {"type": "string"}
        return found

    def _refuse(self, path: str, text: str) -> None:
        problem = f"{path}: {text}"
        if problem not in self.problems:
            self.problems.append(problem)


def _is_of_texts(schema: Mapping[str, object]) -> bool:
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    return isinstance(values, list) and bool(values) and all(isinstance(each, str) for each in values)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
