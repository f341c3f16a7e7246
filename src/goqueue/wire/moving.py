"""Moving partitions between nodes: what is ordered, and how far it is."""

from typing import Annotated, Generic

from msgspec import Meta, Struct

from goqueue.wire.times import Time


class PartitionMove(Struct, frozen=True):
    """A partition, and the nodes it is to be on."""

    topic: str
    partition: int
    new_replicas: Annotated[list[str], Meta(description="By their ids; who should lead first.")]
    old_replicas: Annotated[
        list[str], Meta(description="Where it is believed to be: anything else is refused. Empty: as it is.")
    ] = []


class TopicSpread(Struct, frozen=True):
    """A topic whose partitions are to be spread evenly; what may stay, stays."""

    topic: str
    nodes: Annotated[list[str], Meta(description="Over these; empty: over all that are ready.")] = []
    copies: Annotated[int, Meta(description="Of each partition; 0: as many as it has.", ge=0, le=1000)] = 0


class ReassignmentOrdered(Struct, frozen=True):
    success: bool
    reassignment_id: str
    message: str


class ReassignmentRequest(Struct, frozen=True):
    """What was ordered."""

    partitions: list[PartitionMove]
    throttle_bytes_per_sec: Annotated[int, Meta(description="0: as fast as it goes.")]
    timeout_per_partition_sec: int


class MoveProgress(Struct, Generic[Time], frozen=True, omit_defaults=True):
    """How far one partition is."""

    topic: str
    partition: int
    state: Annotated[str, Meta(description="pending, catching_up, completed, failed or canceled.")]
    leader_offset: Annotated[int, Meta(description="The end of the leader's log; -1: not known now.")] = -1
    replica_offsets: Annotated[
        dict[str, int], Meta(description="What each node that comes has on its disk.")
    ] = {}
    catchup_percent: float = 0.0
    bytes_transferred: Annotated[
        int, Meta(description="To the nodes that come, since they last connected.")
    ] = 0
    started_at: Time | None = None
    completed_at: Time | None = None
    error: str = ""


class Reassignment(Struct, Generic[Time], frozen=True, omit_defaults=True):
    """A reassignment, and how far it is."""

    id: str
    state: Annotated[str, Meta(description="pending, in_progress, completed, failed or canceled.")]
    request: ReassignmentRequest
    progress: Annotated[dict[str, MoveProgress[Time]], Meta(description="By topic and number: orders-0.")]
    started_at: Time
    completed_at: Time | None = None
    error: str = ""


class ReassignmentList(Struct, Generic[Time], frozen=True):
    """Those that are under way and the last ones that are over, the newest first."""

    count: int
    reassignments: list[Reassignment[Time]]


class Done(Struct, frozen=True):
    success: bool
    message: str


class NodeRetirement(Struct, frozen=True):
    """How far a node is on its way out of the cluster."""

    node: str
    state: Annotated[str, Meta(description="none, in_progress or retired.")]
    partitions_left: Annotated[int, Meta(description="Of which it still has a copy.")]
    partitions_moving: int
    partitions_stuck: Annotated[
        list[str], Meta(description="Of which it has the only whole copy, and it is not alive.")
    ]


class PartitionElection(Struct, frozen=True, omit_defaults=True):
    """What came of one election."""

    topic: str
    partition: int
    elected: bool
    code: str = ""
    error: str = ""


class Elections(Struct, frozen=True):
    results: list[PartitionElection]
