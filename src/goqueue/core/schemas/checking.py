"""What one topic asks of its messages: a schema that counts there, and data that fits it.

Data names its schema by an id: in front of it (a zero byte, then the id in four), or in a header. Keys are
checked where they are framed so; a message without a value says nothing and passes.
"""

from typing import TYPE_CHECKING, Protocol, cast

from goqueue.core.schemas.registry import Registry
from goqueue.core.schemas.wire_format import (
    FIRST_MESSAGE,
    FRAME_BYTES,
    Named,
    frame_of,
    guid_beside,
    named_in_front,
    named_in_header,
    read_indexes,
)
from goqueue.model.errors import GoQueueError, SchemaNotFound
from goqueue.model.messages import Headers
from goqueue.model.schemas import SchemaKind, SchemaValidation, SubjectStrategy
from goqueue.model.settings import TopicSettings

if TYPE_CHECKING:
    from goqueue.core.schemas.parsing import Parsed
    from goqueue.core.schemas.protobuf_files import ProtobufFile

_TEXT_MAX = 500
"""Texts quote the data, which may be long."""
_VALUE, _KEY = "value", "key"
_NO_ID = 0
"""Ids count from 1."""


class Content(Protocol):
    """What data of one schema must be like."""

    @property
    def record_name(self) -> str | None: ...

    def misfit(self, payload: bytes) -> str | None: ...


class MessageCheck:
    """Made for one batch: while it is at work the registry stands still, so what it learns stays true."""

    def __init__(self, registry: Registry, topic: str, settings: TopicSettings) -> None:
        self._registry = registry
        self._topic = topic
        self._is_full = settings.schema_validation is SchemaValidation.FULL
        self._strategy = settings.schema_subject_strategy
        self._parsed: dict[int, Parsed | str] = {}
        self._judged: dict[tuple[str, int, tuple[int, ...]], Content | str] = {}
        self._by_frame: dict[bytes, Content] = {}
        """The same by the bytes in front of values: most messages of a batch have the same."""

    def problem(self, value: bytes | None, key: bytes | None, headers: Headers) -> str | None:
        """What is wrong with a message, and where; None when nothing is."""
        if value is not None:
            named = None
            if headers:
                named = named_in_header(value, headers) or self._named_by_guid(_VALUE, value, headers)
            usual = self._by_frame.get(value[:FRAME_BYTES]) if named is None else None
            if usual is not None:
                text = usual.misfit(value[FRAME_BYTES:]) if self._is_full else None
            elif (named := named or named_in_front(value)) is not None:
                text = self._problem(_VALUE, named)
            else:
                text = self._problem_of_unnamed(value)
            if text is not None:
                return f"value: {text}"[:_TEXT_MAX]
        if key is not None and (named := self._named_key(key, headers)) is not None:
            text = self._problem(_KEY, named)
            if text is not None:
                return f"key: {text}"[:_TEXT_MAX]
        return None

    def _named_key(self, key: bytes, headers: Headers) -> Named | None:
        """What a key says of its schema, if it means to."""
        if headers and (named := self._named_by_guid(_KEY, key, headers)) is not None:
            return named
        framed = named_in_front(key)
        return framed if framed is not None and self._is_meant(framed) else None

    def _named_by_guid(self, part: str, data: bytes, headers: Headers) -> Named | None:
        """By a header as serialisers write it. Behind the guid stands what else stands before the data."""
        found = guid_beside(part, headers)
        if found is None:
            return None
        guid, rest = found
        try:
            schema_id = self._registry.id_of_guid(guid)
        except SchemaNotFound as error:
            schema_id = _NO_ID
            self._parsed[_NO_ID] = str(error)
        return Named(schema_id, rest + data, is_framed=True)

    def _problem(self, part: str, named: Named) -> str | None:
        schema_id, payload, is_framed = named
        parsed = self._parse(schema_id)
        if isinstance(parsed, str):
            return parsed
        indexes: tuple[int, ...] = FIRST_MESSAGE
        if is_framed and parsed.kind is SchemaKind.PROTOBUF:
            found = read_indexes(payload)
            if found is None:
                return f"it does not say which message of schema {schema_id} it is"
            indexes, payload = found
        judged = self._judged.get((part, schema_id, indexes))
        if judged is None:
            judged = self._judge(part, schema_id, parsed, indexes)
            self._judged[part, schema_id, indexes] = judged
        if isinstance(judged, str):
            return judged
        if is_framed and part == _VALUE and parsed.kind is not SchemaKind.PROTOBUF:
            self._by_frame[frame_of(schema_id)] = judged
        return judged.misfit(payload) if self._is_full else None

    def _problem_of_unnamed(self, value: bytes) -> str | None:
        """Data that names no schema. Where there is one for the whole topic, a text may be checked by it."""
        missing = "it carries no schema id"
        if not self._is_full or self._strategy is not SubjectStrategy.TOPIC_NAME:
            return missing
        subjects = self._subjects(_VALUE, None)
        latest = next(filter(None, map(self._registry.latest_id, subjects)), None)
        if latest is None:
            return f"no schema is registered under {' or '.join(subjects)}"
        parsed = self._parse(latest)
        if isinstance(parsed, str):
            return parsed
        if parsed.kind is not SchemaKind.JSON:
            return f"{missing}, as data of a schema of kind {parsed.kind.value} must"
        return cast(Content, parsed).misfit(value)

    def _is_meant(self, named: Named) -> bool:
        """Whether a key that looks as if it named a schema does: plain numbers look so too."""
        if self._strategy is SubjectStrategy.TOPIC_NAME:
            [subject] = self._subjects(_KEY, None)
            return self._registry.latest_id(subject) is not None
        return not isinstance(self._parse(named.schema_id), str)

    def _parse(self, schema_id: int) -> "Parsed | str":
        known = self._parsed.get(schema_id)
        if known is None:
            try:
                known = self._registry.parsed(schema_id)
            except GoQueueError as error:
                known = str(error)
            self._parsed[schema_id] = known
        return known

    def _judge(self, part: str, schema_id: int, parsed: "Parsed", indexes: tuple[int, ...]) -> Content | str:
        """What data under an id must be like; or why the id does not count here."""
        if parsed.kind is SchemaKind.PROTOBUF:
            message = cast("ProtobufFile", parsed).message(indexes)
            if message is None:
                return f"schema {schema_id} has no message {list(indexes)}"
            content: Content = message
        else:
            content = cast(Content, parsed)
        subjects = self._subjects(part, content.record_name)
        if not subjects:
            return f"schema {schema_id} has no name for data of it, which the topic's subjects go by"
        if not any(self._registry.stands_in(subject, schema_id) for subject in subjects):
            return f"schema {schema_id} does not stand in subject {' or '.join(subjects)}"
        return content

    def _subjects(self, part: str, record_name: str | None) -> tuple[str, ...]:
        """Where a schema may stand to count. The topic's own name is what GoQueue's older clients use."""
        match self._strategy:
            case SubjectStrategy.TOPIC_NAME:
                named = f"{self._topic}-{part}"
                return (named, self._topic) if part == _VALUE else (named,)
            case SubjectStrategy.RECORD_NAME:
                return (record_name,) if record_name else ()
            case SubjectStrategy.TOPIC_RECORD_NAME:
                return (f"{self._topic}-{record_name}",) if record_name else ()
