"""GET /groups/{group}/lag: how far a group is behind, whatever kind of clients its members are."""

from typing import Annotated

from litestar import get
from litestar.di import NamedDependency
from litestar.params import PathParameter

from goqueue.broker.broker import Broker
from goqueue.broker.forwarding.at_home import at_home
from goqueue.broker.groups.lag import group_lag
from goqueue.broker.slices import Slices
from goqueue.edge.http.groups.bodies import LagBody, OpenTransactionBody
from goqueue.edge.http.parts.openapi import errors
from goqueue.edge.http.parts.times import format_time
from goqueue.model.group_commands import DescribeLag
from goqueue.model.groups import GroupLag, PartitionLag
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
    return await lag_body(broker, await at_home(broker, group_lag, DescribeLag(group=group)))


async def lag_body(broker: Broker, behind: GroupLag) -> LagBody[str]:
    now_ms = broker.clock.wall_ms()
    slices = Slices(broker.clock)
    partitions = await slices.each(behind.partitions, lambda partition: _partition_body(partition, now_ms))
    await slices.pause()
    return LagBody(
        group=behind.group,
        group_id=behind.group,
        total=behind.total,
        max_seconds=_seconds(behind.ms_max),
        partitions=partitions,
    )


def _partition_body(behind: PartitionLag, now_ms: int) -> wire.PartitionLag[str]:
    return wire.PartitionLag(
        topic=behind.topic,
        partition=behind.partition,
        offset=behind.committed_offset,
        end_offset=behind.end_offset,
        lag=behind.lag,
        lag_seconds=_seconds(behind.lag_ms),
        held_back_by=_open_body(behind.held_back_by, now_ms),
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
