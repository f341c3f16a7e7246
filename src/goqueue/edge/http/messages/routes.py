"""POST /topics/{topic}/messages as the framework sees it, for what does not come by a fast route."""

from typing import Annotated, cast

from litestar import Response, post
from litestar.di import NamedDependency
from litestar.params import HeaderParameter, PathParameter, QueryParameter, RawBody

from goqueue.broker.broker import Broker
from goqueue.edge.http.config import HttpConfig
from goqueue.edge.http.errors import ErrorBody
from goqueue.edge.http.messages.publishing import publish_messages
from goqueue.edge.http.parts.bodies import AcksWord, PublishBody, PublishReply
from goqueue.edge.http.parts.openapi import errors, takes


@post(
    "/topics/{topic:str}/messages",
    status_code=200,
    operation_id="publishMessages",
    summary="Publish messages to a topic",
    description="What is wrong with one message is told in its result; the others are stored all the same.",
    tags=["messages"],
    operation_class=takes(PublishBody),
    responses=errors(400, 403, 404, 413, 429, 503, 507),
)
async def publish_route(
    broker: NamedDependency[Broker],
    config: NamedDependency[HttpConfig],
    topic: Annotated[str, PathParameter(description="The topic's name.")],
    body: RawBody,
    acks: Annotated[
        AcksWord | None,
        QueryParameter(
            description="What to wait for: nothing, the OS, or the disk. Goes before the body's; default all."
        ),
    ] = None,
    traceparent: Annotated[
        str | None,
        HeaderParameter(description="W3C trace context of messages that have none in their own headers."),
    ] = None,
) -> Response[PublishReply]:
    given = None if traceparent is None else traceparent.encode()
    reply = await publish_messages(broker, config, topic, body, acks, given)
    status = reply.status if isinstance(reply, ErrorBody) else 200
    # The framework describes the usual reply; the other is one of the documented errors, with more in it.
    return Response(cast(PublishReply, reply), status_code=status)


ROUTES = [publish_route]
