"""The JSON of the schema registry: the keys of Confluent's API and of GoQueue's older clients together."""

from typing import Annotated

from msgspec import Meta, Struct

from goqueue.broker.access.needs import subject_need
from goqueue.broker.broker import Broker
from goqueue.broker.schemas.jobs import descriptor_of, schema_of
from goqueue.broker.slices import Slices
from goqueue.core.schemas.registry import Registry
from goqueue.model.access import Operation
from goqueue.model.errors import InvalidCompatibility, InvalidRegistryMode, InvalidSchema, SchemaNotFound
from goqueue.model.schema_commands import DescribeProtobuf, TellSchema
from goqueue.model.schemas import (
    Compatibility,
    RegistryMode,
    SchemaKind,
    SchemaReference,
    SchemaText,
    SchemaValidation,
    SchemaVersion,
    SubjectStrategy,
)
from goqueue.wire import schemas as wire

_INT31 = Meta(ge=1, le=2**31 - 1)


ReferenceBody = wire.SchemaReference


class SchemaBody(Struct, rename="camel"):
    """A schema as clients send it."""

    schema: str
    schema_type: (
        Annotated[
            str,
            Meta(description="JSON, AVRO or PROTOBUF. Absent: AVRO if the text is valid Avro, else JSON."),
        ]
        | None
    ) = None
    references: list[ReferenceBody] | None = None
    id: Annotated[int, _INT31, Meta(description="Only for subjects in mode IMPORT.")] | None = None
    version: Annotated[int, _INT31, Meta(description="Only for subjects in mode IMPORT.")] | None = None

    async def understood(self, broker: Broker) -> SchemaText:
        references = tuple(SchemaReference(r.name, r.subject, r.version) for r in self.references or ())
        return await schema_of(broker, TellSchema(text=self.schema, kind=self._kind(), references=references))

    def _kind(self) -> SchemaKind | None:
        if self.schema_type is None:
            return None
        try:
            return SchemaKind(self.schema_type.upper())
        except ValueError as error:
            raise InvalidSchema(f"{self.schema_type!r} is none of JSON, AVRO, PROTOBUF") from error


class CompatibilityBody(Struct, rename="camel"):
    """A compatibility level, under either of the two names that clients use."""

    compatibility: str | None = None
    compatibility_level: str | None = None

    def level(self) -> Compatibility:
        word = self.compatibility or self.compatibility_level
        try:
            return Compatibility((word or "").upper())
        except ValueError as error:
            levels = ", ".join(level.value for level in Compatibility)
            raise InvalidCompatibility(f"{word!r} is none of {levels}") from error


class ValidationBody(Struct, rename="camel"):
    """Whether messages are checked against the schemas of a subject, or of all."""

    validation_enabled: bool


class ModeBody(Struct):
    """The mode of a subject, or of all."""

    mode: str

    def understood(self) -> RegistryMode:
        try:
            return RegistryMode(self.mode.upper())
        except ValueError as error:
            modes = ", ".join(mode.value for mode in RegistryMode)
            raise InvalidRegistryMode(f"{self.mode!r} is none of {modes}") from error


class RegisteredBody(wire.Registered, frozen=True, kw_only=True):
    """Where a schema stands."""

    guid: str


class SchemaVersionBody(Struct, rename="camel", omit_defaults=True):
    """A version of a subject, whole."""

    subject: str
    version: int
    id: int
    guid: str
    schema: str
    schema_type: str
    references: list[ReferenceBody] = []


class SchemaTextBody(wire.Schema, frozen=True, kw_only=True):
    """A schema by its id. Subject and version are those of its first place, if it has one in sight."""

    guid: str


class PlaceBody(Struct):
    subject: str
    version: int


class LevelReply(Struct, rename="camel"):
    compatibility: str
    compatibility_level: str


class ModeReply(Struct):
    mode: str


FitReply = wire.Fit


class SubjectStats(Struct, rename="camel"):
    subject: str
    version_count: int
    latest_version: int
    latest_schema_id: int
    compatibility: str
    validation_enabled: Annotated[bool, Meta(description="Some topic checks its messages by this subject.")]


class SlowSchema(Struct):
    """A schema that took too long on data."""

    id: int
    subjects: list[str]
    reason: str


class RegistryStats(Struct, rename="camel"):
    """Numbers of the registry. `subjects` is a number for the clients; the list stands under `details`."""

    subject_count: int
    total_schemas: int
    global_compatibility: str
    subjects: int
    schemas: int
    versions: int
    validation_enabled: Annotated[bool, Meta(description="Some topic checks its messages.")]
    cached_validators: Annotated[int, Meta(description="Schemas that are ready to check messages.")]
    slow_schemas: Annotated[list[SlowSchema], Meta(description="Those that took too long on data.")]
    details: list[SubjectStats]


async def version_body(broker: Broker, place: SchemaVersion, form: str | None) -> SchemaVersionBody:
    schema = place.schema
    return SchemaVersionBody(
        place.subject,
        place.version,
        place.schema_id,
        str(schema.guid),
        await _text(broker, place.schema_id, schema, form),
        schema.kind.value,
        [ReferenceBody(*reference) for reference in schema.references],
    )


async def text_body(broker: Broker, schema_id: int, form: str | None) -> SchemaTextBody:
    schema, places = await broker.schemas.look_up(
        lambda registry: (registry.schema(schema_id), registry.places(schema_id))
    )
    lets = broker.warden.lets
    places = [place for place in places if lets(subject_need(Operation.READ, place.subject))]
    return SchemaTextBody(
        schema_id,
        await _text(broker, schema_id, schema, form),
        schema.kind.value,
        [ReferenceBody(*reference) for reference in schema.references],
        places[0].subject if places else None,
        places[0].version if places else None,
        guid=str(schema.guid),
    )


async def _text(broker: Broker, schema_id: int, schema: SchemaText, form: str | None) -> str:
    """A schema as it was registered, or as a descriptor when that is asked for and there is one."""
    if form == "serialized" and schema.kind is SchemaKind.PROTOBUF:
        return await descriptor_of(broker, DescribeProtobuf(schema_id=schema_id))
    return schema.text


async def stats_body(broker: Broker) -> RegistryStats:
    registry = broker.schemas.registry
    details = []
    slices = Slices(broker.clock)
    watch = _Watch(broker)
    for name in registry.subjects():
        await slices.pause()
        if registry.latest_id(name) is None:
            continue  # it has gone meanwhile
        latest = registry.version(name, "latest")
        details.append(
            SubjectStats(
                name,
                len(registry.versions(name)),
                latest.version,
                latest.schema_id,
                registry.settings.compatibility(name).value,
                watch.is_on(name),
            )
        )
    version_count = sum(each.version_count for each in details)
    return RegistryStats(
        len(details),
        registry.schema_count,
        registry.settings.compatibility().value,
        len(details),
        registry.schema_count,
        version_count,
        watch.is_on_somewhere,
        len(broker.schemas.checkers),
        [_slow(registry, schema_id, reason) for schema_id, reason in broker.schemas.checkers.slow.items()],
        details,
    )


class _Watch:
    """Which subjects topics go by when they check their messages."""

    def __init__(self, broker: Broker) -> None:
        self._settings = broker.schemas.registry.settings
        self._names: set[str] = set()
        self._prefixes: list[str] = []
        for topic in broker.metadata.topics.values():
            if topic.settings.schema_validation is SchemaValidation.NONE:
                continue
            match topic.settings.schema_subject_strategy:
                case SubjectStrategy.TOPIC_NAME:
                    self._names |= {topic.name, f"{topic.name}-value", f"{topic.name}-key"}
                case SubjectStrategy.RECORD_NAME:
                    self._prefixes.append("")
                case SubjectStrategy.TOPIC_RECORD_NAME:
                    self._prefixes.append(f"{topic.name}-")

    @property
    def is_on_somewhere(self) -> bool:
        return bool(self._prefixes) or any(map(self._settings.is_validating, self._names))

    def is_on(self, subject: str) -> bool:
        is_asked_for = subject in self._names or subject.startswith(tuple(self._prefixes))
        return is_asked_for and self._settings.is_validating(subject)


def _slow(registry: Registry, schema_id: int, reason: str) -> SlowSchema:
    try:
        places = registry.places(schema_id)
    except SchemaNotFound:
        places = []
    return SlowSchema(schema_id, sorted({place.subject for place in places}), reason)
