"""A pipeline from its file. All problems are told at once, each with its line, before Spark is started."""

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeVar

from goqueue.client.addresses import parse_addresses
from goqueue.model.errors import Invalid
from goqueue.spark.lake.options import LAKE_OPTIONS, LakeFormat, lake_options
from goqueue.spark.options.kafka import KAFKA_OPTIONS
from goqueue.spark.options.locks import LOCK_OPTIONS
from goqueue.spark.options.values import InvalidOptions
from goqueue.spark.pipelines.json_schema import JsonColumns, read_json_schema
from goqueue.spark.pipelines.parsing_steps import read_steps
from goqueue.spark.pipelines.spec import ERRORS, SOURCE, Errors, Pipeline, Sink, SinkFormat, Source, Step
from goqueue.spark.pipelines.triggers import CONTINUOUS, Trigger, parse_trigger
from goqueue.spark.pipelines.yaml_nodes import START, InvalidPipeline, Problem, Section, read_root
from goqueue.spark.sink.options import SINK_OPTIONS, sink_options
from goqueue.spark.sink.schema import COLUMNS
from goqueue.spark.source.options import OPTIONS, source_options

KEYS = ("name", "bootstrap", *LOCK_OPTIONS, "source", "steps", "sinks", "errors", "trigger", "warehouse")
_SOURCE_OPTIONS = (*OPTIONS, *(option.name for option in KAFKA_OPTIONS))
COLUMN_KEYS = tuple(name for name in COLUMNS if name != "topic")
_TOPIC_OPTIONS = tuple(name for name in SINK_OPTIONS if name != "writeId")
_TABLE_OPTIONS = tuple(name for name in LAKE_OPTIONS if name not in ("writeId", "tableFormat"))
TOPIC_KEYS = ("id", "where", "trigger", *COLUMN_KEYS, *_TOPIC_OPTIONS)
TABLE_KEYS = ("id", "where", "trigger", "columns", "format", *_TABLE_OPTIONS)
ERRORS_KEYS = ("when", "after", "reason", "key", "value", "trigger", *_TOPIC_OPTIONS)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_FORMATS = tuple(LakeFormat)
Value = TypeVar("Value")


def read_pipeline(path: Path, *, bootstrap: str) -> Pipeline:
    """The pipeline of a file; `bootstrap` is the broker for what names none. InvalidPipeline tells all."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidPipeline(path, [Problem(START, f"the file cannot be read: {error}")]) from error
    problems: list[Problem] = []
    root = read_root(text, problems)
    pipeline = None if root is None else _Reader(root, path, bootstrap).pipeline()
    if problems or pipeline is None:
        raise InvalidPipeline(path, problems)
    return pipeline


def checked_name(text: str) -> str:
    """A name that can be the name of a folder too."""
    if not _NAME.fullmatch(text):
        raise Invalid(f"{text!r} is not a name of letters, digits, '.', '_' and '-', at most 100")
    return text


def _checked_addresses(text: str) -> str:
    parse_addresses(text)
    return text


class _Reader:
    """One reading of one file."""

    def __init__(self, root: Section, path: Path, bootstrap: str) -> None:
        self._root = root
        self._path = path
        where = _checked(root, "bootstrap", _checked_addresses, root.text("bootstrap"), bootstrap)
        self._door = {"bootstrap": where, **_given(root, LOCK_OPTIONS)}
        """Of the broker, for what names no other."""

    def pipeline(self) -> Pipeline:
        root = self._root
        root.refuse_unknown(KEYS)
        name = root.required_text("name", "its checkpoints and its status are kept under it")
        if name:
            _checked(root, "name", checked_name, name, "")
        trigger = _checked(root, "trigger", parse_trigger, root.text("trigger"), CONTINUOUS)
        source = self._source()
        steps = read_steps(root.sections("steps"), folder=self._path.parent)
        sinks = tuple(self._sinks(trigger))
        return Pipeline(
            name=name,
            path=self._path,
            source=source,
            steps=steps,
            sinks=sinks,
            errors=self._errors(source, steps, trigger),
        )

    def _source(self) -> Source:
        section = self._root.section("source")
        if section is None:
            if not self._root.has("source"):
                self._root.refuse("source", "a pipeline needs source: the topic that is read")
            return Source(options={}, position=self._root.position)
        section.refuse_unknown((*_SOURCE_OPTIONS, "schema"))
        options = self._options(section, _SOURCE_OPTIONS)
        _check_options(section, options, lambda given: source_options(given, is_streaming=True))
        json = None
        if schema := section.text("schema"):
            json = _checked(section, "schema", self._json, schema, None)
        return Source(options=options, json=json, position=section.position)

    def _json(self, file_name: str) -> JsonColumns:
        return read_json_schema(self._path.parent / file_name)

    def _sinks(self, trigger: Trigger) -> Iterable[Sink]:
        sections = self._root.sections("sinks")
        if not self._root.has("sinks"):
            self._root.refuse("sinks", "a pipeline needs sinks: the topics and tables where its rows go")
        seen: set[str] = set()
        for section in sections:
            is_topic, is_table = section.has("topic"), section.has("table") or section.has("format")
            if is_topic == is_table:
                section.refuse("", f"{section.name} needs either a topic, or a table and its format")
                continue
            sink = self._topic_sink(section, trigger) if is_topic else self._table_sink(section, trigger)
            if sink.id in seen:
                section.refuse("id", f"there are two sinks {sink.id}: give each an id of its own")
            if sink.id == ERRORS:
                section.refuse("id", f"the id {ERRORS} is taken by the dead letters")
            seen.add(sink.id)
            yield sink

    def _topic_sink(self, section: Section, trigger: Trigger) -> Sink:
        section.refuse_unknown(TOPIC_KEYS)
        options = self._options(section, _TOPIC_OPTIONS)
        _check_options(section, options, lambda given: sink_options(given, is_streaming=True))
        topic = section.text("topic")
        return Sink(
            id=_sink_id(section, topic),
            format=SinkFormat.TOPIC,
            target=topic,
            options=options,
            columns={name: section.text(name) for name in COLUMN_KEYS if section.has(name)},
            where=section.text("where"),
            trigger=_trigger_of(section, trigger),
            position=section.position,
        )

    def _table_sink(self, section: Section, trigger: Trigger) -> Sink:
        section.refuse_unknown(TABLE_KEYS)
        table_format = section.required_text("format", ", ".join(_FORMATS))
        options = _given(section, _TABLE_OPTIONS)
        if table_format:
            if table_format not in _FORMATS:
                section.refuse("format", f"{table_format!r} is not one of {', '.join(_FORMATS)}")
            else:
                options["tableFormat"] = table_format
        warehouse = self._root.text("warehouse") if section.has("table") else ""
        if folder := options.get("path") or warehouse:
            # Executors have working folders of their own, so what the file says is made absolute here.
            is_address = folder.startswith("file:")
            options["path"] = folder if is_address else str((self._path.parent / folder).absolute())
        _check_options(section, options, lake_options)
        target = section.text("table") or options.get("path", "")
        columns = section.section("columns")
        return Sink(
            id=_sink_id(section, section.text("table") or Path(target).name),
            format=SinkFormat.TABLE,
            target=f"{table_format} {target}",
            options=options,
            columns={name: columns.text(name) for name in columns.names()} if columns else {},
            where=section.text("where"),
            trigger=_trigger_of(section, trigger),
            position=section.position,
        )

    def _errors(self, source: Source, steps: tuple[Step, ...], trigger: Trigger) -> Errors | None:
        section = self._root.section("errors")
        if section is None:
            return None
        section.refuse_unknown(ERRORS_KEYS)
        options = self._options(section, _TOPIC_OPTIONS)
        _check_options(section, options, lambda given: sink_options(given, is_streaming=True))
        topic = section.required_text("topic", "where messages with errors go")
        when, reason = section.text("when"), section.text("reason")
        if not when and source.json is None:
            section.refuse("when", "errors needs when, a condition that is true for an error")
        after = section.text("after") or (SOURCE if source.json or not steps else _step_name(steps[0], 1))
        known = [SOURCE, *(_step_name(step, number) for number, step in enumerate(steps, 1))]
        if after not in known:
            section.refuse("after", f"there is no step {after}; there is {', '.join(known)}")
        if after == SOURCE and source.json is not None:
            when, reason = when or "body_error IS NOT NULL", reason or "body_error"
        sink = Sink(
            id=ERRORS,
            format=SinkFormat.TOPIC,
            target=topic,
            options=options,
            columns={name: section.text(name) for name in ("key", "value") if section.has(name)},
            trigger=_trigger_of(section, trigger),
            position=section.position,
        )
        return Errors(sink=sink, when=when, after=after, reason=reason or _literal(when))

    def _options(self, section: Section, known: Iterable[str]) -> dict[str, str]:
        given = _given(section, known)
        # What opens the one broker is not shown to another.
        return given if "bootstrap" in given else {**self._door, **given}


def _given(section: Section, known: Iterable[str]) -> dict[str, str]:
    return {name: section.option(name) for name in known if section.has(name)}


def _step_name(step: Step, number: int) -> str:
    return step.name or f"step{number}"


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _sink_id(section: Section, default: str) -> str:
    given = section.text("id") or default
    return _checked(section, "id", checked_name, given, given) if given else ""


def _trigger_of(section: Section, default: Trigger) -> Trigger:
    return _checked(section, "trigger", parse_trigger, section.text("trigger"), default)


def _checked(section: Section, key: str, parse: Callable[[str], Value], text: str, default: Value) -> Value:
    """A value of the section; the default, with the problem noted, where it is wrong or missing."""
    if not text:
        return default
    try:
        return parse(text)
    except Invalid as problem:
        section.refuse(key, f"{key}: {problem}")
        return default


def _check_options(
    section: Section, options: Mapping[str, str], check: Callable[[Mapping[str, str]], object]
) -> None:
    """Let the source or the sink look at its options, and place each problem at the key that it names."""
    try:
        check(options)
    except InvalidOptions as invalid:
        for text in invalid.problems:
            words = re.findall(r"[\w.]+", text)
            named = [key for key in section.names() if key in words]
            section.refuse(named[0] if named else "", text)
