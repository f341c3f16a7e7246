"""POST /offsets and /offsets/at: where the partitions of many topics begin, end, and were at a time."""

from typing import TypeVar

import msgspec
from litestar import Request, post
from litestar.datastructures import State
from litestar.di import NamedDependency
from litestar.params import RawBody

from goqueue.broker.broker import Broker
from goqueue.broker.forwarding.at_home import at_home
from goqueue.broker.read.frames import offsets_at, watch_offsets
from goqueue.edge.http.bulk.bodies import OffsetsAtBody, WatchOffsetsBody
from goqueue.edge.http.config import HttpConfig
from goqueue.edge.http.parts.decoding import decode
from goqueue.edge.http.parts.long_polls import LongPolls
from goqueue.edge.http.parts.openapi import errors, takes
from goqueue.edge.http.parts.times import parse_duration_ns
from goqueue.model.commands import FindOffsets, WatchOffsets
from goqueue.model.errors import Invalid
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.wire.logs import Extent, Extents, OffsetsAt

_watch_decoder = msgspec.json.Decoder(WatchOffsetsBody)
_at_decoder = msgspec.json.Decoder(OffsetsAtBody)
_PARTITION_DIGITS_MAX = 10
T = TypeVar("T")


@post(
    "/offsets",
    status_code=200,
    operation_id="watchOffsets",
    summary="Where partitions begin and end; waits for more on request",
    tags=["bulk"],
    operation_class=takes(WatchOffsetsBody),
    responses=errors(400, 404, 413, 503),
)
async def watch_offsets_route(
    request: Request[object, object, State],
    broker: NamedDependency[Broker],
    config: NamedDependency[HttpConfig],
    long_polls: NamedDependency[LongPolls],
    body: RawBody,
) -> Extents:
    asked = decode(_watch_decoder, body)
    if asked.topics is None and asked.pattern is None:
        raise Invalid("say which topics: give topics, or a pattern")
    past = None if asked.past is None else _past_of(asked.past)
    wait_ms = 0 if asked.wait is None else parse_duration_ns(asked.wait) // 1_000_000
    if past is None:
        wait_ms = 0
    ranges = await long_polls.hold(
        lambda wait_ms: at_home(
            broker,
            watch_offsets,
            WatchOffsets(topics=asked.topics or (), pattern=asked.pattern, past=past or {}, wait_ms=wait_ms),
        ),
        min(max(wait_ms, 0), config.wait_ms_max),
        request.scope,
    )
    return Extents(_by_topic({at: Extent(*found) for at, found in ranges.items()}))


@post(
    "/offsets/at",
    status_code=200,
    operation_id="offsetsAt",
    summary="The first offsets of a time or later",
    tags=["bulk"],
    operation_class=takes(OffsetsAtBody),
    responses=errors(400, 404, 413, 500, 503),
)
async def offsets_at_route(broker: NamedDependency[Broker], body: RawBody) -> OffsetsAt:
    asked = decode(_at_decoder, body)
    return OffsetsAt(
        _by_topic(
            await at_home(
                broker,
                offsets_at,
                FindOffsets(topics=list(dict.fromkeys(asked.topics)), time_ms=asked.time_ms),
            )
        )
    )


def _past_of(given: dict[str, dict[str, int]]) -> dict[TopicPartition, int]:
    return {
        TopicPartition(TopicName(topic), _number_of(partition)): offset
        for topic, offsets in given.items()
        for partition, offset in offsets.items()
    }


def _number_of(partition: str) -> int:
    if not (partition.isascii() and partition.isdigit() and len(partition) <= _PARTITION_DIGITS_MAX):
        raise Invalid(f"{partition[:_PARTITION_DIGITS_MAX]!r} in past is not the number of a partition")
    return int(partition)


def _by_topic(found: dict[TopicPartition, T]) -> dict[str, dict[str, T]]:
    topics: dict[str, dict[str, T]] = {}
    for (topic, partition), value in found.items():
        topics.setdefault(topic, {})[str(partition)] = value
    return topics


ROUTES = [watch_offsets_route, offsets_at_route]
