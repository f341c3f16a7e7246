"""Schemas ready to check data where messages come in, as far as that is known to be quick.

A helper process prepares a schema (`jobs.py`): it understands it and tells what checking may take for a byte.
Here only what is needed to check is made of that. How many schemas are kept ready is bounded, by number and
by size; one that has taken longer than was told is not trusted any more, and its data is checked by the
helper process.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable
from functools import cached_property

from msgspec import Struct

from goqueue.core.schemas.limits import CHECK_NS_MAX, TooMuch
from goqueue.core.schemas.wire_format import place_text
from goqueue.model.schemas import SchemaKind
from goqueue.model.settings import SchemaConfig

Misfit = Callable[[bytes], str | None]
"""Tells why data does not fit, and where; None when it fits."""
Judges = Callable[[tuple[int, ...], int], Misfit]
"""Makes one: for a message of a Protobuf file, others have but one; and for how many bytes."""
_STRIKES_MAX = 3
"""So often in a row a schema may be late: memory may have been tidied up meanwhile."""
_SLOW_KEPT = 100


class Prepared(Struct, frozen=True, array_like=True):
    """What a helper process found out about a schema for those who check data; or why it cannot be used."""

    kind: SchemaKind | None = None
    form: bytes = b""
    """What checking needs, in a form that is quickly read."""
    ns_a_byte: int = 0
    """The most that it may take to check a byte; 0: nobody can tell, or it takes long to get ready."""
    record_names: dict[str, str | None] = {}
    """By the place of a message in a Protobuf file; others have one, under the empty text."""
    problem: str = ""

    def elsewhere(self) -> "Prepared":
        """The same for a schema whose data is checked by a helper process."""
        return Prepared(self.kind, self.form, 0, self.record_names)


class Content:
    """What data of one schema, and for Protobuf of one message of it, must be like."""

    def __init__(self, checker: "Checker", indexes: tuple[int, ...], record_name: str | None) -> None:
        self.schema_id = checker.schema_id
        self.indexes = indexes
        self.record_name = record_name
        self._checker = checker

    @cached_property
    def misfit(self) -> Misfit:
        """Tells why data does not fit, and where; None when it fits. Raises TooMuch."""
        prepared = self._checker.prepared
        if not prepared.ns_a_byte:
            return _too_much
        return self._checker.judges(self.indexes, CHECK_NS_MAX // prepared.ns_a_byte)

    def unwatched(self) -> "Content":
        """The same for data that is not to be checked."""
        passing = Content(self._checker, self.indexes, self.record_name)
        passing.__dict__["misfit"] = _passes
        return passing

    def distrust(self) -> None:
        """Check nothing here any more."""
        self.__dict__["misfit"] = _too_much


class Checker:
    """One schema, ready to check data."""

    def __init__(self, schema_id: int, prepared: Prepared) -> None:
        assert prepared.kind is not None, "it was understood"
        self.schema_id = schema_id
        self.kind = prepared.kind
        self.prepared = prepared
        self._contents: dict[tuple[int, ...], Content] = {}

    def content(self, indexes: tuple[int, ...] = ()) -> Content | None:
        """What data must be like; None: the schema has no such message."""
        if self.kind is not SchemaKind.PROTOBUF:
            indexes = ()
        found = self._contents.get(indexes)
        if found is None:
            word = place_text(indexes)
            if word not in self.prepared.record_names:
                return None
            found = self._contents[indexes] = Content(self, indexes, self.prepared.record_names[word])
        return found

    @cached_property
    def judges(self) -> Judges:
        return judges_of(self.prepared)

    def distrust(self) -> None:
        for content in self._contents.values():
            content.distrust()
        self.prepared = self.prepared.elsewhere()


def judges_of(prepared: Prepared) -> Judges:
    """What makes judges of data. Libraries are imported with the first schema that needs them."""
    match prepared.kind:
        case SchemaKind.JSON:
            from goqueue.core.schemas.json_data import JsonJudge

            return lambda _, bytes_max: JsonJudge(prepared.form, bytes_max).misfit
        case SchemaKind.AVRO:
            from goqueue.core.schemas.avro_data import AvroJudge

            return lambda _, bytes_max: AvroJudge(prepared.form, bytes_max).misfit
        case SchemaKind.PROTOBUF:
            from goqueue.core.schemas.protobuf_data import ProtobufJudge, linked

            file = linked(prepared.form)
            return lambda indexes, bytes_max: ProtobufJudge(file, indexes, bytes_max).misfit
    raise AssertionError("a schema that is prepared has a kind")


def _passes(_: bytes) -> str | None:
    return None


def _too_much(_: bytes) -> str | None:
    raise TooMuch


class Checkers:
    """Those that are kept ready: the ones used last, as many as there is room for."""

    def __init__(self, config: SchemaConfig) -> None:
        self._config = config
        self._kept: OrderedDict[int, Checker | str] = OrderedDict()
        self._size_bytes = 0
        self._strikes: dict[int, int] = {}
        self.slow: OrderedDict[int, str] = OrderedDict()
        """Schemas that took too long on data, and what was said of them; the latest of them."""
        self.ns_a_byte_max = 0
        """What a byte may take with any of those that were kept: for data of which no more is known."""

    def __len__(self) -> int:
        return sum(isinstance(each, Checker) for each in self._kept.values())

    def get(self, schema_id: int) -> Checker | str | None:
        """A schema that is ready, or why it never will be; None: it must be prepared."""
        found = self._kept.get(schema_id)
        if found is not None:
            self._kept.move_to_end(schema_id)
        return found

    def keep(self, schema_id: int, prepared: Prepared) -> Checker | str:
        """Have a schema ready from now on."""
        made: Checker | str = prepared.problem
        if not prepared.problem:
            if schema_id in self.slow:
                prepared = prepared.elsewhere()
            made = Checker(schema_id, prepared)
            self.ns_a_byte_max = max(self.ns_a_byte_max, prepared.ns_a_byte)
        self._forget(schema_id)
        self._kept[schema_id] = made
        self._size_bytes += _size_bytes(made)
        while len(self._kept) > self._config.checkers_max or (
            self._size_bytes > self._config.checkers_bytes and len(self._kept) > 1
        ):
            self._forget(next(iter(self._kept)))
        return made

    def was_late(self, schema_ids: Iterable[int], took_ms: int) -> list[int]:
        """Data of these took longer than it may; which of them are not trusted any more because of that."""
        distrusted = []
        for schema_id in schema_ids:
            self._strikes[schema_id] = self._strikes.get(schema_id, 0) + 1
            if self._strikes[schema_id] >= _STRIKES_MAX:
                del self._strikes[schema_id]
                distrusted.append(schema_id)
                self.tell_slow(schema_id, f"checking took {took_ms} ms where everybody is served")
                found = self._kept.get(schema_id)
                if isinstance(found, Checker):
                    found.distrust()
        return distrusted

    def was_in_time(self) -> None:
        """A batch was checked as quickly as it should."""
        if self._strikes:
            self._strikes.clear()

    def tell_slow(self, schema_id: int, reason: str) -> None:
        self.slow[schema_id] = reason
        self.slow.move_to_end(schema_id)
        if len(self.slow) > _SLOW_KEPT:
            self.slow.popitem(last=False)

    def _forget(self, schema_id: int) -> None:
        gone = self._kept.pop(schema_id, None)
        if gone is not None:
            self._size_bytes -= _size_bytes(gone)


def _size_bytes(kept: Checker | str) -> int:
    return len(kept) if isinstance(kept, str) else len(kept.prepared.form)
