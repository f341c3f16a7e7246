"""What of the schema registry must survive a restart."""

from dataclasses import dataclass

from goqueue.model.schemas import SchemaKind, SchemaReference, SchemaText


@dataclass(frozen=True, slots=True)
class SchemaRegistered:
    subject: str
    version: int
    schema_id: int
    kind: str
    text: str
    references: tuple[SchemaReference, ...]
    digest: str = ""
    """What tells the schema from others whatever its spelling; empty: written before it was kept."""

    @property
    def schema(self) -> SchemaText:
        return SchemaText(SchemaKind(self.kind), self.text, self.references)


@dataclass(frozen=True, slots=True)
class VersionDeleted:
    """Out of sight, but its id can still be read."""

    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class VersionRemoved:
    """Gone for good."""

    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class CompatibilityChanged:
    """level None: back to the one for all subjects, or to the broker's own when it is that one."""

    subject: str
    level: str | None


@dataclass(frozen=True, slots=True)
class ModeChanged:
    subject: str
    mode: str | None


@dataclass(frozen=True, slots=True)
class ValidationChanged:
    """is_enabled None: back to what counts for all subjects, or to on when it is that."""

    subject: str
    is_enabled: bool | None


@dataclass(frozen=True, slots=True)
class IdsUsedUp:
    """Ids before this one were given elsewhere, to schemas that are not here: they are not given again."""

    next_id: int


@dataclass(frozen=True, slots=True)
class StateReset:
    """Begin again from nothing: what follows is the whole state, written to keep the journal short."""

    next_id: int
    """Ids are never given twice, also when the schema they stood for is gone."""


Event = (
    SchemaRegistered
    | VersionDeleted
    | VersionRemoved
    | CompatibilityChanged
    | ModeChanged
    | ValidationChanged
    | IdsUsedUp
    | StateReset
)
EVENT_TYPES: dict[str, type[Event]] = {
    kind.__name__: kind
    for kind in (
        SchemaRegistered,
        VersionDeleted,
        VersionRemoved,
        CompatibilityChanged,
        ModeChanged,
        ValidationChanged,
        IdsUsedUp,
        StateReset,
    )
}
