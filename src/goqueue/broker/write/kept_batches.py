"""What leaders ask the keeper of the delays about batches, and give to it.

Batches of producers that number their messages come from the leader of their partition alone, one question
after another. A question of an earlier leader, or an earlier one of the same leader that was given up, may
still be on its way: it is refused once a later one was heard. So a leader that is told that the keeper has
not got a batch can rely on it. A keeper that has just taken over has heard nobody, but knows from its image
every leader that was elected before it; one elected later asks it anew.
"""

from goqueue.broker.broker import Broker
from goqueue.broker.delays.answering import answered
from goqueue.broker.delays.keeping import submit_batches
from goqueue.broker.transactions.joining import join_open, owner_of
from goqueue.model.delays import Asker, FindMarks, KeepBatches, ProducerMark
from goqueue.model.errors import Fenced, InvalidTransactionState, ProducerNotFound, TopicNotFound
from goqueue.model.ids import ProducerId, TopicPartition
from goqueue.model.transactions import ProducerEpoch


async def find_marks(broker: Broker, command: FindMarks) -> list[ProducerMark]:
    """What is kept of some producers for a partition, as far as nobody can take it back."""
    await broker.agreement.reached(command.asker.revision)
    source = _heard(broker, command.asker)
    store = broker.delays.store
    target = store.targets.find(command.asker.topic_id, source.partition)
    found = [
        ProducerMark(*mark[1:])
        for producer_id in command.producer_ids
        for mark in (() if target is None else store.marks.of_producer(target.index, producer_id))
    ]
    await store.journal.submit()
    return found


async def keep_batches(broker: Broker, command: KeepBatches) -> list[int]:
    """Keep what comes later of batches, unless it is kept; returns when it is committed."""
    await broker.agreement.reached(command.asker.revision)
    source = _heard(broker, command.asker)
    if command.batches[0].is_held:
        await _join(broker, command)
        source = _heard(broker, command.asker)  # another question may have come meanwhile
    numbers, submitted = submit_batches(broker, source, command.batches)
    await answered(broker, submitted)
    return numbers


async def _join(broker: Broker, command: KeepBatches) -> None:
    """Have the journal of the delays be part of the transaction, as a partition is that it writes to.

    What was sent in a transaction that has ended since must not come to count with the next one: raises
    InvalidTransactionState where another is open by now.
    """
    partition = broker.delays.store.journal.partition
    producer_id, epoch = command.batches[0][:2]
    producer = ProducerEpoch(ProducerId(producer_id), epoch)
    verified = broker.transactions.verified
    if verified.name_of(partition, producer_id, epoch) is None:
        owner = await owner_of(broker, producer)
        if owner is None:
            raise ProducerNotFound(producer_id)
        await join_open(broker, partition, producer, owner, may_join=True)
    if verified.name_of(partition, producer_id, epoch) != command.transaction_id:
        raise InvalidTransactionState(f"transaction {command.transaction_id} is not open any more")


def _heard(broker: Broker, asker: Asker) -> TopicPartition:
    """The partition that is asked about. Raises Fenced where somebody has asked, or leads, since."""
    target, topic_id, leader_epoch, number, _ = asker
    topic = broker.metadata.topic(target.topic)
    if topic.topic_id != topic_id:
        raise TopicNotFound(target.topic)
    known_epoch = broker.metadata.record(topic, target.partition).epoch
    asked = leader_epoch, number
    if not broker.delays.turns.hear(topic_id, target.partition, asked, known_epoch=known_epoch):
        raise Fenced(f"{target} has asked for something else since, or has another leader")
    return target
