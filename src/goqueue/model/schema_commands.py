"""What is asked of the schema registry: one node writes it, and every node can read it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from goqueue.model.places import Place, Seat
from goqueue.model.schemas import (
    Compatibility,
    Latest,
    RegistryMode,
    SchemaKind,
    SchemaReference,
    SchemaText,
    SchemaVersion,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TellSchema:
    """A schema as it was given; one that comes without its kind is of the one that it looks like."""

    text: str
    kind: SchemaKind | None
    references: tuple[SchemaReference, ...]

    @property
    def place(self) -> Place:
        return Seat.ANY_NODE


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterSchema:
    """Give a schema a place in a subject, unless it has one."""

    subject: str
    schema: SchemaText
    schema_id: int | None = None
    version: int | None = None
    """Both as they were elsewhere, where a registry is copied; None: the next."""

    @property
    def place(self) -> Place:
        return Seat.SCHEMA_REGISTRY


@dataclass(frozen=True, slots=True, kw_only=True)
class FindSchema:
    """The version of a subject that says the same."""

    subject: str
    schema: SchemaText
    with_deleted: bool = False

    @property
    def place(self) -> Place:
        return Seat.ANY_NODE


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareSchema:
    """Why can a schema not follow what a subject has, or one version?"""

    subject: str
    schema: SchemaText
    against: int | Latest | None = None

    @property
    def place(self) -> Place:
        return Seat.ANY_NODE


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeProtobuf:
    """A Protobuf schema as its descriptor."""

    schema_id: int

    @property
    def place(self) -> Place:
        return Seat.ANY_NODE


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteSchemaVersion:
    """Take a version out of sight, or for good if it is out of sight already."""

    subject: str
    version: int | Latest
    is_permanent: bool = False

    @property
    def place(self) -> Place:
        return Seat.SCHEMA_REGISTRY


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteSubject:
    """The same with all versions of a subject."""

    subject: str
    is_permanent: bool = False

    @property
    def place(self) -> Place:
        return Seat.SCHEMA_REGISTRY


@dataclass(frozen=True, slots=True, kw_only=True)
class SetCompatibility:
    """How versions of a subject must fit; None goes back to what counts for all (the empty subject)."""

    subject: str
    level: Compatibility | None

    @property
    def place(self) -> Place:
        return Seat.SCHEMA_REGISTRY


@dataclass(frozen=True, slots=True, kw_only=True)
class SetValidation:
    """Whether messages are checked against a subject's schemas; None: as for all."""

    subject: str
    is_enabled: bool | None

    @property
    def place(self) -> Place:
        return Seat.SCHEMA_REGISTRY


@dataclass(frozen=True, slots=True, kw_only=True)
class SetRegistryMode:
    """Who may change a subject; None: as for all."""

    subject: str
    mode: RegistryMode | None
    is_forced: bool = False

    @property
    def place(self) -> Place:
        return Seat.SCHEMA_REGISTRY


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreSchemas:
    """Bring back what a backup has kept of the registry; what differs is refused, or left as it is."""

    backup_id: str
    versions: Sequence[SchemaVersion] = ()
    """Those that others are built on come before these."""
    compatibility: Mapping[str, str] = field(default_factory=dict)
    modes: Mapping[str, str] = field(default_factory=dict)
    validation: Mapping[str, bool] = field(default_factory=dict)
    next_id: int = 1
    skip_existing: bool = False

    @property
    def place(self) -> Place:
        return Seat.SCHEMA_REGISTRY


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowRegistry:
    """What has become of the registry? Asked by nodes, each of which has one to read from."""

    offset: int
    """Up to where its journal is known."""
    wait_ms: int = 0

    @property
    def place(self) -> Place:
        return Seat.SCHEMA_REGISTRY


class RegistryNews(NamedTuple):
    """Events of the registry that are committed, in their order."""

    events: Sequence[bytes]
    begins_anew: bool
    """They lead from nothing to what there is, or begin to: what was known before does not count."""
    offset: int
    """Where the next ones are to be asked for."""
    end_offset: int
    """Up to where there are some now."""
