"""The registry machine: subjects, their versions, ids that never change, and what may follow what.

It knows schemas by their texts and digests and understands none of them: that may take any time, and is done
elsewhere (`jobs.py`). What was found out there is handed in, and decided upon here.

A schema has one id however many subjects have it, and a subject numbers its versions from 1 on. What is
deleted the reversible way can still be read by its id, so that old data stays readable; only what is deleted
for good is gone, and its number is not given again while the subject has another.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from goqueue.core.schemas.events import (
    CompatibilityChanged,
    Event,
    IdsUsedUp,
    ModeChanged,
    SchemaRegistered,
    StateReset,
    ValidationChanged,
    VersionDeleted,
    VersionRemoved,
)
from goqueue.core.schemas.settings import GLOBAL, RegistrySettings
from goqueue.core.schemas.sources import SOURCE_CHARACTERS_MAX, SOURCES_MAX, Compared, SourceText
from goqueue.model.errors import (
    IncompatibleSchema,
    InvalidSchema,
    InvalidSchemaVersion,
    NotSoftDeleted,
    RegistryReadOnly,
    SchemaNotFound,
    SchemaReferenced,
    SchemaVersionNotFound,
    SchemaVersionSoftDeleted,
    SubjectNotFound,
    SubjectSoftDeleted,
    VersionNotSoftDeleted,
)
from goqueue.model.names import checked_subject
from goqueue.model.schemas import Latest, RegistryMode, SchemaKind, SchemaReference, SchemaText, SchemaVersion

_Key = tuple[SchemaKind, str, tuple[SchemaReference, ...]]


class Comparison(NamedTuple):
    """An older schema that a new one is to be held against, and in which directions data must be read."""

    version: int
    schema_id: int
    reads_older: bool
    is_read_by_older: bool

    def problems(self, compared: Compared) -> list[str]:
        older = [f"data of version {self.version} cannot be read: {each}" for each in compared.reading_older]
        return older + [
            f"readers of version {self.version} cannot read its data: {each}"
            for each in compared.read_by_older
        ]


@dataclass(slots=True)
class _Subject:
    ids: dict[int, int] = field(default_factory=dict)
    """The schema of each version."""
    deleted: set[int] = field(default_factory=set)

    def live(self, *, with_deleted: bool = False) -> list[int]:
        # In their order also where an import has given them in another.
        return sorted(self.ids if with_deleted else self.ids.keys() - self.deleted)


class Registry:
    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self._subjects: dict[str, _Subject] = {}
        self._schemas: dict[int, SchemaText] = {}
        self._digests: dict[int, str] = {}
        """What tells schemas apart; of old journals, which have none, it is found out when needed."""
        self._id_of: dict[_Key, int] = {}
        self._id_of_guid: dict[UUID, int] = {}
        self._standing: dict[int, int] = {}
        """In how many places each schema stands, deleted ones included."""
        self.settings = RegistrySettings()
        self._next_id = 1

    def subjects(self, *, prefix: str = "", with_deleted: bool = False) -> list[str]:
        return sorted(
            name
            for name, subject in self._subjects.items()
            if name.startswith(prefix) and subject.live(with_deleted=with_deleted)
        )

    def versions(self, name: str, *, with_deleted: bool = False) -> list[int]:
        return self._subject(name, with_deleted=with_deleted).live(with_deleted=with_deleted)

    def version(self, name: str, wanted: int | Latest, *, with_deleted: bool = False) -> SchemaVersion:
        subject = self._subject(name, with_deleted=with_deleted)
        live = subject.live(with_deleted=with_deleted)
        if wanted == "latest":
            return self._place(name, live[-1])
        if wanted < 1:
            raise InvalidSchemaVersion(wanted)
        if wanted not in live:
            raise SchemaVersionNotFound(name, wanted)
        return self._place(name, wanted)

    @property
    def next_id(self) -> int:
        """The id that the next new schema gets."""
        return self._next_id

    @property
    def schema_count(self) -> int:
        return len(self._schemas)

    def schema(self, schema_id: int) -> SchemaText:
        """By its id, also when it was deleted the reversible way."""
        schema = self._schemas.get(schema_id)
        if schema is None:
            raise SchemaNotFound(f"Schema {schema_id} not found")
        return schema

    def id_of_guid(self, guid: UUID) -> int:
        found = self._id_of_guid.get(guid)
        if found is None:
            raise SchemaNotFound(f"Schema {guid} not found")
        return found

    def places(self, schema_id: int, *, with_deleted: bool = False) -> list[SchemaVersion]:
        """Where a schema stands: in which subjects, as which version."""
        self.schema(schema_id)
        return [
            self._place(name, version)
            for name, subject in sorted(self._subjects.items())
            for version in subject.live(with_deleted=with_deleted)
            if subject.ids[version] == schema_id
        ]

    def all_versions(self) -> list[SchemaVersion]:
        """Every version of every subject, deleted ones too. Schemas come before those built on them."""
        order = {schema_id: at for at, schema_id in enumerate(self._schemas)}
        places = [
            self._place(name, version) for name, subject in self._subjects.items() for version in subject.ids
        ]
        return sorted(places, key=lambda place: order[place.schema_id])

    def stands_in(self, name: str, schema_id: int) -> bool:
        """Whether a schema is a version of a subject, and not a deleted one."""
        subject = self._subjects.get(name)
        return subject is not None and any(
            subject.ids[version] == schema_id for version in reversed(subject.live())
        )

    def latest_id(self, name: str) -> int | None:
        """The schema that a subject has last; None when it has none, or there is no such subject."""
        subject = self._subjects.get(name)
        live = subject.live() if subject is not None else []
        return subject.ids[live[-1]] if subject is not None and live else None

    def referenced_by(self, name: str, version: int) -> list[int]:
        """Ids of the schemas that are built on a version and stand in some subject."""
        return sorted(
            schema_id
            for schema_id in self._standing
            if any(r.subject == name and r.version == version for r in self._schemas[schema_id].references)
        )

    def digest(self, schema: SchemaText) -> str | None:
        """What tells a schema from others, if one of the same text is known; None: it must be found out."""
        schema_id = self._id_of_guid.get(schema.guid)
        if schema_id is None or self._schemas[schema_id] != schema:
            return None
        return self._digests.get(schema_id)

    def undigested(self, kind: SchemaKind) -> list[int]:
        """Schemas of a kind that are only known by their texts."""
        if len(self._digests) == len(self._schemas):
            return []
        return [
            schema_id
            for schema_id, schema in self._schemas.items()
            if schema.kind is kind and schema_id not in self._digests
        ]

    def note_digest(self, schema_id: int, digest: str) -> None:
        """What was found out about a schema. Empty: it cannot be understood, and stands for itself alone."""
        schema = self._schemas.get(schema_id)
        if schema is not None:
            self._digests[schema_id] = digest
            if digest:
                self._id_of.setdefault((schema.kind, digest, schema.references), schema_id)

    def sources(self, schema: SchemaText) -> list[SourceText]:
        """A schema with all it is built on, which must be registered."""
        made: list[SourceText] = []
        self._collect(schema, made, {})
        return made

    def _collect(self, schema: SchemaText, made: list[SourceText], places: dict[int, int]) -> int:
        references = []
        for name, subject, version in schema.references:
            try:
                place = self.version(subject, version, with_deleted=True)
            except (SubjectNotFound, SchemaVersionNotFound) as error:
                raise InvalidSchema(f"reference {name!r}: {error}") from error
            if place.schema_id not in places:
                places[place.schema_id] = self._collect(place.schema, made, places)
            references.append((name, places[place.schema_id]))
        made.append(SourceText(schema.kind.value, schema.text, tuple(references)))
        if len(made) > SOURCES_MAX or sum(len(each.text) for each in made) > SOURCE_CHARACTERS_MAX:
            raise InvalidSchema(
                f"a schema is built on {SOURCES_MAX} others with {SOURCE_CHARACTERS_MAX} characters at most"
            )
        return len(made) - 1

    def find(
        self, name: str, schema: SchemaText, digest: str, *, with_deleted: bool = False
    ) -> SchemaVersion:
        """The version of a subject that says the same."""
        subject = self._subject(name, with_deleted=with_deleted)
        schema_id = self._id_of.get((schema.kind, digest, schema.references))
        for version in reversed(subject.live(with_deleted=with_deleted)):
            if subject.ids[version] == schema_id:
                return self._place(name, version)
        raise SchemaNotFound("Schema not found")

    def comparisons(
        self, name: str, schema: SchemaText, digest: str, *, against: int | Latest | None = None
    ) -> list[Comparison]:
        """What a schema must be held against before it may follow what a subject has, the latest first.

        `against` one version, or, when none is named, all that the subject's level asks for.
        """
        level = self.settings.compatibility(name)
        if not level.reads_older and not level.is_read_by_older:
            return []
        if against is not None:
            others = [self.version(name, against)]
        else:
            live = self._subjects.get(name, _Subject()).live()
            others = [self._place(name, version) for version in (live if level.is_transitive else live[-1:])]
        known_id = self._id_of.get((schema.kind, digest, schema.references))
        return [
            Comparison(other.version, other.schema_id, level.reads_older, level.is_read_by_older)
            for other in reversed(others)
            if other.schema_id != known_id  # a schema follows itself
        ]

    def needed_comparisons(self, name: str, schema: SchemaText, digest: str) -> list[Comparison]:
        """The same where a schema is to be registered: none if it has its place, or nobody asks."""
        subject = self._subjects.get(name)
        known_id = self._id_of.get((schema.kind, digest, schema.references))
        if subject is None or any(subject.ids[version] == known_id for version in subject.live()):
            return []
        return self.comparisons(name, schema, digest) if self._is_compared(name) else []

    def _is_compared(self, name: str) -> bool:
        return self.settings.mode(name) is RegistryMode.READWRITE

    def register(
        self,
        name: str,
        schema: SchemaText,
        digest: str,
        compared: Mapping[Comparison, Compared],
        *,
        schema_id: int | None = None,
        version: int | None = None,
    ) -> tuple[SchemaVersion, list[Event]]:
        """The place of a schema in a subject: the one it has, or a new one if it fits there.

        `compared` holds what was found out for `needed_comparisons`. Ids and versions are the registry's to
        give, but for a subject in import mode.
        """
        if name not in self._subjects:
            checked_subject(name)
        known_id = self._id_of.get((schema.kind, digest, schema.references))
        subject = self._subjects.get(name, _Subject())
        for standing in reversed(subject.live()):
            if subject.ids[standing] == known_id:
                return self._place(name, standing), []
        mode = self.settings.mode(name)
        if not mode.may_register:
            raise RegistryReadOnly(f"subject {name} is in mode {mode.value}")
        if mode is not RegistryMode.IMPORT and (schema_id is not None or version is not None):
            raise RegistryReadOnly(
                f"subject {name} is in mode {mode.value}: only in mode IMPORT are ids and versions given"
            )
        needed = self.needed_comparisons(name, schema, digest)
        if problems := [text for each in needed for text in each.problems(compared[each])]:
            raise IncompatibleSchema(name, problems)
        self._check_import(known_id, schema_id)
        # Also if it is deleted: others may be built on it.
        if version in subject.ids and subject.ids[version] != known_id:
            raise InvalidSchema(f"version {version} of subject {name} is another schema")
        place = SchemaVersion(
            name,
            version or max(subject.ids, default=0) + 1,
            schema_id or known_id or self._next_id,
            schema,
        )
        registered = SchemaRegistered(
            name, place.version, place.schema_id, schema.kind.value, schema.text, schema.references, digest
        )
        return place, [registered]

    def delete_version(
        self, name: str, wanted: int | Latest, *, is_permanent: bool
    ) -> tuple[int, list[Event]]:
        """Take a version away, for good only what was taken away before."""
        self._check_writable(name)
        known = self._subjects.get(name, _Subject())
        if not is_permanent and wanted in known.deleted:
            raise SchemaVersionSoftDeleted(name, wanted)
        version = self.version(name, wanted, with_deleted=is_permanent).version
        if is_permanent and version not in known.deleted:
            raise VersionNotSoftDeleted(
                f"Subject '{name}' Version {version} was not deleted first before being permanently deleted"
            )
        self._check_unreferenced(name, version)
        event: Event = VersionRemoved(name, version) if is_permanent else VersionDeleted(name, version)
        return version, [event]

    def delete_subject(self, name: str, *, is_permanent: bool) -> tuple[list[int], list[Event]]:
        """Take all versions of a subject away."""
        self._check_writable(name)
        subject = self._subject(name, with_deleted=True)
        versions = subject.live(with_deleted=is_permanent)
        if not versions:
            raise SubjectSoftDeleted(name)
        if is_permanent and subject.live():
            raise NotSoftDeleted(f"Subject '{name}' was not deleted first before being permanently deleted")
        for version in versions:
            self._check_unreferenced(name, version)
        kind = VersionRemoved if is_permanent else VersionDeleted
        events: list[Event] = [kind(name, version) for version in versions]
        if self.settings.has_compatibility(name):
            events.append(CompatibilityChanged(name, None))
        return versions, events

    def set_mode(self, name: str, mode: RegistryMode | None, *, is_forced: bool = False) -> Event:
        """Set a mode, or go back to the one for all; under the empty name the one for all."""
        if mode is RegistryMode.IMPORT and not is_forced and self._has_versions(name):
            raise RegistryReadOnly("mode IMPORT is for what has no schemas yet, unless it is forced")
        return self.settings.set_mode(name, mode)

    def apply(self, event: Event) -> None:
        match event:
            case SchemaRegistered():
                schema = event.schema
                self._schemas.setdefault(event.schema_id, schema)
                subject = self._subjects.setdefault(event.subject, _Subject())
                self._stand(subject.ids.get(event.version), -1)
                subject.ids[event.version] = event.schema_id
                self._stand(event.schema_id, 1)
                subject.deleted.discard(event.version)
                self._id_of_guid.setdefault(self._schemas[event.schema_id].guid, event.schema_id)
                self._next_id = max(self._next_id, event.schema_id + 1)
                if event.digest:
                    self.note_digest(event.schema_id, event.digest)
            case VersionDeleted():
                self._subjects[event.subject].deleted.add(event.version)
            case VersionRemoved():
                self._remove(event.subject, event.version)
            case CompatibilityChanged() | ModeChanged() | ValidationChanged():
                self.settings.apply(event)
            case IdsUsedUp():
                self._next_id = max(self._next_id, event.next_id)
            case StateReset():
                self._reset()
                self._next_id = event.next_id

    def whole_state(self) -> Iterable[Event]:
        """Events that lead from nothing to the present state. Schemas come before those built on them."""
        yield StateReset(self._next_id)
        for name, version, schema_id, schema, _ in self.all_versions():
            yield SchemaRegistered(
                name,
                version,
                schema_id,
                schema.kind.value,
                schema.text,
                schema.references,
                self._digests.get(schema_id, ""),
            )
        for name, subject in self._subjects.items():
            for version in sorted(subject.deleted):
                yield VersionDeleted(name, version)
        yield from self.settings.whole_state()

    def copy(self) -> "Registry":
        """A registry of the same state, to try things on."""
        twin = Registry()
        twin._subjects = {
            name: _Subject(dict(subject.ids), set(subject.deleted))
            for name, subject in self._subjects.items()
        }
        twin._schemas, twin._id_of = dict(self._schemas), dict(self._id_of)
        twin._digests, twin._standing = dict(self._digests), dict(self._standing)
        twin._id_of_guid, twin._next_id = dict(self._id_of_guid), self._next_id
        for event in self.settings.whole_state():
            twin.settings.apply(event)
        return twin

    def _subject(self, name: str, *, with_deleted: bool) -> _Subject:
        subject = self._subjects.get(name)
        if subject is None or not subject.live(with_deleted=with_deleted):
            raise SubjectNotFound(name)
        return subject

    def _place(self, name: str, version: int) -> SchemaVersion:
        subject = self._subjects[name]
        schema_id = subject.ids[version]
        return SchemaVersion(name, version, schema_id, self._schemas[schema_id], version in subject.deleted)

    def _has_versions(self, name: str) -> bool:
        if name == GLOBAL:
            return bool(self.subjects())
        subject = self._subjects.get(name)
        return subject is not None and bool(subject.live())

    def _check_import(self, known_id: int | None, schema_id: int | None) -> None:
        if schema_id is None:
            return
        if known_id not in (None, schema_id) or (known_id is None and schema_id in self._schemas):
            raise InvalidSchema(f"id {schema_id} stands for another schema already")

    def _check_writable(self, name: str) -> None:
        mode = self.settings.mode(name)
        if mode in (RegistryMode.READONLY, RegistryMode.READONLY_OVERRIDE):
            raise RegistryReadOnly(f"subject {name} is in mode {mode.value}")

    def _check_unreferenced(self, name: str, version: int) -> None:
        if ids := self.referenced_by(name, version):
            raise SchemaReferenced(
                f"One or more references exist to the schema {{subject={name},version={version}}}: "
                f"those with the ids {ids}"
            )

    def _remove(self, name: str, version: int) -> None:
        subject = self._subjects[name]
        schema_id = subject.ids.pop(version)
        subject.deleted.discard(version)
        if not subject.ids:
            del self._subjects[name]
        self._stand(schema_id, -1)
        if schema_id not in self._standing:
            self._forget(schema_id)

    def _forget(self, schema_id: int) -> None:
        """A schema stands nowhere any more.

        What it went by means another that says the same, if there is one: a backup may have brought it under
        the id that it had elsewhere.
        """
        schema = self._schemas.pop(schema_id)
        digest = self._digests.pop(schema_id, "")
        if self._id_of_guid.get(schema.guid) == schema_id:
            del self._id_of_guid[schema.guid]
            for other_id, other in self._schemas.items():
                if other == schema:
                    self._id_of_guid[schema.guid] = other_id
                    break
        key = (schema.kind, digest, schema.references)
        if self._id_of.get(key) == schema_id:
            del self._id_of[key]
            for other_id, other in self._schemas.items():
                if (other.kind, self._digests.get(other_id), other.references) == key:
                    self._id_of[key] = other_id
                    break

    def _stand(self, schema_id: int | None, change: int) -> None:
        if schema_id is not None:
            count = self._standing.pop(schema_id, 0) + change
            if count:
                self._standing[schema_id] = count
