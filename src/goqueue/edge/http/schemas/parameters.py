"""What requests to the schema registry may say in their path and query, as Confluent's clients write it."""

from typing import Annotated, TypeVar
from uuid import UUID

from litestar.params import PathParameter, QueryParameter

from goqueue.model.errors import Invalid, InvalidSchemaVersion
from goqueue.model.numbers import whole_number
from goqueue.model.schemas import Latest

T = TypeVar("T")
_INT31_MAX = 2**31 - 1

SubjectInPath = Annotated[str, PathParameter(description="The subject's name, such as orders-value.")]
VersionInPath = Annotated[
    str,
    PathParameter(
        description="A number from 1 on, or latest.", schema_extra={"pattern": "^([1-9][0-9]{0,8}|latest)$"}
    ),
]
IdInPath = Annotated[int, PathParameter(ge=1, le=_INT31_MAX, description="The schema's id.")]
GuidInPath = Annotated[UUID, PathParameter(description="The schema's guid, made of what it says.")]
_FLAG_WORDS = {"enum": ["true", "false", "True", "False"]}
Flag = Annotated[str | None, QueryParameter(schema_extra=_FLAG_WORDS)]
WithDefault = Annotated[
    str | None,
    QueryParameter(
        name="defaultToGlobal",
        schema_extra=_FLAG_WORDS,
        description="Answer with the one for all if need be.",
    ),
]
DeletedOnly = Annotated[
    str | None,
    QueryParameter(name="deletedOnly", schema_extra=_FLAG_WORDS, description="Only what is deleted."),
]
DeletedAlone = Annotated[
    str | None,
    QueryParameter(
        name="deleted_only", schema_extra=_FLAG_WORDS, description="The same, as some clients write it."
    ),
]
PageStart = Annotated[
    int, QueryParameter(name="offset", ge=0, le=_INT31_MAX, description="How many of the list to leave out.")
]
PageLength = Annotated[
    int,
    QueryParameter(name="limit", ge=-1, le=_INT31_MAX, description="How many to list at the most; -1: all."),
]
FormWanted = Annotated[
    str | None,
    QueryParameter(name="format", description="serialized: a Protobuf schema as its descriptor in base64."),
]


def is_set(flag: str | None) -> bool:
    if flag is None or flag in ("false", "False"):
        return False
    if flag in ("true", "True"):
        return True
    raise Invalid(f"{flag!r} is neither true nor false")


def page(items: list[T], start: int, length: int) -> list[T]:
    """A part of a list, as its reader asks for it."""
    return items[start:] if length < 0 else items[start : start + length]


def version_of(text: str) -> int | Latest:
    if text in ("latest", "-1"):
        return "latest"
    version = whole_number(text)
    if version is None or not 1 <= version <= _INT31_MAX:
        raise InvalidSchemaVersion(text)
    return version
