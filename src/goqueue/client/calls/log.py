"""Whole logs: where partitions begin and end, and their frames, unopened."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from goqueue.client.call import Call, Reply, json_of, path
from goqueue.wire import logs
from goqueue.wire.logs import Extent as Extent

NEXT_OFFSET = "x-goqueue-next-offset"
START_OFFSET = "x-goqueue-start-offset"
END_OFFSET = "x-goqueue-end-offset"


Extents = dict[str, dict[str, Extent]]
"""By topic and by partition number in text, as JSON has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Which:
    """Topics by name, or by a pattern that must match the whole name."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None


class Window(NamedTuple):
    """Whole frames as they lie in the log."""

    frames: bytes | memoryview
    next_offset: int
    """Read on here."""
    start_offset: int
    end_offset: int


def extents(
    which: Which, *, past: Mapping[str, Mapping[str, int]] | None = None, wait_ms: int = 0
) -> Call[Extents]:
    """The extents of topics; with `past` and a wait, as soon as a partition ends behind its offset there."""
    body: dict[str, object] = {"topics": list(which.topics)}
    if which.pattern is not None:
        body = {"pattern": which.pattern}
    if past is not None and wait_ms:
        body |= {"past": past, "wait": f"{wait_ms}ms"}
    decode = json_of(logs.Extents)
    return Call(
        method="POST",
        path="/offsets",
        decode=lambda reply: decode(reply).topics,
        body=msgspec.json.encode(body),
        wait_ms=wait_ms,
    )


def offsets_at(topics: Sequence[str], *, time_ms: int) -> Call[dict[str, dict[str, int]]]:
    """The first offset of that time or later in each partition; its end where there is none."""
    decode = json_of(logs.OffsetsAt)
    return Call(
        method="POST",
        path="/offsets/at",
        decode=lambda reply: decode(reply).topics,
        body=msgspec.json.encode({"topics": list(topics), "time_ms": time_ms}),
    )


def splits(
    topic: str, partition: int, *, first_offset: int, end_offset: int, split_bytes: int
) -> Call[list[int]]:
    """Rising offsets from the first to the end, about so many bytes apart, the inner ones between batches."""
    decode = json_of(logs.Splits)
    return Call(
        method="GET",
        path=path("topics", topic, "partitions", partition, "splits"),
        decode=lambda reply: decode(reply).offsets,
        query={"from": first_offset, "until": end_offset, "bytes": split_bytes},
    )


def frames(topic: str, partition: int, *, offset: int, max_bytes: int, rack: str = "") -> Call[Window]:
    """Frames from the one that holds an offset on; none when nothing is there yet.

    `rack`: where the reader is. The node asked serves it by its own copy, if it is there too and has these.
    """
    near = {"rack": rack} if rack else {}
    return Call(
        method="GET",
        path=path("topics", topic, "partitions", partition, "frames"),
        decode=_window,
        query={"offset": offset, "max_bytes": max_bytes, **near},
    )


def _window(reply: Reply) -> Window:
    # What is not there is "" and no number: one form's headers would give None, the other's raise.
    following, start, end = (
        int(reply.headers.get(name, "")) for name in (NEXT_OFFSET, START_OFFSET, END_OFFSET)
    )
    return Window(reply.body, following, start, end)
