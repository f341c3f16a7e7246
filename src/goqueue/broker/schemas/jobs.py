"""Schemas understood and compared, by helper processes: what that costs is up to whoever has written them.

Nothing here changes the registry but what was found out about schemas that it has already.
"""

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from goqueue.broker.broker import Broker
from goqueue.core.schemas import jobs
from goqueue.core.schemas.registry import Comparison, Registry
from goqueue.core.schemas.sources import Compared, Pair, SourceText, Understood
from goqueue.model.errors import InvalidSchema, JobOverran, SchemaTooComplex
from goqueue.model.ports import Job
from goqueue.model.schema_commands import DescribeProtobuf, TellSchema
from goqueue.model.schemas import SchemaKind, SchemaText

T = TypeVar("T")
_REGISTRY = "schemas"
_understood = msgspec.msgpack.Decoder(Understood)
_compared = msgspec.msgpack.Decoder(Compared)
_encode = msgspec.msgpack.encode


async def schema_of(broker: Broker, command: TellSchema) -> SchemaText:
    """A schema as it was given; one that comes without its kind is of the one that it looks like."""
    text, kind, references = command.text, command.kind, command.references
    limit = broker.config.schemas.text_max
    if len(text) > limit:
        raise InvalidSchema(f"a schema of {len(text)} characters is over the limit of {limit}")
    if kind is None:
        # The usual case of clients that name no kind, and known without asking if it was registered before.
        schema = SchemaText(SchemaKind.AVRO, text, references)
        if broker.schemas.registry.digest(schema) is not None:
            return schema
        # A text with a lone surrogate is no schema of any kind, and is told so when it is understood.
        told = await _run(broker, jobs.tell_kind, text.encode(errors="replace"))
        kind = SchemaKind(told.decode())
    return SchemaText(kind, text, references)


async def digest_of(broker: Broker, registry: Registry, schema: SchemaText) -> str:
    """What tells a schema from others whatever its spelling. Refuses one that cannot be used."""
    known = registry.digest(schema)
    if known:
        return known
    for schema_id in registry.undigested(schema.kind):
        await _digest_old(broker, registry, schema_id)
    understood = await _understand(broker, registry.sources(schema))
    if understood.problem:
        raise InvalidSchema(understood.problem)
    return understood.digest


async def compare(
    broker: Broker, registry: Registry, schema: SchemaText, comparisons: list[Comparison]
) -> Mapping[Comparison, Compared]:
    """What stands between a schema and each of some older ones."""
    found = {}
    new = registry.sources(schema)
    for comparison in comparisons:
        _, schema_id, reads_older, is_read_by_older = comparison
        old = registry.sources(registry.schema(schema_id))
        request = _encode(Pair(new, old, reads_older, is_read_by_older))
        found[comparison] = _compared.decode(await _run(broker, jobs.compare, request))
    return found


async def descriptor_of(broker: Broker, command: DescribeProtobuf) -> str:
    """A Protobuf schema as its descriptor in base64."""
    sources = await broker.schemas.look_up(
        lambda registry: registry.sources(registry.schema(command.schema_id))
    )
    return (await _run(broker, jobs.describe_protobuf, _encode(sources))).decode()


async def _digest_old(broker: Broker, registry: Registry, schema_id: int) -> None:
    """Find out about a schema of a journal that has no digests. One that is not understood is left as it is:
    it was once, perhaps by another version of a library, and whoever has its id gets its text.
    """
    try:
        sources = registry.sources(registry.schema(schema_id))
        understood = await _understand(broker, sources)
    except InvalidSchema:
        registry.note_digest(schema_id, "")
    else:
        registry.note_digest(schema_id, understood.digest)


async def _understand(broker: Broker, sources: list[SourceText]) -> Understood:
    return _understood.decode(await _run(broker, jobs.understand, _encode(sources)))


async def _run(broker: Broker, job: Job, request: bytes) -> bytes:
    try:
        return await broker.workshop.run(job, request, whose=_REGISTRY)
    except JobOverran as error:
        raise SchemaTooComplex(f"the schema takes too long to understand or to compare: {error}") from error
