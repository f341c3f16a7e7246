"""Who leads a partition and who is in sync, when nodes come, go and drain. Decided from values alone.

The next leader is the first of the replicas that is in sync and ready; if nobody in sync is, one that had
everything when it left; else there is none, until one of them is back. An epoch is used once, so every
election raises it, also when the same node leads again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from goqueue.core.cluster.isr import ordered, with_isr
from goqueue.model.cluster import NO_INCARNATION, Incarnation, NodeId, NodeState, PartitionRecord


@dataclass(frozen=True, slots=True)
class Alive:
    """A node that is registered."""

    incarnation: Incarnation
    state: NodeState

    @property
    def is_ready(self) -> bool:
        return self.state is NodeState.READY


Nodes = Mapping[NodeId, Alive]


def is_quiet(record: PartitionRecord, nodes: Nodes) -> bool:
    """Whether there is nothing to decide: its leader leads, and all that are in sync are alive."""
    leader = None if record.leader is None else nodes.get(record.leader)
    if leader is None or leader.incarnation != record.incarnation or leader.state is NodeState.DRAINING:
        return False
    return nodes.keys() >= set(record.isr)


def fit_record(record: PartitionRecord, nodes: Nodes, *, min_isr: int) -> PartitionRecord:
    """The record as it should be with the nodes there are; the same one when nothing is to be done."""
    if is_quiet(record, nodes):
        return record
    return _with_leader(_without_the_dead(record, nodes, min_isr=min_isr), nodes, min_isr=min_isr)


def elect(record: PartitionRecord, leader: NodeId, nodes: Nodes) -> PartitionRecord:
    """The record with another leader, or with the same one anew."""
    return replace(
        record,
        leader=leader,
        epoch=record.epoch + 1,
        incarnation=nodes[leader].incarnation,
        resigned=None,
    )


def elect_unclean(record: PartitionRecord, nodes: Nodes) -> PartitionRecord:
    """Let any replica lead that is ready, though it may lack what counted: a person wants it so."""
    ready = [node for node in record.replicas if node in nodes and nodes[node].is_ready]
    known = [node for node in ready if node in record.isr] or [node for node in ready if node in record.elr]
    if not ready:
        return record
    leader = (known or ready)[0]
    isr = record.isr if leader in record.isr else (leader,)
    return elect(replace(record, isr=isr, elr=()), leader, nodes)


def candidates(record: PartitionRecord, nodes: Nodes) -> list[NodeId]:
    """Who may lead: in sync and ready, the preferred one first; who has resigned comes last."""
    ready = [
        node for node in record.replicas if node in record.isr and node in nodes and nodes[node].is_ready
    ]
    return sorted(ready, key=lambda node: node == record.resigned)


def _without_the_dead(record: PartitionRecord, nodes: Nodes, *, min_isr: int) -> PartitionRecord:
    alive = {node for node in record.isr if node in nodes}
    if not alive or len(alive) == len(record.isr):
        # All of them have everything: if none is alive, whoever comes back first may lead.
        return record
    return with_isr(record, alive, min_isr=min_isr)


def _with_leader(record: PartitionRecord, nodes: Nodes, *, min_isr: int) -> PartitionRecord:
    leader = None if record.leader is None else nodes.get(record.leader)
    is_leading = leader is not None and leader.incarnation == record.incarnation
    ready = candidates(record, nodes)
    if is_leading and leader is not None and leader.state is not NodeState.DRAINING:
        return record
    if ready:
        return elect(record, ready[0], nodes)
    if is_leading:
        return record  # It drains, and there is nobody else.
    eligible = [node for node in record.elr if node in nodes and nodes[node].is_ready]
    if eligible:
        return elect(with_isr(record, {eligible[0]}, min_isr=min_isr), eligible[0], nodes)
    if record.leader is None:
        return record
    return replace(record, leader=None, epoch=record.epoch + 1, incarnation=NO_INCARNATION)


def drop_strangers(record: PartitionRecord) -> PartitionRecord:
    """The record without members of ISR and ELR that are no replicas any more."""
    replicas = set(record.replicas)
    return replace(
        record,
        isr=ordered(record, set(record.isr) & replicas),
        elr=ordered(record, set(record.elr) & replicas),
    )
