"""Damaged partitions over HTTP: go on without what is lost, on the word of an operator."""

from typing import Annotated

import msgspec
from litestar import post
from litestar.di import NamedDependency
from litestar.params import PathParameter, RawBody
from msgspec import Meta, Struct

from goqueue.broker.broker import Broker
from goqueue.broker.forwarding.at_home import at_home
from goqueue.broker.health.damage import accept_loss
from goqueue.edge.http.parts.decoding import decode_if_any
from goqueue.edge.http.parts.openapi import errors, takes
from goqueue.edge.http.topics.routes import TopicInPath
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.topics import AcceptLoss
from goqueue.wire.topics import LossAccepted

_OFFSET_MAX = 2**62


class AcceptLossBody(Struct):
    """Where a damaged partition is to go on."""

    end_offset: Annotated[
        int,
        Meta(
            ge=0, le=_OFFSET_MAX, description="At least here; never before an offset it is known to have had."
        ),
    ] = 0


_decoder = msgspec.json.Decoder(AcceptLossBody)


@post(
    "/admin/topics/{topic:str}/partitions/{partition:int}/accept-loss",
    status_code=200,
    operation_id="acceptLoss",
    summary="Let a damaged partition go on without what it has lost",
    description="Nothing is deleted. New messages come behind every offset that the partition has ever had.",
    tags=["admin"],
    operation_class=takes(AcceptLossBody, is_required=False),
    responses=errors(400, 403, 404, 409, 413, 503, 507),
)
async def accept_loss_route(
    broker: NamedDependency[Broker],
    topic: TopicInPath,
    partition: Annotated[int, PathParameter(description="The number of the partition.")],
    body: RawBody,
) -> LossAccepted:
    request = decode_if_any(_decoder, body)
    target = TopicPartition(TopicName(topic), partition)
    command = AcceptLoss(target=target, end_offset=request.end_offset)
    accepted = await at_home(broker, accept_loss, command)
    return LossAccepted(
        topic,
        partition,
        accepted.reason,
        list(accepted.lost),
        accepted.start_offset,
        accepted.end_offset,
    )


ROUTES = [accept_loss_route]
