"""What a pipeline is, once its file has been read and found good. Plain values, no Spark."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from goqueue.spark.pipelines.json_schema import JsonColumns
from goqueue.spark.pipelines.triggers import AVAILABLE_NOW, CONTINUOUS, Trigger
from goqueue.spark.pipelines.yaml_nodes import Position

SOURCE = "source"
ERRORS = "errors"


class SinkFormat(StrEnum):
    """Spark's name for what stands at the end."""

    TOPIC = "goqueue"
    TABLE = "goqueue-lake"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What is read."""

    options: Mapping[str, str]
    json: JsonColumns | None = None
    """How values are parsed, where the file names a JSON Schema."""
    position: Position


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlStep:
    """A query over `source`, `prev` and the named steps before it."""

    sql: str
    name: str = ""
    position: Position


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonStep:
    """A function that takes a frame and gives one: `module:function`."""

    function: str
    name: str = ""
    position: Position


@dataclass(frozen=True, slots=True, kw_only=True)
class WatermarkStep:
    """How late rows may come, by a column of times: lets windows be closed."""

    column: str
    delay: str
    name: str = ""
    position: Position


Step = SqlStep | PythonStep | WatermarkStep


@dataclass(frozen=True, slots=True, kw_only=True)
class Sink:
    """One place where rows go: one streaming query with a checkpoint of its own."""

    id: str
    format: SinkFormat
    target: str
    """The topic or the table, as people know it."""
    options: Mapping[str, str]
    columns: Mapping[str, str]
    """SQL expressions by the column they make; none: those that the rows have."""
    where: str = ""
    trigger: Trigger = CONTINUOUS
    position: Position


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """Rows that go to a dead-letter topic with the reason, and nowhere else."""

    sink: Sink
    when: str
    """A condition; a row for which it is true is an error."""
    after: str
    """The step behind which rows are looked at, or `source`."""
    reason: str
    """An SQL expression that tells why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """One file."""

    name: str
    path: Path
    source: Source
    steps: tuple[Step, ...]
    sinks: tuple[Sink, ...]
    errors: Errors | None

    @property
    def all_sinks(self) -> tuple[Sink, ...]:
        """The sinks of the file, and the one for errors."""
        return self.sinks if self.errors is None else (*self.sinks, self.errors.sink)


def once(pipeline: Pipeline) -> Pipeline:
    """The same pipeline over what is there now, whatever its triggers say."""
    errors = pipeline.errors
    return replace(
        pipeline,
        sinks=tuple(replace(sink, trigger=AVAILABLE_NOW) for sink in pipeline.sinks),
        errors=errors and replace(errors, sink=replace(errors.sink, trigger=AVAILABLE_NOW)),
    )
