"""Where the copies of partitions are to be, as a request says it: by partition, nodes, who leads first."""

from collections.abc import Mapping, Sequence
from typing import Annotated

from msgspec import Meta

from goqueue.broker.broker import Broker
from goqueue.model.cluster import NodeId
from goqueue.model.errors import Invalid, InvalidAssignment

Assignments = Annotated[
    dict[str, list[str]],
    Meta(
        description='The nodes of each partition that is made, who leads first: {"0": ["node-1", "node-2"]}; '
        "all of them or none. On one node it may only be named itself."
    ),
]


def placement_of(
    broker: Broker, assignments: Mapping[str, Sequence[str]] | None, count: int
) -> list[list[NodeId]]:
    """The nodes of the partitions that a topic of `count` gets, in their order; none: the cluster chooses.

    Whether they are all that are made is for the verb to say, which knows how many there are. Raises Invalid.
    """
    if not assignments:
        return []
    if not broker.is_one_of_several:
        here = broker.config.node_id
        if any(list(nodes) != [here] for nodes in assignments.values()):
            raise Invalid(f"there is no node but {here}; leave replica_assignments out")
        return []
    last = range(count - len(assignments), count)
    if set(assignments) != set(map(str, last)):
        raise InvalidAssignment(
            f"replica_assignments name the partitions that are made, of which {count - 1} is the last, "
            f"without a gap: not {', '.join(sorted(assignments))}"
        )
    return [[NodeId(node) for node in assignments[str(number)]] for number in last]
