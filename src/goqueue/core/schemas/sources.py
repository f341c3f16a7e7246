"""A schema as it travels to where it is understood: its text, and the texts of all it is built on.

What stands in the list is each schema once, before those that refer to it; the last is the one that is meant.
"""

from collections.abc import Sequence

from msgspec import Struct

from goqueue.model.schemas import SchemaKind

SOURCES_MAX = 200
"""Schemas that one may be built on, directly or through others."""
SOURCE_CHARACTERS_MAX = 4 * 1024 * 1024
"""Of all their texts together."""


class SourceText(Struct, frozen=True, array_like=True):
    kind: str
    text: str
    references: tuple[tuple[str, int], ...] = ()
    """What others are called inside, and where in the list they stand."""


SourceTexts = Sequence[SourceText]


class Understood(Struct, frozen=True, array_like=True):
    """What was found out about a schema; or the problem why it cannot be used."""

    kind: SchemaKind | None = None
    digest: str = ""
    """The same for two schemas of a kind exactly when they differ in spelling only."""
    problem: str = ""


class Pair(Struct, frozen=True, array_like=True):
    """A schema, an older one, and in which directions data must be read."""

    new: list[SourceText]
    old: list[SourceText]
    reads_older: bool
    is_read_by_older: bool


class Compared(Struct, frozen=True, array_like=True):
    """Why data written with one schema cannot be read with the other, in both directions."""

    reading_older: list[str]
    read_by_older: list[str]


class Check(Struct, frozen=True, array_like=True):
    """Data that is to be checked by what was prepared for it (`Prepared`)."""

    kind: SchemaKind
    form: bytes
    indexes: tuple[int, ...]
    payloads: list[bytes]
