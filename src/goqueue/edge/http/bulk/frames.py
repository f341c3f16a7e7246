"""Bulk reads of one partition: its frames as they lie on the disk, and where to cut it between readers.

The frames leave in the pieces that were read, without being joined: a reply is some MiB, and the one
copy that is made of it is the socket's, a share at a time.
"""

from typing import Annotated

from litestar import Request, get
from litestar.datastructures import State
from litestar.di import NamedDependency
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import PathParameter, QueryParameter
from litestar.types import ASGIApp, Receive, Scope, Send

from goqueue.broker.broker import Broker
from goqueue.broker.forwarding.at_home import at_home
from goqueue.broker.read.frames import read_frames, split_points
from goqueue.edge.http.config import HttpConfig
from goqueue.edge.http.parts.long_polls import LongPolls
from goqueue.edge.http.parts.openapi import BYTES, errors
from goqueue.edge.http.parts.paging import ABSENT, as_given
from goqueue.edge.http.parts.times import DURATION_PATTERN, parse_duration_ns
from goqueue.edge.http.transport.shares import send_body
from goqueue.model.commands import BatchesRead, ReadFrames, SplitRange
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.settings import MiB
from goqueue.wire.logs import Splits

_INT64_MAX = 2**63 - 1
_FRAMES = ResponseSpec(
    bytes,
    generate_examples=False,
    media_type=BYTES,
    description="Whole frames from the one that holds the offset on; nothing when there are none yet. "
    "Headers: x-goqueue-next-offset (read on here), x-goqueue-start-offset, x-goqueue-end-offset.",
)

_Topic = Annotated[str, PathParameter(description="The topic's name.")]
_Partition = Annotated[int, PathParameter(ge=0, le=2**31 - 1, description="The partition's number.")]


@get(
    "/topics/{topic:str}/partitions/{partition:str}/frames",
    operation_id="readFrames",
    summary="Read the log of one partition as it lies on the disk",
    tags=["bulk"],
    responses={200: _FRAMES} | errors(400, 403, 404, 429, 500, 503),
)
async def read_frames_route(
    request: Request[object, object, State],
    broker: NamedDependency[Broker],
    config: NamedDependency[HttpConfig],
    long_polls: NamedDependency[LongPolls],
    topic: _Topic,
    partition: _Partition,
    offset: Annotated[int, QueryParameter(ge=0, le=_INT64_MAX, description="Where to begin.")] = 0,
    max_bytes: Annotated[
        int,
        QueryParameter(
            ge=1, le=_INT64_MAX, description="Stop before more than this, but never before one frame."
        ),
    ] = ABSENT,
    wait: Annotated[
        str | None,
        QueryParameter(
            description="When there is nothing to read, wait for it: a duration like 5s, at most 30s.",
            schema_extra={"pattern": DURATION_PATTERN},
        ),
    ] = None,
    rack: Annotated[
        str,
        QueryParameter(
            description="Where the reader is. In a cluster the node asked answers from its own copy, if it "
            "is in that rack and the copy in sync; else the leader does."
        ),
    ] = "",
) -> ASGIApp:
    source = TopicPartition(TopicName(topic), partition)
    wait_ms = 0 if wait is None else parse_duration_ns(wait) // 1_000_000
    room_bytes = min(as_given(max_bytes) or config.read_bytes, config.read_bytes_max)
    found = await long_polls.hold(
        lambda wait_ms: at_home(
            broker,
            read_frames,
            ReadFrames(source=source, offset=offset, max_bytes=room_bytes, wait_ms=wait_ms, rack=rack),
        ),
        min(max(wait_ms, 0), config.wait_ms_max),
        request.scope,
    )
    return Frames(found)


@get(
    "/topics/{topic:str}/partitions/{partition:str}/splits",
    operation_id="splitPartition",
    summary="Offsets that cut a range of a partition into pieces of about the same size",
    tags=["bulk"],
    responses=errors(400, 404, 503),
)
async def split_route(
    broker: NamedDependency[Broker],
    topic: _Topic,
    partition: _Partition,
    from_offset: Annotated[
        int, QueryParameter(name="from", ge=0, le=_INT64_MAX, description="The range's first offset.")
    ],
    until_offset: Annotated[
        int, QueryParameter(name="until", ge=0, le=_INT64_MAX, description="The offset behind its last.")
    ],
    piece_bytes: Annotated[
        int, QueryParameter(name="bytes", ge=1, le=_INT64_MAX, description="How large a piece should be.")
    ] = 16 * MiB,
) -> Splits:
    source = TopicPartition(TopicName(topic), partition)
    return Splits(
        await at_home(
            broker,
            split_points,
            SplitRange(
                source=source, from_offset=from_offset, until_offset=until_offset, piece_bytes=piece_bytes
            ),
        )
    )


class Frames:
    """The reply: frames in the pieces that were read, and where they stand in the log."""

    def __init__(self, found: BatchesRead) -> None:
        self._pieces = found.batches
        self._headers = [
            (b"content-type", BYTES.encode()),
            (b"content-length", b"%d" % found.size),
            (b"x-goqueue-next-offset", b"%d" % found.end_offset),
            (b"x-goqueue-start-offset", b"%d" % found.start_offset),
            (b"x-goqueue-end-offset", b"%d" % found.last_stable_offset),
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self._headers})
        await send_body(send, self._pieces)


ROUTES = [read_frames_route, split_route]
