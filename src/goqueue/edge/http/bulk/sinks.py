"""Exactly-once sinks over HTTP: generations, stages, commits and aborts, and a look at what there is."""

from typing import Annotated, TypeVar

import msgspec
from litestar import Request, delete, get, post
from litestar.datastructures import State
from litestar.di import NamedDependency
from litestar.params import PathParameter, QueryParameter, RawBody

from goqueue.broker.broker import Broker
from goqueue.broker.forwarding.at_home import at_home, seen_at_home
from goqueue.broker.sinks.verbs import (
    abort_stages,
    commit_epoch,
    describe_sink,
    forget_sink,
    list_sinks,
    stage,
    take_generation,
)
from goqueue.edge.http.bulk.bodies import (
    AbortReply,
    CommitReply,
    EndEpochBody,
    GenerationReply,
    SinkBody,
    SinkForgotten,
    SinkList,
    StageBody,
    StageReply,
)
from goqueue.edge.http.config import HttpConfig
from goqueue.edge.http.parts.decoding import decode, read_buffer
from goqueue.edge.http.parts.openapi import TakingBytes, errors, takes
from goqueue.edge.http.parts.paging import ALL, After, Limit, names_in_page
from goqueue.model.names import PLAIN_NAME_PATTERN
from goqueue.model.sinks import (
    AbortStages,
    CommitEpoch,
    DescribeSink,
    ForgetSink,
    ListSinks,
    StageBatches,
    TakeGeneration,
)

Ending = TypeVar("Ending", CommitEpoch, AbortStages)

_decoder = msgspec.json.Decoder(EndEpochBody)
_INT64_MAX = 2**63 - 1
_TAGS = ["sinks"]

_Sink = Annotated[
    str, PathParameter(description="The sink's name.", schema_extra={"pattern": PLAIN_NAME_PATTERN})
]


@post(
    "/sinks/{sink:str}/generations",
    operation_id="takeGeneration",
    summary="Become the only writer of a sink, which comes into being with its first",
    description="A run that gives its name keeps its generation, and is refused once another has followed.",
    tags=_TAGS,
    responses=errors(400, 409, 500, 503, 507),
)
async def take_generation_route(
    broker: NamedDependency[Broker],
    sink: _Sink,
    run: Annotated[str, QueryParameter(description="One start of the job.")] = "",
    writer: Annotated[str, QueryParameter(description="The job, the same in all its runs.")] = "",
) -> GenerationReply:
    command = TakeGeneration(sink=sink, run=run, writer=writer)
    taken = await at_home(broker, take_generation, command)
    return GenerationReply(taken.name, taken.generation, taken.last_epoch, taken.leaves_markers)


@post(
    "/sinks/{sink:str}/stages",
    operation_id="stageBatches",
    summary="Keep record batches for an epoch: safe on the disk, seen by nobody",
    description="The body is that of POST /batches. The same stage id again replaces the stage.",
    tags=_TAGS,
    operation_class=TakingBytes,
    responses=errors(400, 403, 404, 409, 413, 429, 503, 507),
)
async def stage_route(
    request: Request[object, object, State],
    broker: NamedDependency[Broker],
    config: NamedDependency[HttpConfig],
    sink: _Sink,
    epoch: Annotated[int, QueryParameter(ge=0, le=_INT64_MAX, description="The epoch it is for.")],
    stage_id: Annotated[
        str,
        QueryParameter(
            name="stage",
            description="Chosen by the task, another one for each attempt.",
            schema_extra={"pattern": PLAIN_NAME_PATTERN},
        ),
    ],
    generation: Annotated[int, QueryParameter(ge=0, le=_INT64_MAX, description="The writer's own.")],
) -> StageReply:
    body = await read_buffer(request.scope, request.receive, config.body_bytes)
    staged = await at_home(
        broker,
        stage,
        StageBatches(
            sink=sink, generation=generation, epoch=epoch, stage_id=stage_id, entries=memoryview(body)
        ),
    )
    return StageReply(stage_id, staged.messages, staged.size_bytes)


@post(
    "/sinks/{sink:str}/commits",
    status_code=200,
    operation_id="commitEpoch",
    summary="Bring all stages of an epoch into the log, once",
    tags=_TAGS,
    operation_class=takes(EndEpochBody),
    responses=errors(400, 404, 409, 413, 500, 503, 507),
)
async def commit_route(broker: NamedDependency[Broker], sink: _Sink, body: RawBody) -> CommitReply:
    command = _ending(CommitEpoch, sink, body)
    ended = await at_home(broker, commit_epoch, command)
    return CommitReply(command.epoch, ended.is_duplicate, ended.messages)


@post(
    "/sinks/{sink:str}/aborts",
    status_code=200,
    operation_id="abortStages",
    summary="Drop stages that are not committed",
    tags=_TAGS,
    operation_class=takes(EndEpochBody),
    responses=errors(400, 404, 409, 413, 503),
)
async def abort_route(broker: NamedDependency[Broker], sink: _Sink, body: RawBody) -> AbortReply:
    return AbortReply(await at_home(broker, abort_stages, _ending(AbortStages, sink, body)))


@get("/sinks", operation_id="listSinks", summary="Names of all sinks", tags=_TAGS, responses=errors(400))
async def list_sinks_route(
    broker: NamedDependency[Broker], limit: Limit = ALL, after: After = None
) -> SinkList:
    return SinkList(*names_in_page(await seen_at_home(broker, list_sinks, ListSinks()), limit, after))


@get(
    "/sinks/{sink:str}",
    operation_id="describeSink",
    summary="A sink's generation, its last epoch, and the stages that wait for a commit",
    tags=_TAGS,
    responses=errors(400, 404),
)
async def describe_sink_route(broker: NamedDependency[Broker], sink: _Sink) -> SinkBody:
    view = await at_home(broker, describe_sink, DescribeSink(sink=sink))
    return SinkBody(
        view.name, view.generation, view.last_epoch, [StageBody(*waiting) for waiting in view.stages]
    )


@delete(
    "/sinks/{sink:str}",
    status_code=200,
    operation_id="forgetSink",
    summary="Forget a sink and drop its stages; what it has committed stays",
    tags=_TAGS,
    responses=errors(400, 404, 503, 507),
)
async def forget_sink_route(broker: NamedDependency[Broker], sink: _Sink) -> SinkForgotten:
    await at_home(broker, forget_sink, ForgetSink(sink=sink))
    return SinkForgotten(sink)


def _ending(kind: type[Ending], sink: str, body: bytes) -> Ending:
    request = decode(_decoder, body)
    return kind(sink=sink, generation=request.generation, epoch=request.epoch, stage_ids=request.stages)


ROUTES = [
    take_generation_route,
    stage_route,
    commit_route,
    abort_route,
    list_sinks_route,
    describe_sink_route,
    forget_sink_route,
]
