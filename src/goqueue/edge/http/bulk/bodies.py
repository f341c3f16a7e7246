"""The JSON of the routes for bulk readers and writers: offsets, splits, batches and sinks."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from goqueue.edge.http.parts.times import DURATION_PATTERN
from goqueue.wire.pages import Next

_INT64_MAX = 2**63 - 1
_TOPICS_MAX = 10_000
_STAGES_MAX = 100_000

Offset = Annotated[int, Meta(ge=-1, le=_INT64_MAX)]


class WatchOffsetsBody(Struct):
    """Topics by name, by a pattern, or both."""

    topics: Annotated[list[str], Meta(max_length=_TOPICS_MAX)] | None = None
    pattern: (
        Annotated[str, Meta(max_length=1_000, description="A regular expression for whole names.")] | None
    ) = None
    past: (
        Annotated[
            dict[str, dict[str, Offset]],
            Meta(description='End offsets that are known: {"orders": {"0": 12}}. See `wait`.'),
        ]
        | None
    ) = None
    wait: (
        Annotated[
            str,
            Meta(
                description="With `past`: wait this long, at most 30s, for a partition to end behind it.",
                extra_json_schema={"pattern": DURATION_PATTERN},
            ),
        ]
        | None
    ) = None


class OffsetsAtBody(Struct):
    topics: Annotated[list[str], Meta(max_length=_TOPICS_MAX)]
    time_ms: Annotated[int, Meta(ge=-_INT64_MAX // 1_000_000, le=_INT64_MAX // 1_000_000)]


class GenerationReply(Struct):
    """`last_epoch` is the last one committed, -1 when there is none.

    `markers`: each epoch takes an offset more in the partitions it goes to, as it does in a cluster.
    """

    sink: str
    generation: int
    last_epoch: int
    markers: bool = False


class StageReply(Struct):
    stage: str
    messages: int
    bytes: int


class EndEpochBody(Struct):
    """Stages of one epoch of a sink, by the ids that their tasks chose."""

    epoch: Annotated[int, Meta(ge=0, le=_INT64_MAX)]
    generation: Annotated[int, Meta(ge=0, le=_INT64_MAX)]
    stages: Annotated[list[str], Meta(max_length=_STAGES_MAX)]


class CommitReply(Struct):
    """`duplicate`: the epoch was committed before, and nothing happened now."""

    epoch: int
    duplicate: bool
    messages: int


class AbortReply(Struct):
    aborted: Annotated[int, Meta(description="How many stages were dropped.")]


class SinkList(Struct, omit_defaults=True):
    sinks: list[str]
    next: Next = None


class StageBody(Struct):
    """A stage that waits for a commit."""

    epoch: int
    stage: str
    messages: int
    bytes: int


class SinkBody(Struct):
    sink: str
    generation: int
    last_epoch: int
    stages: list[StageBody]


class SinkForgotten(Struct):
    sink: str
    deleted: Literal[True] = True
