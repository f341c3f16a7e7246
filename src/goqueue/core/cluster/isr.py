"""The in-sync replicas of a partition: who is in, who is waited for, and what leaving does to the record.

A leader changes the ISR by a proposal to the store, and until it hears what became of that, both may be true.
So it waits for whoever *may* be in, and counts for `min.insync.replicas` only who *is* surely in.
"""

from collections.abc import Iterable, Set
from dataclasses import replace

from goqueue.core.cluster.rules import ALL_RULES, Rules
from goqueue.model.cluster import NO_INCARNATION, NodeId, PartitionRecord
from goqueue.model.replication import ProposeRecord


def with_isr(record: PartitionRecord, isr: Iterable[NodeId], *, min_isr: int) -> PartitionRecord:
    """The record with other replicas in sync. If too few remain, who left goes to `elr`; else it is empty."""
    members = set(isr)
    in_sync = ordered(record, members)
    left = (set(record.isr) | set(record.elr)) - members
    return replace(record, isr=in_sync, elr=() if len(in_sync) >= min_isr else ordered(record, left))


def min_isr_of(record: PartitionRecord, asked: int = 0) -> int:
    """How many must be in sync: as asked for, never more than there are copies; else 2 of three, or 1.

    Copies that are still being added do not count: a partition that grows would stand still meanwhile.
    """
    return min_isr_with(len(record.replicas) - len(record.adding), asked)


def min_isr_with(copies: int, asked: int = 0) -> int:
    """The same for a number of copies."""
    return max(1, min(asked or (2 if copies > 2 else 1), copies))


def without_leader(record: PartitionRecord) -> PartitionRecord:
    """The record by which a leader that resigns asks for another."""
    return replace(record, leader=None, incarnation=NO_INCARNATION, resigned=record.leader)


def without_copy(record: PartitionRecord, node: NodeId) -> PartitionRecord:
    """The record of a partition of which a node has lost its copy, written by that node before it registers.

    It may leave the ISR empty, though not what was acknowledged: others that had everything may be in `elr`.
    """
    return replace(
        without_leader(record) if record.leader == node else record,
        isr=tuple(member for member in record.isr if member != node),
        elr=tuple(member for member in record.elr if member != node),
    )


def ordered(record: PartitionRecord, nodes: Set[NodeId]) -> tuple[NodeId, ...]:
    """Nodes in the order in which the record names its replicas; the others, by name, behind."""
    return (*(node for node in record.replicas if node in nodes), *sorted(nodes - set(record.replicas)))


def waited_for(
    record: PartitionRecord, proposed: ProposeRecord | None, rules: Rules = ALL_RULES
) -> set[NodeId]:
    """Without whom nothing counts: whoever is in sync, or may be by a proposal that is under way."""
    members = set(record.isr)
    if proposed is None:
        return members
    if rules.counts_joining_early:
        members |= set(proposed.record.isr)
    if not rules.counts_leaving_late:
        members &= set(proposed.record.isr)
    return members


def surely_in(record: PartitionRecord, proposed: ProposeRecord | None) -> set[NodeId]:
    """Who is in sync whatever becomes of a proposal."""
    return set(record.isr) if proposed is None else set(record.isr) & set(proposed.record.isr)
