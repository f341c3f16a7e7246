"""From a pipeline to frames: the source, the steps one behind the other, and what each sink gets.

Each sink's frame is built by itself, from the source on, in a session of its own: same Spark, same settings,
no views in common. Frames that share a part may not be run side by side: Spark's planner leaves marks in the
plan it is given, and a query that sends its tasks off at that moment fails. Nothing is read while building.
"""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pyspark.errors import PySparkException
from pyspark.sql import functions as f

from goqueue.model.errors import Invalid
from goqueue.spark.pipelines.json_schema import CORRUPT, JsonColumns
from goqueue.spark.pipelines.parsing_steps import find_module
from goqueue.spark.pipelines.reporting import short_error
from goqueue.spark.pipelines.spec import (
    ERRORS,
    SOURCE,
    Errors,
    Pipeline,
    PythonStep,
    Sink,
    SinkFormat,
    SqlStep,
    Step,
)
from goqueue.spark.pipelines.yaml_nodes import InvalidPipeline, Position, Problem
from goqueue.spark.sink.schema import check_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PREVIOUS = "prev"
_BODY, _BODY_ERROR = "body", "body_error"
_HEADERS = "array<struct<key:string,value:binary>>"
_STORY_PREFIX = "goqueue-dlq-"
_ORIGIN = ("topic", "partition", "offset")
"""Columns of the source that tell where a dead letter comes from."""


class Built(NamedTuple):
    """The rows of one sink."""

    sink: Sink
    frame: "DataFrame"


def build(pipeline: Pipeline, spark: "SparkSession") -> list[Built]:
    """The frame of each sink; InvalidPipeline tells what Spark does not understand, and where it stands."""
    built: list[Built] = []
    problems: set[Problem] = set()
    for sink in pipeline.all_sinks:
        try:
            built.append(Built(sink, _Builder(pipeline, spark.newSession()).frame_for(sink)))
        except InvalidPipeline as invalid:
            problems |= set(invalid.problems)
    if problems:
        raise InvalidPipeline(pipeline.path, list(problems))
    return built


class _Builder:
    def __init__(self, pipeline: Pipeline, session: "SparkSession") -> None:
        self._pipeline = pipeline
        self._session = session
        self._dead: DataFrame | None = None

    def frame_for(self, sink: Sink) -> "DataFrame":
        with self._at(self._pipeline.source.position):
            frame = self._source(sink)
        frame = self._parted(frame, SOURCE)
        for number, step in enumerate(self._pipeline.steps, start=1):
            frame.createOrReplaceTempView(PREVIOUS)
            with self._at(step.position):
                frame = self._step(step, frame)
            frame = self._parted(frame, step.name or f"step{number}")
        if sink.id == ERRORS:
            assert self._dead is not None, "the step that errors are looked for behind is not there"
            return self._dead
        with self._at(sink.position):
            return self._rows_for(sink, frame)

    def _source(self, sink: Sink) -> "DataFrame":
        source = self._pipeline.source
        options = dict(source.options)
        if group := options.get("group"):
            # Each sink reads at its own pace, so each has a group of its own.
            options["group"] = f"{group}.{sink.id}"
        frame = self._session.readStream.format("goqueue").options(**options).load()
        return frame if source.json is None else _with_body(frame, source.json)

    def _step(self, step: Step, frame: "DataFrame") -> "DataFrame":
        if isinstance(step, SqlStep):
            return self._session.sql(step.sql)
        if isinstance(step, PythonStep):
            return self._call(step, frame)
        return frame.withWatermark(step.column, step.delay)

    def _call(self, step: PythonStep, frame: "DataFrame") -> "DataFrame":
        module_name, _, function_name = step.function.partition(":")
        folder = self._pipeline.path.parent
        found = find_module(module_name, folder)
        if found is not None and found.origin and Path(found.origin).parent == folder.absolute():
            # What lies beside the file is on no path of Python's, neither here nor on the executors.
            if str(folder.absolute()) not in sys.path:
                sys.path.append(str(folder.absolute()))
            self._session.sparkContext.addPyFile(found.origin)
        function = getattr(importlib.import_module(module_name), function_name)
        made: DataFrame = function(frame)
        return made

    def _parted(self, frame: "DataFrame", name: str) -> "DataFrame":
        """The rows without errors, under the step's name; those with errors are set aside."""
        errors = self._pipeline.errors
        if errors is not None and errors.after == name:
            with self._at(errors.sink.position):
                is_error = f.expr(f"coalesce(({errors.when}), false)")
                self._dead = _dead_letters(frame.where(is_error), errors, self._pipeline.name)
                frame = frame.where(~is_error)
        frame.createOrReplaceTempView(name)
        return frame

    def _rows_for(self, sink: Sink, frame: "DataFrame") -> "DataFrame":
        rows = frame.where(sink.where) if sink.where else frame
        is_topic = sink.format is SinkFormat.TOPIC
        columns = {**_topic_defaults(rows), **sink.columns} if is_topic else sink.columns
        if columns:
            rows = rows.select(*(f.expr(text).alias(name) for name, text in columns.items()))
        if is_topic:
            check_schema(rows.schema, topic=sink.target)
        return rows

    @contextmanager
    def _at(self, position: Position) -> Iterator[None]:
        """Tell what goes wrong with the place in the file that it comes from."""
        try:
            yield
        except PySparkException as error:
            text = short_error(str(error))
        except Invalid as error:
            text = str(error)
        except Exception as error:  # A function of the user's may raise anything: it is theirs to mend.
            text = f"{type(error).__name__}: {error}"
        else:
            return
        raise InvalidPipeline(self._pipeline.path, [Problem(position, text)])


def _with_body(frame: "DataFrame", json: JsonColumns) -> "DataFrame":
    """The source with its values parsed: `body`, and in `body_error` what is wrong with one."""
    parsed = f.from_json(
        f.col("value").cast("string"),
        f"{json.ddl}, `{CORRUPT}` STRING",
        {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT},
    )
    frame = frame.withColumn(_BODY, parsed)
    body = f.col(_BODY)
    problem = f.when(f.col("value").isNull(), f.lit("the message has no value")).when(
        body.isNull() | body[CORRUPT].isNotNull(), f.lit(f"the value is not JSON as {json.file_name} says")
    )
    for path in json.required:
        field, parent = body, body
        for name in path:
            field, parent = field[name], field
        problem = problem.when(parent.isNotNull() & field.isNull(), f.lit(f"{'.'.join(path)} is missing"))
    return frame.withColumn(_BODY_ERROR, problem).withColumn(_BODY, body.dropFields(f"`{CORRUPT}`"))


def _topic_defaults(rows: "DataFrame") -> dict[str, str]:
    """What a topic gets where the file does not say: key and value if there are such columns, else JSON."""
    defaults = {"key": "key"} if "key" in rows.columns else {}
    return {**defaults, "value": "value" if "value" in rows.columns else "to_json(struct(*))"}


def _dead_letters(rows: "DataFrame", errors: Errors, pipeline_name: str) -> "DataFrame":
    """Messages as they came, where their columns are still there, with the story of a dead letter in headers.

    The names and words are those of the broker's own dead letters, so that whatever shows them and sends them
    back knows these too: rejected, by a group that is the pipeline.
    """
    facts = {f"original-{name}": f.col(name) for name in _ORIGIN if name in rows.columns}
    if "timestamp" in rows.columns:
        facts["original-timestamp"] = f.unix_millis("timestamp")
    facts |= {
        "reason": f.lit("REJECTED"),
        "group": f.lit(pipeline_name),
        "error": f.expr(errors.reason),
        "time": f.unix_millis(f.current_timestamp()),
    }
    story = f.array(
        *(
            f.struct(
                f.lit(_STORY_PREFIX + name).alias("key"), text.cast("string").cast("binary").alias("value")
            )
            for name, text in facts.items()
        )
    ).cast(_HEADERS)
    if "headers" in rows.columns:
        # A message that died before tells its newest story only, and how often it was sent back.
        own = f.expr(
            f"filter(coalesce(headers, array()), header -> header.key = '{_STORY_PREFIX}redrives' "
            f"OR NOT startswith(header.key, '{_STORY_PREFIX}'))"
        )
        story = f.concat(own.cast(_HEADERS), story)
    columns = {**_topic_defaults(rows), **errors.sink.columns}
    return rows.select(*(f.expr(text).alias(name) for name, text in columns.items()), story.alias("headers"))
