"""What a query was made of when its checkpoint was begun, and what has changed since.

A checkpoint knows positions and state, not the query. Going on from it with another source or another target
would lose rows or mix them up without a word, so the parts of the query are kept beside it and compared.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from goqueue.spark.pipelines.parsing_steps import find_module
from goqueue.spark.pipelines.spec import Pipeline, PythonStep, Sink, SqlStep, Step

FILE_NAME = "goqueue-spec.json"
_WHICH = ("topic", "topics", "topicPattern", "assign", "subscribe", "subscribePattern")
_WHERE = ("topic", "table", "path", "tableFormat", "catalog")
TOPICS, START, STEPS, TARGET, SINK_ID = "source topics", "source start", "steps", "target", "sinkId"
_NEVER = frozenset({TOPICS, TARGET, SINK_ID})
"""Parts that a checkpoint cannot survive a change of."""
_NOT_WITH_STATE = frozenset({STEPS})
"""Parts that may change as long as Spark keeps nothing but positions."""


class Fingerprint(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a query, and one hash over all of them."""

    hash: str
    parts: dict[str, str]


_decoder = msgspec.json.Decoder(Fingerprint)


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What is different from the last time."""

    names: tuple[str, ...]
    refused: tuple[str, ...]
    """Those of them with which the checkpoint cannot be gone on from."""


def fingerprint(pipeline: Pipeline, sink: Sink) -> Fingerprint:
    """The parts of one sink's query."""
    source = dict(pipeline.source.options)
    start = {name: source.pop(name) for name in list(source) if name.lower().startswith("starting")}
    which = {name: source.pop(name) for name in _WHICH if name in source}
    steps = [_step_text(step, pipeline.path.parent) for step in pipeline.steps]
    if pipeline.source.json is not None:
        steps.insert(0, f"json: {pipeline.source.json.ddl} {pipeline.source.json.required}")
    if pipeline.errors is not None:
        steps.append(f"errors after {pipeline.errors.after}: {pipeline.errors.when}")
    options = dict(sink.options)
    target = {name: options.pop(name) for name in _WHERE if name in options}
    parts = {
        TOPICS: _text(which),
        START: _text(start),
        "source options": _text(source),
        STEPS: "\n".join(steps),
        TARGET: _text(target),
        SINK_ID: options.pop("sinkId", ""),
        "columns": _text(sink.columns),
        "where": sink.where,
        "sink options": _text(options),
        "trigger": str(sink.trigger),
    }
    return Fingerprint(hash=hashlib.sha256(_text(parts).encode()).hexdigest(), parts=parts)


def changes(before: Fingerprint, now: Fingerprint, *, has_state: bool) -> Changes:
    """What is different, and what of it forbids to go on. `has_state`: Spark keeps windows, joins or sets."""
    names = tuple(name for name, text in now.parts.items() if before.parts.get(name) != text)
    forbidden = _NEVER | _NOT_WITH_STATE if has_state else _NEVER
    return Changes(names=names, refused=tuple(name for name in names if name in forbidden))


def read_fingerprint(checkpoint: Path) -> Fingerprint | None:
    """The parts as they were when the checkpoint was last used; None for a new one."""
    try:
        return _decoder.decode((checkpoint / FILE_NAME).read_bytes())
    except FileNotFoundError:
        return None


def write_fingerprint(checkpoint: Path, now: Fingerprint) -> None:
    checkpoint.mkdir(parents=True, exist_ok=True)
    draft = checkpoint / f".{FILE_NAME}"
    draft.write_bytes(msgspec.json.format(msgspec.json.encode(now), indent=2))
    draft.replace(checkpoint / FILE_NAME)


def _step_text(step: Step, folder: Path) -> str:
    if isinstance(step, SqlStep):
        return f"sql: {' '.join(step.sql.split())}"
    if isinstance(step, PythonStep):
        return f"python: {step.function} {_digest(step.function.partition(':')[0], folder)}"
    return f"watermark: {step.column} {step.delay}"


def _digest(module: str, folder: Path) -> str:
    """A mark of the module's text, so that a changed function is a changed step."""
    found = find_module(module, folder)
    if found is None or found.origin is None or not found.origin.endswith(".py"):
        return ""
    return hashlib.sha256(Path(found.origin).read_bytes()).hexdigest()[:16]


def _text(value: Mapping[str, str]) -> str:
    return msgspec.json.encode(value, order="sorted").decode()
