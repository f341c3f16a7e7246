"""The schema registry."""

from typing import Annotated

from msgspec import Meta, Struct


class SchemaReference(Struct, frozen=True):
    """A schema that another is built on: the name it goes by there, and its place."""

    name: str
    subject: str
    version: Annotated[int, Meta(ge=1, le=2**31 - 1)]


class Registered(Struct, frozen=True):
    """Where a schema stands."""

    id: int
    version: int
    subject: str


class Schema(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A schema by its id. Subject and version are those of its first place, if it has one in sight."""

    id: int
    schema: str
    schema_type: str
    references: list[SchemaReference] = []
    subject: str | None = None
    version: int | None = None


class Fit(Struct, frozen=True, omit_defaults=True):
    """Whether a schema may follow what a subject has; `messages` name the rules it breaks."""

    is_compatible: bool
    messages: list[str] = []
