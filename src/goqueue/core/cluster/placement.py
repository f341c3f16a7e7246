"""Which nodes hold a partition's replicas, and which of them leads.

Replicas of a partition lie in as many racks as there are; among equal racks the node with the fewest replicas
is taken, and the leader is the one of them that leads the fewest. What is left to choose is chosen by a hash
of partition and node, so that nothing depends on an order in which nodes happen to be known.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID
from zlib import crc32

from goqueue.model.cluster import NodeId, PartitionRecord


class Placement:
    """Nodes and what they hold. Each choice counts for the next."""

    def __init__(self, racks: Mapping[NodeId, str], records: Iterable[PartitionRecord] = ()) -> None:
        """`racks`: of all nodes that may be chosen."""
        self._racks = racks
        self._replicas: Counter[NodeId] = Counter()
        self._leaders: Counter[NodeId] = Counter()
        for record in records:
            self._replicas.update(record.replicas)
            # Who leads at the moment is an accident; the first replica is who should.
            self._leaders[record.replicas[0]] += 1

    def place(self, topic_id: UUID, number: int, replication: int) -> tuple[NodeId, ...]:
        """Nodes for a new partition, who should lead first; fewer than asked for if there are no more."""
        chosen = self.choose(topic_id, number, replication)
        leader = min(chosen, key=lambda node: (self._leaders[node], _tie(topic_id, number, node)))
        self._leaders[leader] += 1
        return (leader, *(node for node in chosen if node != leader))

    def choose(
        self, topic_id: UUID, number: int, count: int, beside: Sequence[NodeId] = ()
    ) -> tuple[NodeId, ...]:
        """Up to so many nodes for further replicas of a partition, `beside` those that hold one already."""
        racks_used = Counter(self._racks.get(node) for node in beside)
        ties = {node: _tie(topic_id, number, node) for node in self._racks if node not in beside}
        chosen: list[NodeId] = []
        while ties and len(chosen) < count:
            node = min(
                ties, key=lambda node: (racks_used[self._racks[node]], self._replicas[node], ties[node])
            )
            del ties[node]
            chosen.append(node)
            racks_used[self._racks[node]] += 1
            self._replicas[node] += 1
        return tuple(chosen)


def _tie(topic_id: UUID, number: int, node: NodeId) -> int:
    return crc32(f"{topic_id}/{number}/{node}".encode())
