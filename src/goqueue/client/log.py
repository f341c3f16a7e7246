"""What a reader of whole logs asks a node: where partitions begin and end, and their frames, unopened."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import quote

import msgspec

from goqueue.client.connection import Client

NEXT_OFFSET = "x-goqueue-next-offset"
START_OFFSET = "x-goqueue-start-offset"
END_OFFSET = "x-goqueue-end-offset"


class Extent(msgspec.Struct, frozen=True):
    """Where a partition begins and ends, and the bytes between."""

    start: int
    end: int
    size_bytes: int = 0


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


class _ExtentsBody(msgspec.Struct):
    topics: Extents


class _OffsetsBody(msgspec.Struct):
    topics: dict[str, dict[str, int]]


class _SplitsBody(msgspec.Struct):
    offsets: list[int]


def extents(
    client: Client,
    which: Which,
    *,
    past: Mapping[str, Mapping[str, int]] | None = None,
    wait_ms: int = 0,
) -> Extents:
    """The extents of topics; with `past` and a wait, as soon as a partition ends behind its offset there."""
    body: dict[str, object] = {"topics": list(which.topics)}
    if which.pattern is not None:
        body = {"pattern": which.pattern}
    if past is not None and wait_ms:
        body |= {"past": past, "wait": f"{wait_ms}ms"}
    reply = client.request("POST", "/offsets", body=msgspec.json.encode(body))
    return msgspec.json.decode(reply.body, type=_ExtentsBody).topics


def offsets_at(client: Client, topics: Sequence[str], *, time_ms: int) -> dict[str, dict[str, int]]:
    """The first offset of that time or later in each partition; its end where there is none."""
    body = msgspec.json.encode({"topics": list(topics), "time_ms": time_ms})
    return msgspec.json.decode(
        client.request("POST", "/offsets/at", body=body).body, type=_OffsetsBody
    ).topics


def splits(
    client: Client, topic: str, partition: int, *, first_offset: int, end_offset: int, split_bytes: int
) -> list[int]:
    """Rising offsets from the first to the end, about so many bytes apart, the inner ones between batches."""
    query = {"from": first_offset, "until": end_offset, "bytes": split_bytes}
    reply = client.request("GET", f"{_path(topic, partition)}/splits", query=query)
    return msgspec.json.decode(reply.body, type=_SplitsBody).offsets


def frames(client: Client, topic: str, partition: int, *, offset: int, max_bytes: int) -> Window:
    """Frames from the one that holds an offset on; none when nothing is there yet."""
    query = {"offset": offset, "max_bytes": max_bytes}
    reply = client.request("GET", f"{_path(topic, partition)}/frames", query=query)
    return Window(
        reply.body,
        int(reply.headers[NEXT_OFFSET]),
        int(reply.headers[START_OFFSET]),
        int(reply.headers[END_OFFSET]),
    )


def _path(topic: str, partition: int) -> str:
    return f"/topics/{quote(topic, safe='')}/partitions/{partition}"
