"""What was promised of a partition in the search over replicas, and whether it is kept."""

from collections import Counter
from collections.abc import Mapping

from goqueue.core.cluster.replica import Replica
from goqueue.model.cluster import NodeId
from goqueue.model.replication import BecameFollower, BecameLeader, Resigned
from goqueue.testing.rooms.replica_log import Entry, ListedLog
from goqueue.testing.rooms.replica_world import Register, SimulatedNode
from goqueue.testing.whole.partition_history import Violation


class Promises:
    def __init__(
        self, register: Register, nodes: Mapping[NodeId, SimulatedNode], *, is_seen_enough: bool
    ) -> None:
        """`is_seen_enough`: it is enough that those in sync have something in memory."""
        self._register = register
        self._nodes = nodes
        self._is_seen_enough = is_seen_enough
        self.acknowledged: dict[int, Entry] = {}
        self.given_up = 0
        """Before it a leader has deleted messages."""
        self._shown: dict[int, Entry] = {}
        """Every value that anybody has read."""
        self._shown_end = 0
        self._shown_by: dict[NodeId, int] = {}
        self._losses: Counter[Entry] = Counter()
        """How many disks with a message were lost, perhaps before its leader heard that they had had it."""
        self._leaders: dict[int, tuple[NodeId, int]] = {}
        self._first_acks: dict[int, int] = {}
        self._epoch = 0
        self._steps = 0

    def acknowledge(self, node: SimulatedNode, replica: Replica, end_offset: int) -> None:
        """The mark that publishers wait for has moved: whoever waits for less is answered."""
        if not replica.is_leader:
            return
        for offset in [offset for offset in node.publishes if offset < end_offset]:
            waiting = node.publishes.pop(offset)
            if self._may_be_lost(waiting.entry):
                continue
            self._check_copies(waiting.entry)
            before = self.acknowledged.setdefault(offset, waiting.entry)
            if before != waiting.entry:
                raise Violation(f"{before} and {waiting.entry} were both acknowledged at {offset}")
            self._first_acks.setdefault(waiting.entry.epoch, self._steps)

    def _check_copies(self, entry: Entry) -> None:
        """What is acknowledged is on as many disks as was asked for, and those may all be elected."""
        record = self._register.record
        logs = [self._nodes[name].log for name in (*record.isr, *record.elr)]
        copies = sum(entry in log.read(log.start_offset, self._kept_end(log)) for log in logs)
        if copies + self._losses[entry] < self._register.asked_min_isr and self._register.is_min_isr_fixed:
            raise Violation(f"{entry} is acknowledged, and {copies} of those who may be elected have it")

    def answer_polls(self, node: SimulatedNode, replica: Replica, end_offset: int) -> None:
        """A seen mark has moved: polls are answered, unless they began after a newer leader acknowledged."""
        for offset in [offset for offset in node.polls if offset < end_offset]:
            waiting = node.polls.pop(offset)
            for epoch, step in self._first_acks.items():
                if epoch > replica.epoch and step < waiting.since_step:
                    raise Violation(
                        f"{node.name} answered a poll in epoch {replica.epoch} that began after one of epoch "
                        f"{epoch} had acknowledged something"
                    )

    def change_role(self, node: SimulatedNode, effect: BecameLeader | BecameFollower | Resigned) -> None:
        if isinstance(effect, BecameLeader):
            me = (node.name, node.life)
            if self._leaders.setdefault(effect.epoch, me) != me:
                raise Violation(
                    f"epoch {effect.epoch} has two leaders: {self._leaders[effect.epoch]} and {me}"
                )
        # What an earlier leadership took in is refused: it may be stored, and nobody was told so.
        node.publishes.clear()
        node.polls.clear()

    def read(self, node: SimulatedNode, replica: Replica) -> None:
        """Somebody reads all that a node shows, whoever leads."""
        if replica.is_reopening or not replica.is_mark_known:
            return
        log, end_offset = node.log, replica.commit_mark
        if end_offset > log.end_offset:
            raise Violation(f"{node.name} shows offsets up to {end_offset} and ends at {log.end_offset}")
        for offset in range(log.start_offset, end_offset):
            entry = log.entries[offset - log.start_offset]
            if self._shown.setdefault(offset, entry) != entry:
                raise Violation(f"two values at {offset}: {self._shown[offset]} and {entry} on {node.name}")
        is_newest = replica.is_leader and replica.epoch == self._register.record.epoch
        if is_newest and end_offset < self._shown_end:
            raise Violation(
                f"{node.name} shows {end_offset} offsets, and {self._shown_end} were shown before"
            )
        self._shown_end = max(self._shown_end, end_offset)
        self._shown_by[node.name] = end_offset

    def shown_end(self, node: SimulatedNode) -> int:
        """A commit mark that the node may have noted on its disk."""
        return self._shown_by.get(node.name, 0)

    def lose_disk(self, node: SimulatedNode) -> None:
        """A disk is gone. Whoever loses as many as had to be in sync may lose what they held."""
        log = node.log
        self._losses.update(log.read(log.start_offset, log.flushed_offset))
        for offset in [offset for offset, entry in self.acknowledged.items() if self._may_be_lost(entry)]:
            del self.acknowledged[offset]

    def _may_be_lost(self, entry: Entry) -> bool:
        return self._losses[entry] >= self._register.min_isr

    def check(self) -> None:
        self._steps += 1
        record = self._register.record
        if record.epoch < self._epoch:
            raise Violation(f"the epoch fell from {self._epoch} to {record.epoch}")
        self._epoch = record.epoch
        if not {*record.isr, *record.elr} <= set(record.replicas) or set(record.isr) & set(record.elr):
            raise Violation(f"the record is not sound: {record}")
        if record.leader is not None and record.leader not in record.isr:
            raise Violation(f"{record.leader} leads and is not in sync: {record}")
        holders = [name for name in (*record.isr, *record.elr) if not self._nodes[name].is_wiped]
        if not holders and any(offset >= self.given_up for offset in self.acknowledged):
            raise Violation("nobody has what was acknowledged, though fewer disks were lost than had it")
        for name in holders:
            self._check_holds(self._nodes[name])

    def is_whole(self) -> bool:
        """Whether there is a leader, all are in sync, have the same, and show all of it."""
        record = self._register.record
        replicas = [node.replica for node in self._nodes.values() if node.replica is not None]
        if record.leader is None or set(record.isr) != set(record.replicas) or record.elr:
            return False
        leader = self._nodes[record.leader].log
        return (
            all(_is_alike(node.log, leader) for node in self._nodes.values())
            and all(replica.commit_mark == leader.end_offset for replica in replicas)
            and sum(replica.is_leader for replica in replicas) == 1
        )

    def _kept_end(self, log: ListedLog) -> int:
        """What lies before it is kept, whatever the search does to a node."""
        return log.end_offset if self._is_seen_enough else log.flushed_offset

    def _check_holds(self, node: SimulatedNode) -> None:
        """Whoever is in sync, or may be elected, has all that was acknowledged where it is kept."""
        log = node.log
        if log.start_offset > self.given_up:
            raise Violation(f"{node.name} starts at {log.start_offset}; only {self.given_up} was given up")
        if log.flushed_offset < self.given_up:
            raise Violation(f"{node.name} ends at {log.flushed_offset}, and {self.given_up} was given up")
        for offset, entry in self.acknowledged.items():
            if offset < log.start_offset:
                continue
            if offset >= self._kept_end(log):
                raise Violation(
                    f"{entry} was acknowledged at {offset}, and {node.name} does not have it safe"
                )
            if log.entries[offset - log.start_offset] != entry:
                raise Violation(f"{entry} was acknowledged at {offset}, and {node.name} has another there")


def _is_alike(log: ListedLog, other: ListedLog) -> bool:
    """Whether two logs end alike; one of them may have given up more than the other has heard of."""
    start_offset = max(log.start_offset, other.start_offset)
    return log.read(start_offset, log.end_offset) == other.read(start_offset, other.end_offset)
