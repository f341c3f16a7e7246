"""The upkeep of sinks: what a start finds, what a failing disk held up, and what nobody comes back for."""

import logging

from goqueue.broker.broker import Broker
from goqueue.broker.sinks.epochs import abandon, drop, drop_decided, finish_epoch, forget
from goqueue.broker.sinks.stages import StageName
from goqueue.model.errors import GoQueueError, StorageFailed
from goqueue.model.names import sink_of_transactional_id

log = logging.getLogger(__name__)


async def recover_sinks(broker: Broker) -> None:
    """After a start: finish what was prepared, drop what can never be committed."""
    damaged = await broker.threads.run(broker.sinks.stages.open)
    for name in damaged:
        log.error("stage_damaged path=%s", name.path)
    for sink in list(broker.sinks.machine.sinks):
        is_finished = await _try_to_finish(broker, sink)
        if not is_finished and any(partition.is_failed for partition in broker.all_partitions()):
            # Before the broker is open nobody opens a partition anew: better to begin the start again.
            raise StorageFailed(f"the disk failed while an epoch of sink {sink} was being finished")
        await drop_decided(broker, sink)
    for sink in _strays(broker):
        await abandon(broker, sink)
    await broker.threads.run(broker.sinks.stages.remove, [n for n in damaged if not _is_prepared(broker, n)])
    for sink in await broker.threads.run(broker.sinks.stages.sinks_on_disk):
        if sink not in broker.sinks.machine.sinks:
            broker.sinks.stages.forget(broker.sinks.stages.of_sink(sink))
            await broker.threads.run(broker.sinks.stages.remove_sink, sink)


async def keep_up_sinks(broker: Broker) -> None:
    """Finish what a failing disk has held up, drop stages and sinks that nobody comes back for."""
    now_ms = broker.clock.wall_ms()
    for name in [sink.name for sink in broker.sinks.machine.sinks.values() if sink.prepared is not None]:
        await broker.carry_out(_try_to_finish(broker, name), broker.sinks.lock(name))
    for name in _strays(broker):
        await broker.carry_out(_abandon_stray(broker, name), broker.sinks.lock(name))
    for name in broker.sinks.stages.created_before(now_ms - broker.config.stage_expiry_ms):
        await broker.carry_out(_expire_stages(broker, name, now_ms), broker.sinks.lock(name))
    for name in broker.sinks.machine.unused_since(now_ms - broker.config.sink_expiry_ms):
        await broker.carry_out(_forget_unused(broker, name, now_ms), broker.sinks.lock(name))
    await broker.transactions.of_sinks.shorten()


def _strays(broker: Broker) -> list[str]:
    """Sinks that have a transaction for which no epoch answers.

    They were forgotten with an epoch that is lost; or the journal was repaired, and some events are gone.
    """
    own = (sink_of_transactional_id(known.transactional_id) for known in broker.transactions.of_epochs())
    return [name for name in own if not _has_prepared(broker, name)]


async def _abandon_stray(broker: Broker, name: str) -> None:
    if not _has_prepared(broker, name):  # one may have begun while the lock was waited for
        await abandon(broker, name)


def _has_prepared(broker: Broker, name: str) -> bool:
    sink = broker.sinks.machine.sinks.get(name)
    return sink is not None and sink.prepared is not None


async def _expire_stages(broker: Broker, name: str, now_ms: int) -> None:
    sink = broker.sinks.machine.sinks.get(name)
    old = broker.sinks.stages.created_before(now_ms - broker.config.stage_expiry_ms).get(name, [])
    # A decided epoch is either on its way into the log, or its stages are dropped when it is there.
    expired = [stage for stage in old if sink is None or not sink.is_decided(stage.name.epoch)]
    if expired:
        log.info("stages_expired sink=%s count=%d", name, len(expired))
        await drop(broker, expired)


def _is_prepared(broker: Broker, name: StageName) -> bool:
    sink = broker.sinks.machine.sinks.get(name.sink)
    return sink is not None and sink.prepared is not None and sink.prepared.epoch == name.epoch


async def _forget_unused(broker: Broker, name: str, now_ms: int) -> None:
    if name in broker.sinks.machine.unused_since(now_ms - broker.config.sink_expiry_ms):
        log.info("sink_expired sink=%s", name)
        await forget(broker, name)


async def _try_to_finish(broker: Broker, name: str) -> bool:
    try:
        await finish_epoch(broker, name)
    except GoQueueError as error:
        log.error("epoch_unfinished sink=%s reason=%s", name, error)
        return False
    return True
