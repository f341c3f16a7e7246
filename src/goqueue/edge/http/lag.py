"""GET /groups/{group}/lag: how far a group is behind, whatever kind of clients its members are."""

from typing import Annotated

from litestar import get
from litestar.di import NamedDependency
from litestar.params import PathParameter

from goqueue.broker.broker import Broker
from goqueue.broker.lag import group_lag
from goqueue.edge.http.group_bodies import LagBody, PartitionLagBody
from goqueue.edge.http.openapi import errors
from goqueue.model.groups import GroupLag


@get(
    "/groups/{group:str}/lag",
    operation_id="groupLag",
    summary="How far a group is behind, in messages and in seconds",
    tags=["groups"],
    responses=errors(400, 404, 503),
)
async def group_lag_route(
    broker: NamedDependency[Broker],
    group: Annotated[str, PathParameter(description="The group's name.")],
) -> LagBody:
    return lag_body(await group_lag(broker, group))


def lag_body(behind: GroupLag) -> LagBody:
    return LagBody(
        group=behind.group,
        group_id=behind.group,
        total=behind.total,
        max_seconds=_seconds(behind.ms_max),
        partitions=[
            PartitionLagBody(
                topic=partition.topic,
                partition=partition.partition,
                offset=partition.committed_offset,
                end_offset=partition.end_offset,
                lag=partition.lag,
                lag_seconds=_seconds(partition.lag_ms),
            )
            for partition in behind.partitions
        ],
    )


def _seconds(lag_ms: int) -> float:
    return lag_ms / 1000 if lag_ms >= 0 else -1.0
