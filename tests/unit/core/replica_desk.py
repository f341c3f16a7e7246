"""Replicas side by side on a desk, whose messages are carried by hand."""

from itertools import count
from uuid import UUID

from goqueue.core.cluster.replica import Replica
from goqueue.model.cluster import Incarnation, NodeId, PartitionRecord
from goqueue.model.replication import (
    Ack,
    BeginAt,
    CutTo,
    Effect,
    Follow,
    Following,
    Frames,
    Message,
    MoveStart,
    ProposeRecord,
    Send,
)
from goqueue.testing.rooms.replica_log import Entry, ListedLog

TOPIC = UUID(int=7)
A, B, C = NodeId("a"), NodeId("b"), NodeId("c")
INCARNATIONS = {A: Incarnation(11), B: Incarnation(12), C: Incarnation(13)}


def led_by(
    leader: NodeId | None,
    *,
    epoch: int = 1,
    isr: tuple[NodeId, ...] = (A, B, C),
    elr: tuple[NodeId, ...] = (),
    replicas: tuple[NodeId, ...] = (A, B, C),
) -> PartitionRecord:
    incarnation = Incarnation(0) if leader is None else INCARNATIONS[leader]
    return PartitionRecord(
        leader=leader, epoch=epoch, replicas=replicas, isr=isr, elr=elr, incarnation=incarnation
    )


class Desk:
    """Replicas, their logs, what they said and what they asked for; frames go when `pump` is called."""

    def __init__(
        self,
        *nodes: NodeId,
        min_isr: int = 2,
        lag_max_ms: int = 10_000,
        is_seen_enough: bool = False,
        logs: dict[NodeId, ListedLog] | None = None,
    ) -> None:
        self.logs = {node: (logs or {}).get(node, ListedLog()) for node in nodes}
        self.replicas = {
            node: Replica(
                node,
                INCARNATIONS[node],
                TOPIC,
                0,
                self.logs[node],
                self,
                sessions=count(1),
                commit_mark=0,
                min_isr=min_isr,
                lag_max_ms=lag_max_ms,
                is_seen_enough=is_seen_enough,
            )
            for node in nodes
        }
        self.now_ms = 0
        self.revision = 20
        """What all of them have heard of."""
        self.done: dict[NodeId, list[Effect]] = {node: [] for node in nodes}
        self.cut_off: set[NodeId] = set()

    def take_record(self, record: PartitionRecord, revision: int, *nodes: NodeId) -> None:
        for node in nodes or tuple(self.replicas):
            replica = self.replicas[node]
            self.carry_out(node, replica.take_record(record, revision, now_ms=self.now_ms))

    def append(self, node: NodeId, *numbers: int) -> None:
        replica = self.replicas[node]
        self.logs[node].append(Entry(replica.epoch, number) for number in numbers)
        self.carry_out(node, replica.log_moved())

    def flush(self, *nodes: NodeId) -> None:
        for node in nodes or tuple(self.replicas):
            self.logs[node].flush()
            self.carry_out(node, self.replicas[node].log_moved())

    def pump(self, leader: NodeId) -> None:
        """Send followers all that they lack, and the news."""
        replica = self.replicas[leader]
        for follower in replica.followers:
            if follower not in self.cut_off:
                self.say(leader, follower, replica.frames_to(follower, self.logs[leader].end_offset))

    def say(self, sender: NodeId, target: NodeId, message: Message) -> None:
        if target not in self.replicas or {sender, target} & self.cut_off:
            return
        replica, incarnation = self.replicas[target], INCARNATIONS[sender]
        match message:
            case Follow():
                effects = replica.follow(sender, incarnation, message, now_ms=self.now_ms)
            case Following():
                effects = replica.following(sender, message)
            case Ack():
                effects = replica.ack(sender, incarnation, message, now_ms=self.now_ms)
            case Frames():
                effects = replica.frames(sender, message)
                if message.end_offset > self.logs[target].end_offset and effects:
                    wanted = self.logs[sender].read(message.base_offset, message.end_offset)
                    self.logs[target].append(wanted)
                    effects += replica.log_moved()
        self.carry_out(target, effects)

    def carry_out(self, node: NodeId, effects: list[Effect]) -> None:
        self.done[node] += effects
        for effect in effects:
            match effect:
                case Send():
                    self.say(node, effect.target, effect.message)
                case CutTo():
                    self.logs[node].cut_to(effect.end_offset)
                    self.carry_out(node, self.replicas[node].reopened(now_ms=self.now_ms))
                case BeginAt():
                    self.logs[node].begin_at(effect.start_offset)
                    self.carry_out(node, self.replicas[node].reopened(now_ms=self.now_ms))
                case MoveStart():
                    self.logs[node].move_start(effect.start_offset)

    def taken(self, node: NodeId) -> list[Effect]:
        """What a replica has asked for since the last look, but for what it said."""
        effects: list[Effect] = [effect for effect in self.done[node] if not isinstance(effect, Send)]
        self.done[node].clear()
        return effects

    def proposals(self, node: NodeId) -> list[ProposeRecord]:
        return [effect for effect in self.taken(node) if isinstance(effect, ProposeRecord)]
