"""POST /batches: record batches that a bulk writer built, for many partitions, in one request."""

from typing import Annotated

from litestar import Request, post
from litestar.datastructures import State
from litestar.di import NamedDependency
from litestar.params import QueryParameter

from goqueue.broker.broker import Broker
from goqueue.broker.forwarding.at_home import at_home
from goqueue.broker.write.append_entries import append_entries
from goqueue.edge.http.config import HttpConfig
from goqueue.edge.http.parts.bodies import AcksWord
from goqueue.edge.http.parts.decoding import read_buffer
from goqueue.edge.http.parts.openapi import TakingBytes, errors
from goqueue.model.commands import AppendEntries
from goqueue.model.messages import Acks
from goqueue.wire.logs import BatchPlace, BatchPlaces, LaterPlace


@post(
    "/batches",
    status_code=200,
    operation_id="appendBatches",
    summary="Store record batches in many partitions",
    description="The body is a sequence of entries, numbers big-endian: uint16 length of the topic's name, "
    "the name, int32 partition, uint8 lane, uint32 size, and so many bytes of one record batch of format v2. "
    "All are checked before the first is stored: a bad one refuses the whole request.",
    tags=["bulk"],
    operation_class=TakingBytes,
    responses=errors(400, 403, 404, 413, 429, 503, 507),
)
async def append_batches_route(
    request: Request[object, object, State],
    broker: NamedDependency[Broker],
    config: NamedDependency[HttpConfig],
    acks: Annotated[
        AcksWord, QueryParameter(description="What to wait for: nothing, the OS, or the disk.")
    ] = "all",
) -> BatchPlaces:
    body = await read_buffer(request.scope, request.receive, config.body_bytes)
    command = AppendEntries(entries=memoryview(body), acks=Acks(acks))
    placed = await at_home(broker, append_entries, command)
    return BatchPlaces(
        sum(place.message_count for place in placed),
        [
            BatchPlace(
                *place.target,
                place.base_offset,
                place.message_count,
                [LaterPlace(*later) for later in place.later],
                dict(place.quarantined),
            )
            for place in placed
        ],
    )


ROUTES = [append_batches_route]
