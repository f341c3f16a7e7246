"""How the leader of a partition asks the keeper about batches of which some messages come later.

On one node the leader looks at what is kept, decides and writes in one step. Here it asks what is kept,
decides by the same rules, has kept what comes later, and then writes what comes now. Questions about one
partition are asked one after another, so nothing changes between them but by another leader; and whatever is
under way from before is refused by the keeper from then on (`kept_batches.py`).
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

from goqueue.broker.broker import Broker
from goqueue.broker.delays.asking import ALONE, Told, Unasked, Unkept
from goqueue.broker.delays.reaching import forwarding_of
from goqueue.broker.schemas.check import Looked, Unset, set_aside
from goqueue.broker.storage.partition import Partition
from goqueue.broker.transactions.writes import Unverified
from goqueue.broker.write.kept_batches import find_marks, keep_batches
from goqueue.core.delays.marks import Mark, Marks
from goqueue.model.commands import Appended
from goqueue.model.delays import AskedByLeader, Asker, FindMarks, KeepBatches, LaterBatch
from goqueue.model.errors import Busy, Fenced, NotKept, NotLeader, NotVerified, Unavailable

C = TypeVar("C", bound=AskedByLeader)
T = TypeVar("T")


async def take_in_told(broker: Broker, unasked: Unasked, take_in: Callable[[Told], Appended]) -> Appended:
    """Take in what the keeper must be asked about; `take_in` does so, by what was told."""
    partition, epoch = unasked.partition, unasked.partition.leader_epoch
    async with broker.delays.turns.lock(partition):
        marks = Marks()
        if unasked.producer_ids:
            asker = _asker(broker, partition, epoch)
            command = FindMarks(asker=asker, producer_ids=unasked.producer_ids)
            for mark in await _ask(broker, find_marks, command):
                marks.apply(Mark(ALONE, *mark))
        told = Told(marks, broker.clock.wall_ms())
        try:
            return _take_in(partition, take_in, told)
        except Unkept as unkept:
            batches = unkept.batches
        keep = KeepBatches(
            asker=_asker(broker, partition, epoch),
            batches=batches,
            transaction_id=_transaction_of(broker, partition, batches[0]),
        )
        kept = await _ask(broker, keep_batches, keep)
        _demand_led(partition, epoch)
        return _take_in(partition, take_in, told._replace(kept=kept))


def _take_in(partition: Partition, take_in: Callable[[Told], Appended], told: Told) -> Appended:
    try:
        return take_in(told)
    except Unverified as ended:
        # Some of the batch may be kept in that transaction: the rest must not come to count with the next.
        raise NotVerified(*partition.source, "it has ended meanwhile") from ended


async def take_in_at_last(
    broker: Broker, looked: Looked | None, take_in: Callable[[Looked | None, Told | None], Appended]
) -> Appended:
    """Take in a batch when all nodes have answered that must be asked: the keeper, and the quarantine's."""
    while True:
        try:
            try:
                return take_in(looked, None)
            except Unasked as unasked:
                return await take_in_told(broker, unasked, partial(take_in, looked))
        except Unset as unset:
            misfits = unset
        await set_aside(broker, misfits)
        looked = misfits.looked._replace(is_set_aside=True)


def _transaction_of(broker: Broker, partition: Partition, batch: LaterBatch) -> str:
    """The transaction that batches are part of, which has just been found open; empty: none."""
    if not batch.is_held:
        return ""
    verified = broker.transactions.verified
    return verified.name_of(partition, batch.producer_id, batch.producer_epoch) or ""


def _asker(broker: Broker, partition: Partition, epoch: int) -> Asker:
    """Who asks. Raises NotLeader where it leads no more, or again: another may have asked meanwhile."""
    _demand_led(partition, epoch)
    return Asker(
        partition.source,
        broker.metadata.topic(partition.source.topic).topic_id,
        epoch,
        broker.delays.turns.next_number(),
        broker.metadata.revision,
    )


def _demand_led(partition: Partition, epoch: int) -> None:
    if not partition.is_leader or partition.leader_epoch != epoch:
        raise NotLeader(*partition.source)


async def _ask(broker: Broker, verb: Callable[[Broker, C], Awaitable[T]], command: C) -> T:
    source = command.asker.target
    try:
        return await forwarding_of(broker, source).run(verb, command)
    except Fenced as error:
        raise NotLeader(*source) from error
    except (Busy, Unavailable) as error:
        raise NotKept(*source, str(error)) from error
