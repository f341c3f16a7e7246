"""Offsets of a transaction, given to a group's coordinator while another node coordinates the transaction."""

from goqueue.broker.broker import Broker
from goqueue.broker.groups.offsets import Refusals, accepted_offsets
from goqueue.broker.transactions.joining import join_transaction
from goqueue.broker.transactions.leaders import calls
from goqueue.model.errors import CoordinatorLoading
from goqueue.model.transaction_calls import JoinTransaction
from goqueue.model.transaction_commands import PendOffsets


async def pend_afar(broker: Broker, command: PendOffsets) -> Refusals:
    """Offsets that become the group's when the transaction commits; returns when they are committed here.

    Asked for each time: of a group's offsets there are few in a transaction, mostly once.
    """
    group, producer = command.who.group, command.producer
    journal = await broker.coordinator.journals.ensure(group)
    with broker.transactions.verified.asking(journal.partition, (group, producer.producer_id)) as question:
        asked = JoinTransaction(
            transactional_id=command.transactional_id,
            producer=producer,
            group=group,
            epoch=journal.partition.leader_epoch,
            may_join=command.may_join,
        )
        transaction_id = await calls(broker).run(join_transaction, asked)
        if not question.counts:
            raise CoordinatorLoading(f"the transaction of {command.transactional_id} has ended meanwhile")
    refusals: Refusals = {}
    topics = accepted_offsets(broker, command.commits, refusals)
    pended = journal.groups.pend_offsets(
        command.who,
        producer.producer_id,
        topics,
        now_ns=broker.coordinator.now_ns(),
        transaction_id=transaction_id,
    )
    if topics:
        await journal.submit(pended)
    return refusals
