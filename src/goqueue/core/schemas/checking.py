"""What one topic asks of its messages: a schema that counts there, and data that fits it.

Data names its schema by an id: in front of it (a zero byte, then the id in four), or in a header. Keys are
checked where they are prefixed so; a message without a value says nothing and passes. What may take long is
not done here but asked for: that a schema is made ready (`NotReady`), or whether data fits one (`Apart`).
"""

from collections.abc import Iterable
from typing import NamedTuple

from goqueue.core.schemas.checkers import Checker, Checkers, Content
from goqueue.core.schemas.limits import TooMuch
from goqueue.core.schemas.registry import Registry
from goqueue.core.schemas.wire_format import (
    FIRST_MESSAGE,
    PREFIX_BYTES,
    Named,
    guid_beside,
    named_in_front,
    named_in_header,
    prefix_of,
    read_indexes,
)
from goqueue.model.errors import SchemaNotFound
from goqueue.model.messages import Headers, Message, StoredMessage
from goqueue.model.schemas import SchemaKind, SchemaValidation, SubjectStrategy, TooSlow
from goqueue.model.settings import TopicSettings

_TEXT_MAX = 500
"""Texts quote the data, which may be long."""
_VALUE, _KEY = "value", "key"
_NO_ID = 0
"""Ids count from 1."""


class NotReady(Exception):
    """A schema must be made ready first."""

    def __init__(self, schema_id: int) -> None:
        super().__init__()
        self.schema_id = schema_id


class Question(NamedTuple):
    """Whether data fits a schema; `indexes` say which message of a Protobuf file it is."""

    schema_id: int
    indexes: tuple[int, ...]
    payload: bytes


class Apart(Exception):
    """Checking may take long: the answer is to be found elsewhere."""

    def __init__(self, question: Question) -> None:
        super().__init__()
        self.question = question


class MessageCheck:
    """Made for one batch: while it is at work the registry stands still, so what it learns stays true."""

    def __init__(self, registry: Registry, checkers: Checkers, topic: str, settings: TopicSettings) -> None:
        self._registry = registry
        self._checkers = checkers
        self._topic = topic
        self._is_full = settings.schema_validation is SchemaValidation.FULL
        self._strategy = settings.schema_subject_strategy
        is_value_watched = is_key_watched = True
        if registry.settings.has_switches and self._strategy is SubjectStrategy.TOPIC_NAME:
            is_value_watched = registry.settings.is_validating(*self._subjects(_VALUE, None))
            is_key_watched = registry.settings.is_validating(*self._subjects(_KEY, None))
        self._is_value_watched, self._is_key_watched = is_value_watched, is_key_watched
        self.answers: dict[Question, str | None] = {}
        """What was found out elsewhere."""
        self._ready: dict[int, Checker | str] = {}
        self._judged: dict[tuple[str, int, tuple[int, ...]], Content | str] = {}
        self._by_prefix: dict[bytes, Content] = {}
        """The same by the bytes in front of values: most messages of a batch have the same."""

    def problems(self, messages: Iterable[Message | StoredMessage]) -> dict[int, str]:
        """What is wrong with the messages that do not fit, by their indexes."""
        found: dict[int, str] = {}
        problem_of, named_before = self.problem, self._by_prefix
        is_id_enough = not self._is_full
        for index, message in enumerate(messages):
            value, key, headers = message.value, message.key, message.headers
            if (
                is_id_enough
                and key is None
                and not headers
                and value
                and value[:PREFIX_BYTES] in named_before
            ):
                continue  # it names the schema that one before it has named, and no more is asked
            problem = problem_of(value, key, headers)
            if problem is not None:
                found[index] = problem
        return found

    def problem(self, value: bytes | None, key: bytes | None, headers: Headers) -> str | None:
        """What is wrong with a message, and where; None when nothing is."""
        if value is not None and self._is_value_watched:
            named = None
            if headers:
                named = named_in_header(value, headers) or self._named_by_guid(_VALUE, value, headers)
            usual = self._by_prefix.get(value[:PREFIX_BYTES]) if named is None else None
            if usual is not None:
                text = None
                if self._is_full:
                    # Not through `_misfit`: this is done for every message.
                    try:
                        text = usual.misfit(value[PREFIX_BYTES:])
                    except TooMuch:
                        text = self._answered(usual, value[PREFIX_BYTES:])
            elif (named := named or named_in_front(value)) is not None:
                text = self._problem(_VALUE, named)
            else:
                text = self._problem_of_unnamed(value)
            if text is not None:
                return _told(_VALUE, text)
        if key is not None and self._is_key_watched and (named := self._named_key(key, headers)) is not None:
            text = self._problem(_KEY, named)
            if text is not None:
                return _told(_KEY, text)
        return None

    def _named_key(self, key: bytes, headers: Headers) -> Named | None:
        """What a key says of its schema, if it means to."""
        if headers and (named := self._named_by_guid(_KEY, key, headers)) is not None:
            return named
        prefixed = named_in_front(key)
        return prefixed if prefixed is not None and self._is_meant(prefixed) else None

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
            self._ready[_NO_ID] = str(error)
        return Named(schema_id, rest + data, is_prefixed=True)

    def _problem(self, part: str, named: Named) -> str | None:
        schema_id, payload, is_prefixed = named
        checker = self._checker(schema_id)
        if isinstance(checker, str):
            return checker
        indexes: tuple[int, ...] = FIRST_MESSAGE
        if is_prefixed and checker.kind is SchemaKind.PROTOBUF:
            found = read_indexes(payload)
            if found is None:
                return f"it does not say which message of schema {schema_id} it is"
            indexes, payload = found
        judged = self._judged.get((part, schema_id, indexes))
        if judged is None:
            judged = self._judge(part, schema_id, checker, indexes)
            self._judged[part, schema_id, indexes] = judged
        if isinstance(judged, str):
            return judged
        if is_prefixed and part == _VALUE and checker.kind is not SchemaKind.PROTOBUF:
            self._by_prefix[prefix_of(schema_id)] = judged
        if not self._is_full:
            return None
        try:
            return judged.misfit(payload)
        except TooMuch:
            return self._answered(judged, payload)

    def _problem_of_unnamed(self, value: bytes) -> str | None:
        """Data that names no schema. Where there is one for the whole topic, a text may be checked by it."""
        missing = "it carries no schema id"
        if not self._is_full or self._strategy is not SubjectStrategy.TOPIC_NAME:
            return missing
        subjects = self._subjects(_VALUE, None)
        latest = next(filter(None, map(self._registry.latest_id, subjects)), None)
        if latest is None:
            return f"no schema is registered under {' or '.join(subjects)}"
        checker = self._checker(latest)
        if isinstance(checker, str):
            return checker
        content = checker.content()
        if checker.kind is not SchemaKind.JSON or content is None:
            return f"{missing}, as data of a schema of kind {checker.kind.value} must"
        return self._misfit(content, value)

    def _is_meant(self, named: Named) -> bool:
        """Whether a key that looks as if it named a schema does: plain numbers look so too."""
        if self._strategy is SubjectStrategy.TOPIC_NAME:
            [subject] = self._subjects(_KEY, None)
            return self._registry.latest_id(subject) is not None
        return not isinstance(self._checker(named.schema_id), str)

    def know(self, schema_id: int, checker: Checker | str) -> None:
        """A schema was made ready, or never will be."""
        self._ready[schema_id] = checker

    @property
    def used(self) -> list[int]:
        """The schemas that data was checked against."""
        return [schema_id for schema_id, each in self._ready.items() if isinstance(each, Checker)]

    def _misfit(self, content: Content, payload: bytes) -> str | None:
        try:
            return content.misfit(payload)
        except TooMuch:
            return self._answered(content, payload)

    def _answered(self, content: Content, payload: bytes) -> str | None:
        question = Question(content.schema_id, content.indexes, payload)
        if question not in self.answers:
            raise Apart(question) from None
        return self.answers[question]

    def _checker(self, schema_id: int) -> Checker | str:
        known = self._ready.get(schema_id)
        if known is None:
            try:
                self._registry.schema(schema_id)
            except SchemaNotFound as error:
                known = str(error)
            else:
                known = self._checkers.get(schema_id)
                if known is None:
                    raise NotReady(schema_id)
            self._ready[schema_id] = known
        return known

    def _judge(self, part: str, schema_id: int, checker: Checker, indexes: tuple[int, ...]) -> Content | str:
        """What data under an id must be like; or why the id does not count here."""
        content = checker.content(indexes)
        if content is None:
            return f"schema {schema_id} has no message {list(indexes)}"
        subjects = self._subjects(part, content.record_name)
        if not subjects:
            return f"schema {schema_id} has no name for data of it, which the topic's subjects go by"
        if not any(self._registry.stands_in(subject, schema_id) for subject in subjects):
            return f"schema {schema_id} does not stand in subject {' or '.join(subjects)}"
        return content if self._registry.settings.is_validating(*subjects) else content.unwatched()

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


def _told(part: str, text: str) -> str:
    told = f"{part}: {text}"[:_TEXT_MAX]
    return TooSlow(told) if isinstance(text, TooSlow) else told
