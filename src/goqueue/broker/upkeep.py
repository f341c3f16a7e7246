"""The upkeep beside the walk of the messages: retention, recovery points, and what is to be forgotten."""

import asyncio
import logging
from contextlib import nullcontext

from goqueue.broker.backup.whole.verbs import keep_up_backups
from goqueue.broker.broker import Broker
from goqueue.broker.groups.upkeep import expire_offsets
from goqueue.broker.queue.upkeep import keep_up_deliveries
from goqueue.broker.sinks.epochs import keep_up_sinks
from goqueue.broker.slices import Slices
from goqueue.broker.storage.partition import Partition
from goqueue.broker.tenants.verbs import keep_up_tenants
from goqueue.broker.transactions.ends import keep_up_transactions
from goqueue.model.errors import GoQueueError, StorageFailed, StorageFull, TopicNotFound

log = logging.getLogger(__name__)


async def keep_up(broker: Broker) -> None:
    """Every few seconds: apply retention, forget silent producers, note recovery points."""
    while broker.is_open:
        await asyncio.sleep(broker.config.upkeep_interval_ms / 1000)
        await keep_up_partitions(broker)
        await expire_offsets(broker)
        await keep_up_deliveries(broker)
        await broker.coordinator.keep_up()
        for room, work in (
            ("tenants", keep_up_tenants),
            ("schemas", _shorten_registry),
            ("sinks", keep_up_sinks),
            ("transactions", keep_up_transactions),
            ("backups", keep_up_backups),
        ):
            try:
                await work(broker)
            except (OSError, GoQueueError) as error:
                log.warning("upkeep_skipped of=%s reason=%s", room, error)


async def keep_up_partitions(broker: Broker) -> None:
    """One round over all partitions."""
    slices = Slices(broker.clock)
    for partition in broker.all_partitions():
        await slices.pause()
        try:
            await keep_up_partition(broker, partition)
        except (StorageFailed, StorageFull):
            continue  # the partition has said so; one that failed is being opened anew
        except TopicNotFound:
            continue  # it was deleted since the round began
        except (OSError, GoQueueError) as error:
            log.warning("upkeep_skipped partition=%s reason=%s", partition.source, error)


async def keep_up_partition(broker: Broker, partition: Partition) -> None:
    """Apply retention to one partition and note a recovery point if something has changed."""
    if partition.damage is not None:
        return  # what is left of it stays as it is until somebody has decided
    now_ms = broker.clock.wall_ms()
    partition.producers.expire(before_ms=now_ms - broker.config.producer_expiry_ms)
    removed = 0
    # The others follow the leader's start. What is to go is chosen before the keeper of the delays, which may
    # be another node, is asked to note what lies there.
    end_offset = partition.commit_mark
    if partition.is_leader and (
        not broker.is_one_of_several or partition.log.has_expired(now_ms=now_ms, end_offset=end_offset)
    ):
        async with broker.delays.noted(partition.source):
            removed = partition.log.expire(now_ms=now_ms, end_offset=end_offset)
    if removed:
        log.info(
            "retention partition=%s segments=%d start_offset=%d",
            partition.source,
            removed,
            partition.log.start_offset,
        )
    if partition.log.wants_snapshot:
        # Segments that retention has given up go behind it: that is how a full disk gets room again.
        async with broker.health.reserve.lent() if removed else nullcontext():
            await partition.save_recovery_point()


async def _shorten_registry(broker: Broker) -> None:
    for journal in broker.schemas.journals:  # of several nodes one has it
        await journal.shorten()
