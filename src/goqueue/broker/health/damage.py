"""accept_loss: an operator says that a damaged partition goes on without what is lost."""

import logging

from goqueue.broker.broker import Broker
from goqueue.broker.health.floors import known_end
from goqueue.broker.storage.partition import Partition
from goqueue.broker.transactions.ends import close_hanging_in
from goqueue.log.partition_log import storage_error
from goqueue.model.errors import NotDamaged
from goqueue.model.topics import AcceptLoss, LossAccepted

log = logging.getLogger(__name__)


async def accept_loss(broker: Broker, command: AcceptLoss) -> LossAccepted:
    """Let a partition go on at the offset it once had reached, or at a later one; what it has lost.

    No offset is given out twice: where nothing on the disk tells how far the partition had come, what groups
    have of it does.
    """
    broker.admit(command.target.topic)
    partition = broker.partition(command.target)
    return await broker.carry_out(_accept_loss(broker, partition, command.end_offset))


async def _accept_loss(broker: Broker, partition: Partition, end_offset: int) -> LossAccepted:
    damage = partition.damage
    if damage is None:
        raise NotDamaged(*partition.source)
    end_offset = max(end_offset, known_end(broker, partition.source))
    try:
        await broker.threads.run(partition.accept_loss, end_offset)
    except OSError as error:
        raise storage_error(error, f"accepting what {partition.source} has lost") from error
    log.warning(
        "loss_accepted partition=%s lost=%d start_offset=%d end_offset=%d reason=%s",
        partition.source,
        damage.lost_count,
        partition.log.start_offset,
        partition.log.end_offset,
        damage.reason,
    )
    await close_hanging_in(broker, partition)
    for reader in tuple(partition.readers):
        reader.wake()
    return LossAccepted(damage.reason, damage.lost, partition.log.start_offset, partition.log.end_offset)
