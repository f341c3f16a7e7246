"""A JSON Schema as a document: its text checked once, its references followed."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, TypeGuard
from urllib.parse import unquote, urljoin

import jsonschema_rs
import msgspec

from goqueue.model.errors import InvalidSchema
from goqueue.model.schemas import SCHEMA_PARTS_MAX, SchemaKind

Json = Any
"""What JSON can hold: null, booleans, numbers, text, lists and objects. Schemas have no narrower type."""
_REFERENCES_MAX = 100
_DRAFT_7 = "http://json-schema.org/draft-07/schema#"
_DRAFTS_WITH_BARE_REFERENCES = ("draft-04", "draft-06", "draft-07")
"""Drafts in which a reference is all that counts where it stands. Later ones heed what is beside it too."""
_REFERENCE_WORDS = ("$ref", "$dynamicRef", "$recursiveRef")
_ANCHOR_WORDS = ("$anchor", "$dynamicAnchor")
_DATA_WORDS = frozenset({"enum", "const", "default", "examples"})
"""What stands under these is no schema, whatever it looks like."""
_REMARKS = frozenset({"$schema", "$id", "id", "title", "description", "$comment", "default", "examples",
                      "$defs", "definitions", *_ANCHOR_WORDS})  # fmt: skip


def is_object(value: Json) -> TypeGuard[dict[str, Json]]:
    return isinstance(value, dict)


class Document:
    """A schema and those it refers to, by the names it calls them."""

    kind = SchemaKind.JSON

    def __init__(self, root: Json, others: Mapping[str, "Document"] | None = None) -> None:
        self.root = root
        self._others = dict(others or {})
        self._taken_apart: dict[int, Json] = {}

    def resolve(self, schema: Json) -> Json:
        """What a schema stands for, when all it says is where to look."""
        for _ in range(_REFERENCES_MAX):
            word = reference_word(schema)
            if word is None:
                return schema
            owner = self._owners.get(id(schema), self)
            if owner is not self:
                return owner.resolve(schema)  # a reference counts from where it stands
            if schema.keys() - {word} - _REMARKS and self._heeds_more_than_references:
                return self._in_parts(schema, word)
            schema = self._find(schema[word])
        return False  # a circle of references allows nothing

    def _in_parts(self, schema: dict[str, Json], word: str) -> Json:
        """A reference and what stands beside it, as two demands."""
        made = self._taken_apart.get(id(schema))
        if made is None:
            rest = {name: value for name, value in schema.items() if name != word}
            # The schema is kept with it: by its place in memory it is known again.
            made = {"allOf": [self._find(schema[word]), rest], "$comment": schema}
            self._taken_apart[id(schema)] = made
        return made

    @cached_property
    def _owners(self) -> dict[int, "Document"]:
        """Which parts belong to other documents, by their place in memory."""
        return {id(part): other for other in self._all_others.values() for part in _parts(other.root)}

    @cached_property
    def _heeds_more_than_references(self) -> bool:
        draft = self.root.get("$schema", _DRAFT_7) if is_object(self.root) else _DRAFT_7
        return not any(name in draft for name in _DRAFTS_WITH_BARE_REFERENCES)

    def canonical(self) -> str:
        """A text that is the same for two schemas exactly when they differ in spelling only."""
        return msgspec.json.encode(self.root, order="deterministic").decode()

    @property
    def record_name(self) -> str | None:
        """What data of this schema is called."""
        title = self.root.get("title") if is_object(self.root) else None
        return title if isinstance(title, str) else None

    @cached_property
    def validator(self) -> jsonschema_rs.Validator:
        """What tells whether data fits."""
        return validator_of(self.root, self.others())

    def others(self) -> dict[str, Json]:
        """The roots of all that it refers to, by the names they go by."""
        return {name: other.root for name, other in self._all_others.items()}

    @cached_property
    def _all_others(self) -> dict[str, "Document"]:
        """Found once for each document: one may be referred to in very many ways."""
        found = dict(self._others)
        for other in self._others.values():
            found.update(other._all_others)
        return found

    def _find(self, reference: str) -> Json:
        name, _, fragment = reference.partition("#")
        other = self._others.get(name)
        if other is not None:
            return other.resolve(other.at(fragment, reference))
        return self.at(fragment, reference, within=name)

    def at(self, fragment: str, reference: str, *, within: str = "") -> Json:
        """The part that a JSON pointer or an anchor names, in the document or `within` a part with a name."""
        found = self._named.get(urljoin(self._base, within)) if within else self.root
        if found is None:
            raise InvalidSchema(f"$ref {reference!r} is not among the references of the schema")
        pointer = unquote(fragment)
        if pointer and not pointer.startswith("/"):
            if pointer not in self._anchors:
                raise InvalidSchema(f"$ref {reference!r} leads nowhere")
            return self._anchors[pointer]
        for step in pointer.split("/")[1:]:
            key = step.replace("~1", "/").replace("~0", "~")
            if is_object(found) and key in found:
                found = found[key]
            elif isinstance(found, list) and key.isdigit() and int(key) < len(found):
                found = found[int(key)]
            else:
                raise InvalidSchema(f"$ref {reference!r} leads nowhere")
        return found

    @cached_property
    def _base(self) -> str:
        return _own_name(self.root) or ""

    @cached_property
    def _named(self) -> dict[str, Json]:
        """The parts that have a name of their own, the whole among them."""
        return {urljoin(self._base, name): part for part in _parts(self.root) if (name := _own_name(part))}

    @cached_property
    def _anchors(self) -> dict[str, Json]:
        found: dict[str, Json] = {}
        for part in _parts(self.root):
            for word in _ANCHOR_WORDS:
                if isinstance(part.get(word), str):
                    found.setdefault(part[word], part)
            for word in ("$id", "id"):
                name = part.get(word)
                if isinstance(name, str) and name.startswith("#"):
                    found.setdefault(name[1:], part)
        return found


def validator_of(root: Json, others: Mapping[str, Json]) -> jsonschema_rs.Validator:
    """What tells whether data fits a schema; `others` are those that it may refer to."""
    named = [(name, _with_draft(other)) for name, other in others.items()]
    registry = jsonschema_rs.Registry(named) if named else None
    return jsonschema_rs.validator_for(_with_draft(root), registry=registry, offline=True)


def parse_json_schema(text: str, others: Mapping[str, Document] | None = None) -> Document:
    """A schema that can be used: valid JSON, valid under its own draft (7 when it names none)."""
    try:
        root: Json = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidSchema(f"the schema is not JSON: {error}") from error
    if not isinstance(root, (dict, bool)):
        raise InvalidSchema("a JSON schema is an object or a boolean")
    if sum(1 for _ in _parts(root)) > SCHEMA_PARTS_MAX:
        raise InvalidSchema(f"a schema has at most {SCHEMA_PARTS_MAX} parts")
    document = Document(root, others)
    _check_references(document)
    try:
        # Made now: a schema that cannot be used must not be found out only when data comes. Nothing else
        # checks the text as well without asking the network for what it names.
        _ = document.validator
    except jsonschema_rs.ValidationError as error:
        place = pointer(error.instance_path)
        raise InvalidSchema(f"the schema is not valid at {place}: {error.message}") from error
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        raise InvalidSchema(f"the schema is not valid: {error}") from error
    return document


def reference_word(schema: Json) -> str | None:
    """The keyword by which a schema refers to another; None when it does not."""
    if not is_object(schema):
        return None
    return next((word for word in _REFERENCE_WORDS if isinstance(schema.get(word), str)), None)


def _with_draft(root: Json) -> Json:
    """The schema under the draft it names, or under the usual one."""
    return {"$schema": _DRAFT_7, **root} if is_object(root) else root


def pointer(path: Iterable[str | int]) -> str:
    return "#/" + "/".join(str(step) for step in path)


def _parts(root: Json) -> Iterator[dict[str, Json]]:
    """All objects of a document that can be schemas."""
    waiting = [root]
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            waiting += part
        elif is_object(part):
            yield part
            waiting += (value for word, value in part.items() if word not in _DATA_WORDS)


def _own_name(part: Json) -> str | None:
    if not is_object(part):
        return None
    name = part.get("$id", part.get("id"))
    return name.removesuffix("#") if isinstance(name, str) and not name.startswith("#") else None


def _check_references(document: Document) -> None:
    """Every reference must lead somewhere that the rules between schemas can follow."""
    for part in _parts(document.root):
        word = reference_word(part)
        if word is not None:
            document.resolve({word: part[word]})
