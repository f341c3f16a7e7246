"""Schemas in words: what may be registered, and how much a new version may differ from older ones."""

from dataclasses import dataclass
from enum import Enum, StrEnum
from hashlib import md5
from typing import Literal, NamedTuple
from uuid import UUID

SCHEMA_ID_HEADER = "schema-id"
"""Names a value's schema by its id, in digits, where the value itself does not."""
GUID_HEADERS = {"value": "__value_schema_id", "key": "__key_schema_id"}
"""The same by its guid, as some serialisers write it, for the value and for the key."""
QUARANTINE_SUFFIX = ".quarantine"
SCHEMA_PARTS_MAX = 20_000
"""Types, fields and values of a schema, whatever it is written in."""


Latest = Literal["latest"]
"""The newest version of a subject, where a number could stand."""


class SchemaKind(Enum):
    """The languages that schemas are written in, by the names of the registry's API."""

    JSON = "JSON"
    AVRO = "AVRO"
    PROTOBUF = "PROTOBUF"


class SchemaReference(NamedTuple):
    """Another schema that one is built on: the name it is called by inside, and where it is kept."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class SchemaText:
    kind: SchemaKind
    text: str
    references: tuple[SchemaReference, ...] = ()

    @property
    def guid(self) -> UUID:
        """A name made of what the schema says: the same in every registry that has it."""
        parts = (self.kind.value, self.text, *(str(part) for each in self.references for part in each))
        return UUID(
            bytes=md5("\0".join(parts).encode(errors="surrogatepass"), usedforsecurity=False).digest()
        )


class SchemaVersion(NamedTuple):
    """A schema under its place: version 1, 2, … of a subject, and an id of its own for all subjects."""

    subject: str
    version: int
    schema_id: int
    schema: SchemaText
    is_deleted: bool = False


class Compatibility(Enum):
    """Who must be able to read whose data: the new version that of older ones, or the other way round."""

    NONE = "NONE"
    BACKWARD = "BACKWARD"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD = "FORWARD"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL = "FULL"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"

    @property
    def is_transitive(self) -> bool:
        """Whether all older versions count, not only the last."""
        return self.value.endswith("_TRANSITIVE")

    @property
    def reads_older(self) -> bool:
        return self.value.startswith(("BACKWARD", "FULL"))

    @property
    def is_read_by_older(self) -> bool:
        return self.value.startswith(("FORWARD", "FULL"))


class RegistryMode(Enum):
    """What may be done with a subject, by the names of the registry's API."""

    READWRITE = "READWRITE"
    READONLY = "READONLY"
    READONLY_OVERRIDE = "READONLY_OVERRIDE"
    IMPORT = "IMPORT"

    @property
    def may_register(self) -> bool:
        return self in (RegistryMode.READWRITE, RegistryMode.IMPORT)


class Break(NamedTuple):
    """A place where data written with one schema cannot be read with another, and the rule that says so."""

    path: str
    rule: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}: {self.text} ({self.rule})"


class TooSlow(str):
    """What is wrong with a message is that nobody could tell in time whether it fits."""

    __slots__ = ()


class SchemaValidation(StrEnum):
    """What a topic asks of its messages: nothing, the id of a schema that counts there, or data to fit it."""

    NONE = "none"
    ID = "id"
    FULL = "full"


class SubjectStrategy(StrEnum):
    """Which subject a message's schema must stand in: by topic, by the record's name, or by both."""

    TOPIC_NAME = "topic-name"
    RECORD_NAME = "record-name"
    TOPIC_RECORD_NAME = "topic-record-name"


class OnInvalid(StrEnum):
    """What becomes of messages that are not as the topic asks."""

    REFUSE = "refuse"
    QUARANTINE = "quarantine"
