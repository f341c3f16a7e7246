"""Moving a partition's replicas to other nodes, step by step, each of which is one record.

While it moves, its replicas are those of before and those of after; who comes is in `adding`, who goes in
`removing`. Once all who come are in sync, only they and who stays are left. The replicas are kept in the
order of after, so the first of them is who should lead in the end.
"""

from collections.abc import Sequence
from dataclasses import replace

from goqueue.core.cluster.elections import Nodes, candidates, drop_strangers, elect
from goqueue.model.cluster import NO_INCARNATION, NodeId, PartitionRecord


def is_moving(record: PartitionRecord) -> bool:
    return bool(record.adding or record.removing)


def begin_move(record: PartitionRecord, replicas: Sequence[NodeId]) -> PartitionRecord:
    """The record with which a partition begins to move, or moves elsewhere than was ordered before."""
    # One that was being added and is in sync by now is as good as those that were there.
    established = [node for node in record.replicas if node not in record.adding or node in record.isr]
    leaving = tuple(node for node in established if node not in replicas)
    return drop_strangers(
        replace(
            record,
            replicas=(*replicas, *leaving),
            adding=tuple(node for node in replicas if node not in established),
            removing=leaving,
        )
    )


def cancel_move(record: PartitionRecord, nodes: Nodes) -> PartitionRecord:
    """The record with which a partition stays where it was."""
    stays = tuple(node for node in record.replicas if node not in record.adding)
    if not set(stays) & set(record.isr):
        return record  # Only those who came have everything.
    return _with_a_leader_inside(replace(record, replicas=stays, adding=(), removing=()), nodes)


def finish_move(record: PartitionRecord, nodes: Nodes) -> PartitionRecord:
    """The record without those that go, once all who come are in sync; until then the same."""
    if not is_moving(record) or not set(record.adding) <= set(record.isr):
        return record
    stays = tuple(node for node in record.replicas if node not in record.removing)
    if not set(stays) & set(record.isr):
        return record  # Nobody who stays has everything.
    return _with_a_leader_inside(replace(record, replicas=stays, adding=(), removing=()), nodes)


def _with_a_leader_inside(record: PartitionRecord, nodes: Nodes) -> PartitionRecord:
    """The record without members that are no replicas; if its leader is none, another leads, or nobody."""
    inside = drop_strangers(record)
    if record.leader is None or record.leader in inside.isr:
        return inside
    ready = candidates(inside, nodes)
    if ready:
        return elect(inside, ready[0], nodes)
    return replace(inside, leader=None, epoch=record.epoch + 1, incarnation=NO_INCARNATION)
