"""Which nodes hold a partition's replicas, and which of them leads.

Replicas of a partition lie in as many racks as there are; among equal racks the node with the fewest replicas
is taken, and the leader is the one of them that leads the fewest of the topic, and then of all. What is left
to choose is chosen by a hash of partition and node, so that nothing depends on an order in which nodes happen
to be known.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from uuid import UUID
from zlib import crc32

from goqueue.model.cluster import NodeId, PartitionRecord


class Placement:
    """Nodes and what they hold. Each choice counts for the next."""

    def __init__(
        self,
        racks: Mapping[NodeId, str],
        records: Mapping[tuple[UUID, int], PartitionRecord] = MappingProxyType({}),
    ) -> None:
        """`racks`: of all nodes that may be chosen. `records`: what they hold, by topic id and number."""
        self._racks = racks
        self._replicas: Counter[NodeId] = Counter()
        self._leaders: Counter[NodeId] = Counter()
        self._leaders_of: defaultdict[UUID, Counter[NodeId]] = defaultdict(Counter)
        for (topic_id, _), record in records.items():
            self._replicas.update(record.replicas)
            # Who leads at the moment is an accident; the first replica is who should.
            self._leaders[record.replicas[0]] += 1
            self._leaders_of[topic_id][record.replicas[0]] += 1

    def place(self, topic_id: UUID, number: int, replication: int) -> tuple[NodeId, ...]:
        """Nodes for a new partition, who should lead first; fewer than asked for if there are no more."""
        return self.led_first(topic_id, number, self.choose(topic_id, number, replication))

    def led_first(
        self, topic_id: UUID, number: int, nodes: Sequence[NodeId], before: NodeId | None = None
    ) -> tuple[NodeId, ...]:
        """The nodes of a partition, first the one that should lead; `before`: who should until now.

        Each topic is spread for itself: what else there is may be led by few, and come from long ago.
        """
        own = self._leaders_of[topic_id]
        if before is not None:
            self._leaders[before] -= 1
            own[before] -= 1
        leader = min(nodes, key=lambda node: (own[node], self._leaders[node], _tie(topic_id, number, node)))
        self._leaders[leader] += 1
        own[leader] += 1
        return (leader, *(node for node in nodes if node != leader))

    def note(self, nodes: Sequence[NodeId]) -> None:
        """They hold a replica more."""
        self._replicas.update(nodes)

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
