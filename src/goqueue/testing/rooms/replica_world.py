"""A world of one partition: a register of what is agreed, nodes with logs and replicas, and packets.

Nothing here decides what happens; it only happens. A node that is down has its log and nothing else. The
register is a store with one record in it and the registrations of nodes.
"""

from dataclasses import dataclass
from itertools import count
from typing import NamedTuple
from uuid import UUID

from goqueue.core.cluster.elections import Alive
from goqueue.core.cluster.isr import min_isr_of
from goqueue.core.cluster.replica import Replica
from goqueue.core.cluster.rules import Rules
from goqueue.model.cluster import NO_INCARNATION, Incarnation, NodeId, NodeState, PartitionRecord
from goqueue.model.replication import BeginAt, CutTo, Message, ProposeRecord
from goqueue.testing.rooms.replica_log import Entry, ListedLog

TOPIC_ID = UUID(int=1)
LAG_MAX_MS = 100


class Register:
    """What is agreed: the record and its revisions, who is registered, and how many must be in sync."""

    def __init__(self, nodes: tuple[NodeId, ...], *, asked_min_isr: int, is_min_isr_fixed: bool) -> None:
        self.revision = 1
        self.asked_min_isr = asked_min_isr
        self.is_min_isr_fixed = is_min_isr_fixed
        self.alive: dict[NodeId, Alive] = {}
        self.record = PartitionRecord(leader=None, epoch=0, replicas=nodes, isr=nodes)
        self.record_revision = 1
        self.history: list[tuple[int, PartitionRecord]] = [(1, self.record)]

    @property
    def min_isr(self) -> int:
        return min_isr_of(self.record, self.asked_min_isr)

    def register(self, node: NodeId) -> Incarnation:
        self.revision += 1
        incarnation = Incarnation(self.revision)
        self.alive[node] = Alive(incarnation, NodeState.READY)
        return incarnation

    def end_session(self, node: NodeId) -> None:
        self.alive.pop(node, None)

    def next_revision(self, known: int) -> int:
        """Up to where whoever knows so much of the record's history has heard of everything else."""
        return self.history[known][0] - 1 if known < len(self.history) else self.revision

    def put(self, record: PartitionRecord) -> None:
        if record != self.record:
            self.revision += 1
            self.record, self.record_revision = record, self.revision
            self.history.append((self.revision, record))

    def propose(self, proposal: ProposeRecord) -> bool:
        """Whether the change was made; if not, what it rests on is outdated."""
        if proposal.revision != self.record_revision:
            return False
        if proposal.joining is not None:
            node, incarnation = proposal.joining
            alive = self.alive.get(node)
            if alive is None or alive.incarnation != incarnation:
                return False
        self.revision += 1
        self.record, self.record_revision = proposal.record, self.revision
        self.history.append((self.revision, proposal.record))
        return True


class Packet(NamedTuple):
    """A message on its way, with the bytes of its frames."""

    sender: NodeId
    incarnation: Incarnation
    target: NodeId
    message: Message
    entries: tuple[Entry, ...] = ()


class Proposal(NamedTuple):
    """A change of the record on its way to the register."""

    sender: NodeId
    life: int
    proposal: ProposeRecord


@dataclass(slots=True)
class Waiting:
    """Somebody who waits for an offset, and since when."""

    entry: Entry
    since_step: int


class SimulatedNode:
    """A node: its disk, and while it is up its replica."""

    def __init__(self, name: NodeId) -> None:
        self.name = name
        self.log = ListedLog()
        self.is_wiped = False
        """Its disk is new, and it has not been up since."""
        self.life = 0
        self.incarnation = NO_INCARNATION
        self.replica: Replica | None = None
        self.reopening: CutTo | BeginAt | None = None
        """What its log is to become, before anything else happens to it."""
        self.known = 0
        """So much of the record's history it has heard of."""
        self.revision = 0
        """Up to which revision it has heard of everything."""
        self.asks_again = False
        """It was told to ask later."""
        self.publishes: dict[int, Waiting] = {}
        self.polls: dict[int, Waiting] = {}

    def start(
        self, register: Register, rules: Rules, *, commit_mark: int, is_seen_enough: bool = False
    ) -> Replica:
        self.life += 1
        self.incarnation = register.register(self.name)
        self.known = self.revision = 0
        self.replica = Replica(
            self.name,
            self.incarnation,
            TOPIC_ID,
            0,
            self.log,
            self,
            sessions=count(1),
            commit_mark=max(self.log.start_offset, min(commit_mark, self.log.flushed_offset)),
            min_isr=register.min_isr,
            lag_max_ms=LAG_MAX_MS,
            is_seen_enough=is_seen_enough,
            rules=rules,
        )
        return self.replica

    def stop(self, *, kept_offset: int) -> None:
        """The process is gone, and so is what was not on the disk, from an offset on."""
        self.replica = None
        self.reopening = None
        self.publishes.clear()
        self.polls.clear()
        self.log.cut_to(max(kept_offset, self.log.flushed_offset))
        self.log.flush()

    def replace_disk(self) -> None:
        self.log = ListedLog()
        self.is_wiped = True
