"""The registry with what helper processes do for it, step by step and at once."""

import msgspec

from goqueue.core.schemas import jobs
from goqueue.core.schemas.checkers import Checker, Checkers, Prepared
from goqueue.core.schemas.checking import Apart, MessageCheck, NotReady
from goqueue.core.schemas.events import Event
from goqueue.core.schemas.registry import Comparison, Registry
from goqueue.core.schemas.sources import Check, Compared, Pair, Understood
from goqueue.model.errors import InvalidSchema
from goqueue.model.messages import Headers
from goqueue.model.schemas import Latest, SchemaText, SchemaVersion

_encode = msgspec.msgpack.encode


def digest_of(registry: Registry, schema: SchemaText) -> str:
    found = msgspec.msgpack.decode(jobs.understand(_encode(registry.sources(schema))), type=Understood)
    if found.problem:
        raise InvalidSchema(found.problem)
    return found.digest


def compared(
    registry: Registry, schema: SchemaText, comparisons: list[Comparison]
) -> dict[Comparison, Compared]:
    return {
        each: msgspec.msgpack.decode(
            jobs.compare(
                _encode(
                    Pair(
                        registry.sources(schema),
                        registry.sources(registry.schema(each.schema_id)),
                        each.reads_older,
                        each.is_read_by_older,
                    )
                )
            ),
            type=Compared,
        )
        for each in comparisons
    }


def decide(
    registry: Registry,
    subject: str,
    schema: SchemaText,
    *,
    schema_id: int | None = None,
    version: int | None = None,
) -> tuple[SchemaVersion, list[Event]]:
    """What the registry makes of a schema that is to be registered."""
    digest = digest_of(registry, schema)
    needed = registry.needed_comparisons(subject, schema, digest)
    found = compared(registry, schema, needed)
    return registry.register(subject, schema, digest, found, schema_id=schema_id, version=version)


def problems(
    registry: Registry, subject: str, schema: SchemaText, *, against: int | Latest | None = None
) -> list[str]:
    """Why a schema cannot follow what a subject has."""
    comparisons = registry.comparisons(subject, schema, digest_of(registry, schema), against=against)
    found = compared(registry, schema, comparisons)
    return [text for each in comparisons for text in each.problems(found[each])]


def find(
    registry: Registry, subject: str, schema: SchemaText, *, with_deleted: bool = False
) -> SchemaVersion:
    return registry.find(subject, schema, digest_of(registry, schema), with_deleted=with_deleted)


def prepared(registry: Registry, schema_id: int) -> Prepared:
    """What a helper process makes of a schema for those who check data."""
    request = _encode(registry.sources(registry.schema(schema_id)))
    return msgspec.msgpack.decode(jobs.prepare(request), type=Prepared)


def problem_of(
    check: MessageCheck,
    registry: Registry,
    checkers: Checkers,
    value: bytes | None,
    key: bytes | None,
    headers: Headers,
) -> str | None:
    """What is wrong with a message, whoever must be asked."""
    while True:
        try:
            return check.problem(value, key, headers)
        except NotReady as missing:
            check.know(
                missing.schema_id, checkers.keep(missing.schema_id, prepared(registry, missing.schema_id))
            )
        except Apart as apart:
            schema_id, indexes, payload = apart.question
            checker = checkers.get(schema_id)
            assert isinstance(checker, Checker), "it is ready"
            request = Check(checker.kind, checker.prepared.form, indexes, [payload])
            [answer] = msgspec.msgpack.decode(jobs.check(_encode(request)))
            check.answers[apart.question] = answer
