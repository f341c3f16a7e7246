"""Moving a partition's replicas to other nodes, step by step, each of which is one record.

While it moves, its replicas are those of before and those of after; who comes is in `adding`, who goes in
`removing`. Once all who come are in sync, only they and who stays are left. The replicas are kept in the
order of after, so the first of them is who should lead in the end.
"""

from collections.abc import Sequence
from dataclasses import replace

from goqueue.core.cluster.elections import Nodes, candidates, drop_strangers, elect
from goqueue.core.cluster.isr import min_isr_of
from goqueue.model.cluster import NO_INCARNATION, NodeId, PartitionRecord


def is_moving(record: PartitionRecord) -> bool:
    return bool(record.adding or record.removing)


def is_moving_to(record: PartitionRecord, replicas: Sequence[NodeId]) -> bool:
    """Whether it is on its way there, or arrived."""
    return {*record.replicas}.difference(record.removing) == set(replicas)


def begin_move(
    record: PartitionRecord, replicas: Sequence[NodeId], *, throttle_bytes_per_s: int = 0
) -> PartitionRecord:
    """The record with which a partition begins to move, or moves elsewhere than was ordered before."""
    # One that was being added and is in sync by now is as good as those that were there.
    established = [node for node in record.replicas if node not in record.adding or node in record.isr]
    leaving = tuple(node for node in established if node not in replicas)
    coming = tuple(node for node in replicas if node not in established)
    return drop_strangers(
        replace(
            record,
            replicas=(*replicas, *leaving),
            adding=coming,
            removing=leaving,
            throttle_bytes_per_s=throttle_bytes_per_s if coming else 0,
        )
    )


def cancel_move(record: PartitionRecord, nodes: Nodes, *, before: Sequence[NodeId] = ()) -> PartitionRecord:
    """The record with which a partition stays where it was; `before`: in which order that was, if known."""
    stays = tuple(node for node in record.replicas if node not in record.adding)
    if set(stays) == set(before):
        stays = tuple(before)
    if not set(stays) & set(record.isr):
        return record  # Only those who came have everything.
    return _at_rest(record, stays, nodes)


def finish_move(record: PartitionRecord, nodes: Nodes, *, min_isr_asked: int = 0) -> PartitionRecord:
    """The record without those that go, once all who come are in sync; until then the same."""
    if not is_moving(record) or not set(record.adding) <= set(record.isr):
        return record
    stays = tuple(node for node in record.replicas if node not in record.removing)
    after = replace(record, replicas=stays, adding=())
    if len(set(stays) & set(record.isr)) < min_isr_of(after, min_isr_asked):
        return record  # Of those who stay too few have everything.
    return _at_rest(record, stays, nodes)


def _at_rest(record: PartitionRecord, stays: tuple[NodeId, ...], nodes: Nodes) -> PartitionRecord:
    """The record with these replicas alone; if its leader is none of them, another leads, or nobody."""
    inside = drop_strangers(replace(record, replicas=stays, adding=(), removing=(), throttle_bytes_per_s=0))
    if record.leader is None or record.leader in inside.isr:
        return inside
    ready = candidates(inside, nodes)
    if ready:
        return elect(inside, ready[0], nodes)
    return replace(inside, leader=None, epoch=record.epoch + 1, incarnation=NO_INCARNATION)
