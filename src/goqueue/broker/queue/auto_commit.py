"""Auto-commit: a member that polls again is done with what it was given before.

For consumers that do not settle message by message. What a crash of the consumer leaves behind comes again
when its lease runs out, as after any poll; what is part of a transaction waits for that.
"""

from goqueue.broker.broker import Broker
from goqueue.broker.groups.assigned import owned_partitions
from goqueue.broker.queue.settle import Leased, settle_leased
from goqueue.model.delivery import Action, CommitPolled, Settle, SettleOutcome


async def commit_polled(broker: Broker, command: CommitPolled) -> int:
    """Acknowledge all that a member has out; returns how many messages, when the disk has it."""
    who = command.who
    owned_partitions(broker, who)  # whoever is no member any more has nothing to say about messages
    journal = broker.coordinator.journals.find(who.group)
    now_ms = broker.running.now_ms()
    leased = []
    for delivery in () if journal is None else journal.deliveries.of_group(who.group):
        for lease in delivery.leases.values():
            if lease.consumer == who.member_id:
                offsets = [offset for run in lease.offsets for offset in range(*run)]
                places = {o: o for o in offsets if lease.holds(o, now_ms) and not lease.is_pledged(o)}
                if places and journal is not None:
                    leased.append(Leased(journal, delivery, lease, places))
    if leased:
        await settle_leased(broker, Settle(action=Action.ACK, receipts=()), leased, SettleOutcome())
    return sum(len(one.places) for one in leased)
