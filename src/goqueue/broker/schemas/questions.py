"""Questions about schemas and data that helper processes answer, for those who check messages.

A schema that takes too long on data is told to its owner: in the log, in a metric, and by `/schemas/stats`.
The message is refused.
"""

import logging
from collections.abc import Iterable
from importlib import import_module

import msgspec

from goqueue.broker.broker import Broker
from goqueue.core.schemas import jobs
from goqueue.core.schemas.checkers import Checker, Prepared
from goqueue.core.schemas.checking import Question
from goqueue.core.schemas.sources import Check
from goqueue.model.errors import GoQueueError, InvalidSchema, JobOverran, SchemaNotFound
from goqueue.model.schemas import SchemaKind, TooSlow
from goqueue.model.settings import KiB, MiB

log = logging.getLogger(__name__)
_GROUP_MAX = 256
_GROUP_BYTES = MiB
"""So many messages, and of so many bytes, are asked about at a time."""
_PREPARED_HERE_MAX = 256 * KiB
"""More than this makes a large object of a library here."""
_LIBRARIES = {
    SchemaKind.JSON: "goqueue.core.schemas.json_data",
    SchemaKind.AVRO: "goqueue.core.schemas.avro_data",
    SchemaKind.PROTOBUF: "goqueue.core.schemas.protobuf_data",
}
_prepared = msgspec.msgpack.Decoder(Prepared)
_answers = msgspec.msgpack.Decoder(list[str | None])
_encode = msgspec.msgpack.encode


async def make_ready(broker: Broker, topic: str, schema_id: int) -> Checker | str:
    """A schema with which data can be checked; or why there is none."""
    registry = broker.schemas.registry
    try:
        request = _encode(registry.sources(registry.schema(schema_id)))
        prepared = _prepared.decode(await broker.workshop.run(jobs.prepare, request, whose=_whose(topic)))
    except (InvalidSchema, SchemaNotFound) as error:
        prepared = Prepared(problem=f"schema {schema_id}: {error}")
    except JobOverran as error:
        prepared = Prepared(problem=f"schema {schema_id} takes too long to understand: {error}")
    if prepared.kind is not None:
        # In a thread: a library takes longer to import than anybody may hold the loop.
        await broker.threads.run(import_module, _LIBRARIES[prepared.kind])
        if len(prepared.form) > _PREPARED_HERE_MAX:
            prepared = prepared.elsewhere()
    return broker.schemas.checkers.keep(schema_id, prepared)


async def answer(broker: Broker, topic: str, questions: Iterable[Question]) -> dict[Question, str | None]:
    """What is wrong with data; None where nothing is."""
    groups: dict[tuple[int, tuple[int, ...]], list[Question]] = {}
    for question in questions:
        groups.setdefault(question[:2], []).append(question)
    answers: dict[Question, str | None] = {}
    for (schema_id, indexes), group in groups.items():
        checker = broker.schemas.checkers.get(schema_id) or await make_ready(broker, topic, schema_id)
        if isinstance(checker, str):  # it was ready a moment ago, and has gone
            answers |= dict.fromkeys(group, checker)
        else:
            answers |= await _answer_group(broker, topic, checker, indexes, group)
    return answers


async def _answer_group(
    broker: Broker, topic: str, checker: Checker, indexes: tuple[int, ...], group: list[Question]
) -> dict[Question, str | None]:
    schema_id, form = checker.schema_id, checker.prepared.form
    limit_ms = broker.config.schemas.check_limit_ms
    answers: dict[Question, str | None] = {}
    waiting, count_max = list(reversed(group)), _GROUP_MAX
    while waiting:
        asked = _take(waiting, count_max)
        request = _encode(Check(checker.kind, form, indexes, [question.payload for question in asked]))
        try:
            reply = await broker.workshop.run(jobs.check, request, whose=_whose(topic), limit_ms=limit_ms)
        except JobOverran as error:
            waiting += reversed(asked)
            if len(asked) > 1:
                count_max = 1  # one by one, to see which it was
                continue
            # The others are not tried: each might take a process with it.
            slow = TooSlow(f"schema {schema_id} takes too long on this data, or on other data sent with it")
            _tell(broker, topic, schema_id, len(waiting), str(error))
            return answers | dict.fromkeys(waiting, slow)
        found = _answers.decode(reply)
        answers.update(zip(asked, found, strict=False))
        waiting += reversed(asked[len(found) :])
        broker.counters.topic(topic).checked_apart(len(found))
    return answers


def _take(waiting: list[Question], count_max: int) -> list[Question]:
    """The next questions, from the end of the list."""
    taken = [waiting.pop()]
    size = len(taken[0].payload)
    while waiting and len(taken) < count_max and (size := size + len(waiting[-1].payload)) <= _GROUP_BYTES:
        taken.append(waiting.pop())
    return taken


def tell_late(broker: Broker, topic: str, schema_ids: Iterable[int], took_ms: int) -> None:
    """Checking took longer than was thought possible: such schemas are checked elsewhere before long."""
    for schema_id in broker.schemas.checkers.was_late(schema_ids, took_ms):
        _log_slow(broker, topic, schema_id, f"took {took_ms} ms")


def _tell(broker: Broker, topic: str, schema_id: int, count: int, reason: str) -> None:
    broker.schemas.checkers.tell_slow(schema_id, reason)
    broker.counters.topic(topic).check_too_slow(count)
    _log_slow(broker, topic, schema_id, reason)


def _log_slow(broker: Broker, topic: str, schema_id: int, reason: str) -> None:
    try:
        subjects = ",".join(place.subject for place in broker.schemas.registry.places(schema_id))
    except GoQueueError:
        subjects = ""
    log.warning(
        "schema_too_slow topic=%s schema=%d subjects=%s reason=%s",
        topic,
        schema_id,
        subjects,
        reason.replace(" ", "_"),
    )


def _whose(topic: str) -> str:
    return f"topic {topic}"
