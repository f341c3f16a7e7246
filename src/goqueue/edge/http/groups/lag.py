"""GET /groups/{group}/lag: how far a group is behind, whatever kind of clients its members are."""

from typing import Annotated

from litestar import get
from litestar.di import NamedDependency
from litestar.params import PathParameter

from goqueue.broker.broker import Broker
from goqueue.broker.groups.lag import group_lag
from goqueue.edge.http.groups.bodies import LagBody, OpenTransactionBody
from goqueue.edge.http.parts.openapi import errors
from goqueue.edge.http.parts.times import format_time
from goqueue.model.group_commands import DescribeLag
from goqueue.model.groups import GroupLag
from goqueue.model.transactions import OpenTransaction
from goqueue.wire import groups as wire


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
) -> LagBody[str]:
    return lag_body(await group_lag(broker, DescribeLag(group=group)), broker.clock.wall_ms())


def lag_body(behind: GroupLag, now_ms: int) -> LagBody[str]:
    return LagBody(
        group=behind.group,
        group_id=behind.group,
        total=behind.total,
        max_seconds=_seconds(behind.ms_max),
        partitions=[
            wire.PartitionLag(
                topic=partition.topic,
                partition=partition.partition,
                offset=partition.committed_offset,
                end_offset=partition.end_offset,
                lag=partition.lag,
                lag_seconds=_seconds(partition.lag_ms),
                held_back_by=_open_body(partition.held_back_by, now_ms),
            )
            for partition in behind.partitions
        ],
    )


def _open_body(opened: OpenTransaction | None, now_ms: int) -> OpenTransactionBody | None:
    if opened is None:
        return None
    return OpenTransactionBody(
        transaction_id=opened.transaction_id,
        transactional_id=opened.transactional_id,
        producer_id=opened.producer.producer_id,
        epoch=opened.producer.epoch,
        first_offset=opened.first_offset,
        started_at=format_time(opened.started_ms),
        open_seconds=_seconds(max(now_ms - opened.started_ms, 0)),
    )


def _seconds(lag_ms: int) -> float:
    return lag_ms / 1000 if lag_ms >= 0 else -1.0


ROUTES = [group_lag_route]
