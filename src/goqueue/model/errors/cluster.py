"""Errors about nodes, who leads and coordinates, where copies lie, and the calls between nodes."""

from goqueue.model.errors.families import Busy, Fenced, NotFound, Unavailable


class LeaderEpochFenced(Fenced):
    """The caller speaks of a leader epoch that has passed."""

    code = "leader_epoch_fenced"


class LeaderEpochUnknown(Unavailable):
    """The caller knows of a newer leader epoch than this node."""

    code = "leader_epoch_unknown"


class NotLeader(Unavailable):
    """This node does not lead the partition: refresh your metadata, and ask the one that does."""

    code = "not_leader"

    def __init__(self, topic: str, partition: int, leader: str | None = None) -> None:
        who = f"{leader} does" if leader else "nobody does now"
        super().__init__(f"this node does not lead {topic}/{partition}; {who}")
        self.topic = topic
        self.partition = partition
        self.leader = leader


class LeadershipLost(Unavailable):
    """The partition's leader was replaced before the write counted: it may be kept, or not.

    Unlike `NotLeader` it says that something was written. Who asks again without a sequence number may have
    it twice.
    """

    code = "leadership_lost"

    def __init__(self, topic: str, partition: int, leader: str | None = None) -> None:
        who = f"; {leader} leads it now" if leader else ""
        super().__init__(f"this node has lost the lead of {topic}/{partition} before a write counted{who}")
        self.topic = topic
        self.partition = partition
        self.leader = leader


class NoLeader(Unavailable):
    """No replica of the partition can lead it now: try again in a moment."""

    code = "no_leader"

    def __init__(self, topic: str, partition: int) -> None:
        super().__init__(f"{topic}/{partition} has no leader now")
        self.topic = topic
        self.partition = partition


class NotCoordinator(Unavailable):
    """Another node coordinates this group or transaction: find it, and ask there."""

    code = "not_coordinator"


class CoordinatorLoading(Unavailable):
    """This node has just become the coordinator and reads what it has to know: try again in a moment."""

    code = "coordinator_loading"


class NotController(Unavailable):
    """Another node decides for the cluster: find it, and ask there."""

    code = "not_controller"


class NodeNotFound(NotFound):
    """The cluster has no node of this name."""

    code = "node_not_found"

    def __init__(self, node: str) -> None:
        super().__init__(f"the cluster has no node {node}")
        self.node = node


class ReassignmentNotFound(NotFound):
    """There is no such reassignment, or the partition is not being moved."""

    code = "reassignment_not_found"


class ReassignmentInProgress(Busy):
    """The partition is being moved already: wait for the end of that, or cancel it."""

    code = "reassignment_in_progress"

    def __init__(self, topic: str, partition: int) -> None:
        super().__init__(f"{topic}/{partition} is being moved already; wait for it, or cancel that first")
        self.topic = topic
        self.partition = partition


class ReassignmentOver(Fenced):
    """The reassignment has come to its end: there is nothing to cancel."""

    code = "reassignment_over"


class ElectionNotNeeded(Fenced):
    """The partition is led as it should be."""

    code = "election_not_needed"

    def __init__(self, topic: str, partition: int, leader: str) -> None:
        super().__init__(f"{topic}/{partition} is led by {leader}: there is nothing to elect")
        self.topic = topic
        self.partition = partition
        self.leader = leader


class PreferredLeaderAway(Unavailable):
    """The node that should lead the partition is away or not in sync."""

    code = "preferred_leader_not_available"

    def __init__(self, topic: str, partition: int, node: str) -> None:
        super().__init__(f"{node}, which should lead {topic}/{partition}, is not ready or not in sync")
        self.topic = topic
        self.partition = partition
        self.node = node


class NoEligibleLeader(Unavailable):
    """None of the partition's replicas is alive."""

    code = "eligible_leaders_not_available"

    def __init__(self, topic: str, partition: int) -> None:
        super().__init__(f"no replica of {topic}/{partition} is alive")
        self.topic = topic
        self.partition = partition


class NotEnoughReplicas(Unavailable):
    """Fewer replicas are in sync than a write with acks=all asks for; nothing was written."""

    code = "not_enough_replicas"

    def __init__(self, topic: str, partition: int) -> None:
        super().__init__(f"too few replicas of {topic}/{partition} are in sync; nothing was written")
        self.topic = topic
        self.partition = partition


class NotEnoughReplicasAfterAppend(Unavailable):
    """It was written here, and then too few replicas were in sync: it may come to count, or not."""

    code = "not_enough_replicas_after_append"

    def __init__(self, topic: str, partition: int) -> None:
        super().__init__(f"too few replicas of {topic}/{partition} are in sync; what was written may be lost")
        self.topic = topic
        self.partition = partition


class NodeUnreachable(Unavailable):
    """There is no connection to the node that should answer this; it was not asked."""

    code = "node_unreachable"

    def __init__(self, node: str) -> None:
        super().__init__(f"node {node} cannot be reached")
        self.node = node


class AnswerLost(Unavailable):
    """The node that should answer this was asked and did not: it may have been done, or not."""

    code = "answer_lost"

    def __init__(self, node: str, why: str) -> None:
        super().__init__(f"nobody knows whether node {node} has done it: {why}")
        self.node = node


class CallFailed(Unavailable):
    """The node that should answer this has failed at it: its log tells more."""

    code = "call_failed"


class NodeBusy(Busy):
    """Too much is under way to the node that should answer this: try again in a moment."""

    code = "node_busy"

    def __init__(self, node: str) -> None:
        super().__init__(f"too much is under way to node {node}: try again in a moment")
        self.node = node


class NoNodeReady(Unavailable):
    """No node of the cluster is ready to hold anything: try again in a moment."""

    code = "no_node_ready"

    def __init__(self) -> None:
        super().__init__("no node of the cluster is ready; try again in a moment")


class CannotJoin(Fenced):
    """This node cannot be part of the cluster as it is: its folder, its id or the cluster is wrong."""

    code = "cannot_join"
