"""Work on schemas for a helper process: what it costs is up to whoever has written them.

Each job is a function from bytes to bytes. What was understood is kept for the next job that speaks of the
same schema: a registration asks about one several times in a row.
"""

import sys
import time
from collections import OrderedDict
from collections.abc import Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, cast

import msgspec

from goqueue.core.schemas.checkers import Prepared, judges_of
from goqueue.core.schemas.limits import PREPARE_NS_MAX
from goqueue.core.schemas.parsing import breaks, kind_by_looks, parse
from goqueue.core.schemas.sources import Check, Compared, Pair, SourceText, SourceTexts, Understood
from goqueue.model.errors import InvalidSchema
from goqueue.model.schemas import Break, SchemaKind, SchemaText

if TYPE_CHECKING:
    from goqueue.core.schemas.avro_rules import AvroSchema
    from goqueue.core.schemas.json_documents import Document
    from goqueue.core.schemas.parsing import Parsed
    from goqueue.core.schemas.protobuf_files import ProtobufFile

_KEPT_MAX = 64
_BREAKS_MAX = 100
_TEXT_MAX = 1_000
"""Texts quote schemas, which may be long."""
_SLICE_NS = 100_000_000
"""So long data is checked before what was found is told; a helper process is killed at its limit."""
_ANY_BYTES = sys.maxsize
_encode = msgspec.msgpack.encode
_sources = msgspec.msgpack.Decoder(list[SourceText])
_pair = msgspec.msgpack.Decoder(Pair)
_check = msgspec.msgpack.Decoder(Check)
_kept: "OrderedDict[bytes, Parsed]" = OrderedDict()


def tell_kind(request: bytes) -> bytes:
    """Of a text that comes without its kind, the one that it looks like."""
    return kind_by_looks(request.decode()).value.encode()


def understand(request: bytes) -> bytes:
    """Whether a schema can be used, and what tells it from others."""
    try:
        parsed = parse_sources(_sources.decode(request))
        canonical = parsed.canonical()
    except InvalidSchema as error:
        return _encode(Understood(problem=str(error)[:_TEXT_MAX]))
    return _encode(Understood(parsed.kind, sha256(canonical.encode(errors="surrogatepass")).hexdigest()))


def compare(request: bytes) -> bytes:
    """Why data of one of two schemas cannot be read with the other."""
    pair = _pair.decode(request)
    new = parse_sources(pair.new)
    try:
        old = parse_sources(pair.old)
    except InvalidSchema as error:  # it was understood once, perhaps by another version of a library
        return _encode(Compared([f"it is not understood any more: {error}"[:_TEXT_MAX]], []))
    return _encode(
        Compared(
            _told(breaks(new, old)) if pair.reads_older else [],
            _told(breaks(old, new)) if pair.is_read_by_older else [],
        )
    )


def prepare(request: bytes) -> bytes:
    """What those need who check data of a schema, and what that may take."""
    try:
        parsed = parse_sources(_sources.decode(request))
    except InvalidSchema as error:
        return _encode(Prepared(problem=f"the schema cannot be used: {error}"[:_TEXT_MAX]))
    prepared = _prepared(parsed)
    return _encode(prepared.elsewhere() if _takes_long(prepared) else prepared)


def _takes_long(prepared: Prepared) -> bool:
    """Whether it would hold up everybody to make of it what checks data."""
    begun_ns = time.process_time_ns()
    for place in prepared.record_names:
        judges_of(prepared)(_indexes(place), 0)
        break
    return time.process_time_ns() - begun_ns > PREPARE_NS_MAX


def check(request: bytes) -> bytes:
    """What is wrong with data, one by one: of the first at least, and of more while there is time."""
    asked = _check.decode(request)
    misfit = judges_of(Prepared(asked.kind, asked.form))(asked.indexes, _ANY_BYTES)
    begun_ns = time.process_time_ns()
    found: list[str | None] = []
    for payload in asked.payloads:
        text = misfit(payload)
        found.append(text[:_TEXT_MAX] if text is not None else None)
        if time.process_time_ns() - begun_ns > _SLICE_NS:
            break
    return _encode(found)


def _prepared(parsed: "Parsed") -> Prepared:
    match parsed.kind:
        case SchemaKind.JSON:
            from goqueue.core.schemas.json_costs import units_of
            from goqueue.core.schemas.json_data import json_form, json_ns

            document = cast("Document", parsed)
            units = units_of(document)
            names = {"": document.record_name}
            return Prepared(parsed.kind, json_form(document), json_ns(units) if units else 0, names)
        case SchemaKind.AVRO:
            from goqueue.core.schemas.avro_data import avro_ns

            avro = cast("AvroSchema", parsed)
            form = avro.written_out().encode()
            return Prepared(parsed.kind, form, avro_ns(form), {"": avro.record_name})
        case SchemaKind.PROTOBUF:
            from goqueue.core.schemas.protobuf_data import PROTOBUF_NS, record_names

            file = cast("ProtobufFile", parsed)
            return Prepared(parsed.kind, _encode(file.files()), PROTOBUF_NS, record_names(file.descriptor))


def _indexes(place: str) -> tuple[int, ...]:
    return tuple(map(int, place.split("/"))) if place else ()


def describe_protobuf(request: bytes) -> bytes:
    """A Protobuf schema as its descriptor in base64."""
    parsed = parse_sources(_sources.decode(request))
    assert parsed.kind is SchemaKind.PROTOBUF, "only these have descriptors"
    return cast("ProtobufFile", parsed).serialized().encode()


def parse_sources(sources: SourceTexts) -> "Parsed":
    """What the last of some schemas means; those before it are what it is built on."""
    keys: list[bytes] = []
    parsed: list[Parsed] = []
    for kind, text, references in ((each.kind, each.text, each.references) for each in sources):
        words = (kind, text, [(name, keys[at]) for name, at in references])
        keys.append(sha256(_encode(words)).digest())
        found = _kept.get(keys[-1])
        if found is None:
            others = {name: parsed[at] for name, at in references}
            found = _kept[keys[-1]] = parse(SchemaText(SchemaKind(kind), text), others)
        _kept.move_to_end(keys[-1])
        parsed.append(found)
    while len(_kept) > _KEPT_MAX:
        _kept.popitem(last=False)
    return parsed[-1]


def _told(found: Sequence[Break]) -> list[str]:
    texts = [str(each)[:_TEXT_MAX] for each in found[:_BREAKS_MAX]]
    return texts if len(found) <= _BREAKS_MAX else [*texts, f"and {len(found) - _BREAKS_MAX} more"]
