"""What an open transaction means to those who wait behind it: polls, lag, resets."""

import asyncio

import pytest

from goqueue.broker.broker import Broker
from goqueue.broker.groups.lag import group_lag
from goqueue.broker.groups.offsets import commit_offsets
from goqueue.broker.groups.reset_offsets import reset_offsets
from goqueue.model.commands import Spot
from goqueue.model.group_commands import CommitOffsets, DescribeLag, ResetOffsets
from goqueue.model.groups import Membership, PartitionLag, TopicCommit
from goqueue.model.transactions import Marker
from tests.unit.broker.lives import Lives
from tests.unit.broker.queue.queue_steps import join, orders, put, take, values
from tests.unit.broker.running import ORDERS
from tests.unit.broker.transactions.transaction_steps import WRITER, Writer, new_writer


async def opened(broker: Broker) -> Writer:
    """A transaction has written the second message, somebody else the third."""
    await orders(broker)
    await put(broker, "before")
    writer = await new_writer(broker)
    await writer.add(0)
    await writer.put(0, "in it")
    await put(broker, "behind")
    return writer


async def lag_of(broker: Broker, group: str) -> PartitionLag:
    [lag] = (await group_lag(broker, DescribeLag(group=group))).partitions
    return lag


@pytest.mark.parametrize(
    ("marker", "seen"), [(Marker.COMMIT, ["in it", "behind"]), (Marker.ABORT, ["behind"])]
)
def test_a_poll_that_waits_wakes_up_when_the_transaction_ends(marker: Marker, seen: list[str]) -> None:
    async def story(broker: Broker) -> None:
        writer = await opened(broker)
        ann = await join(broker)
        assert values(await take(broker, ann)) == ["before"]
        began_ms = broker.clock.wall_ms()
        waiting = asyncio.ensure_future(take(broker, ann, wait_ms=30_000))
        await asyncio.sleep(0.5)
        assert not waiting.done()

        await writer.end(marker)

        assert values(await waiting) == seen
        assert broker.clock.wall_ms() - began_ms < 1_000

    Lives(31).live(story)


def test_a_queue_is_behind_up_to_the_open_transaction_and_is_told_whose_it_is() -> None:
    async def story(broker: Broker) -> None:
        writer = await opened(broker)
        await join(broker)

        lag = await lag_of(broker, "workers")

        assert (lag.end_offset, lag.lag) == (1, 1)
        holder, known = lag.held_back_by, broker.transactions.get(WRITER)
        assert holder is not None
        assert known is not None
        assert (holder.transactional_id, holder.producer, holder.first_offset) == (WRITER, writer.producer, 1)
        assert (holder.transaction_id, holder.started_ms) == (known.transaction_id, known.started_ms)
        await writer.abort()
        lag = await lag_of(broker, "workers")
        assert (lag.end_offset, lag.held_back_by) == (4, None)

    Lives(32).live(story)


def test_a_group_of_kafka_clients_is_behind_up_to_the_end_of_the_log() -> None:
    async def story(broker: Broker) -> None:
        await opened(broker)
        who = Membership("readers", "", -1)
        await commit_offsets(broker, CommitOffsets(who, [TopicCommit(ORDERS, [(0, 1, -1, "")])]))

        lag = await lag_of(broker, "readers")

        assert (lag.end_offset, lag.lag) == (3, 2)
        assert lag.held_back_by is not None

    Lives(33).live(story)


def test_a_group_that_is_sent_to_the_end_passes_over_what_is_open() -> None:
    async def story(broker: Broker) -> None:
        writer = await opened(broker)
        ann = await join(broker)
        command = ResetOffsets(group="workers", topics=[ORDERS], spot=Spot.LATEST, is_forced=True)

        resets = await reset_offsets(broker, command)

        assert resets == [(ORDERS, 0, -1, 3)]
        lag = await lag_of(broker, "workers")
        assert (lag.end_offset, lag.lag) == (1, 0)
        await writer.commit()
        await put(broker, "new")
        assert values(await take(broker, ann)) == ["new"]

    Lives(34).live(story)
