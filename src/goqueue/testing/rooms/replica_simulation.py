"""A random search over the rules of replication: one partition, three nodes, and all that can go wrong.

Messages are lost, doubled and late; power cuts take what was not durable; nodes hear late of what is agreed;
a session ends though its node lives; disks are replaced; leaders are replaced for no reason. After every step
the promises are looked at. The machines are those that nodes run; only the world around them is made up.

In some seeds publishers are answered by the seen mark (`acks.all.waits.for=written`). There processes are
killed and machines keep their power and disks: of more nothing is promised.
"""

from collections import Counter
from random import Random

from goqueue.core.cluster.elections import candidates, elect, fit_record
from goqueue.core.cluster.isr import without_copy
from goqueue.core.cluster.replica import Replica
from goqueue.core.cluster.rules import ALL_RULES, Rules
from goqueue.model.cluster import NodeId
from goqueue.model.replication import (
    Ack,
    BecameFollower,
    BecameLeader,
    BeginAt,
    CommitMarkMoved,
    CutTo,
    Effect,
    Follow,
    Following,
    FollowLater,
    Frames,
    MoveStart,
    ProposeRecord,
    Resigned,
    SeenMarkMoved,
    Send,
    WriteFrames,
)
from goqueue.testing.rooms.replica_log import Entry
from goqueue.testing.rooms.replica_promises import Promises
from goqueue.testing.rooms.replica_world import Packet, Proposal, Register, SimulatedNode, Waiting
from goqueue.testing.whole.partition_history import Violation
from goqueue.testing.world.machine import Tell, replayed

NODES = (NodeId("a"), NodeId("b"), NodeId("c"))
PACKETS_MAX = 60
"""More are lost: a network that keeps everything would only tell of the past."""
DELIVERIES_MAX = 8
MANY_DISKS = 4
"""So many times as many are lost where rules are looked at that are about lost disks."""
LATE_SHARE = 0.2
WRITTEN_SHARE = 0.25
"""In so many seeds publishers do not wait for disks."""
ROUNDS_OF_HEALING = 150
WORK = {
    "append": 20,
    "flush": 24,
    "pump": 20,
    "deliver": 40,
    "follow": 6,
    "learn": 16,
    "read": 4,
    "tick": 2,
    "reopen": 6,
    "control": 5,
    "start": 4,
}
MISFORTUNES = {
    "elect": 1,
    "lose": 3,
    "double": 2,
    "delay": 6,
    "stop": 1,
    "fail flush": 0.5,
    "end session": 0.7,
    "retain": 0.5,
    "replace disk": 0.7,
    "min isr": 0.4,
}
HARSHNESS = (0.3, 1, 2)
"""How often misfortunes come, from a calm world to one that has little time for work."""


def simulate_replicas(
    seed: int,
    steps: int,
    *,
    tell: Tell | None = None,
    rules: Rules = ALL_RULES,
    notices_new_disks: bool = True,
    loses_many_disks: bool = False,
) -> Counter[str]:
    """Run one seed; counts what happened, or raises Violation with the command that repeats it."""
    simulation = ReplicaSimulation(
        seed,
        tell=tell,
        rules=rules,
        notices_new_disks=notices_new_disks,
        loses_many_disks=loses_many_disks,
    )
    try:
        return simulation.run(steps)
    except Violation as violation:
        raise replayed(violation, seed, steps, "WHAT=replicas") from violation


class ReplicaSimulation:
    def __init__(
        self,
        seed: int,
        *,
        tell: Tell | None,
        rules: Rules,
        notices_new_disks: bool,
        loses_many_disks: bool = False,
    ) -> None:
        self._random = Random(seed)
        self._rules = rules
        self._notices_new_disks = notices_new_disks
        self._tell = tell
        self.counts: Counter[str] = Counter()
        # Disks are lost only where two copies must be in sync; how many must be changes only where none is.
        self._is_seen_enough = not loses_many_disks and Random(f"written {seed}").random() < WRITTEN_SHARE
        draws_disks = self._random.random() < 0.5 or loses_many_disks
        self._has_new_disks = draws_disks and not self._is_seen_enough
        asked = 2 if self._has_new_disks else self._random.choice((1, 2))
        self._register = Register(NODES, asked_min_isr=asked, is_min_isr_fixed=self._has_new_disks)
        self._nodes = {name: SimulatedNode(name) for name in NODES}
        self._packets: list[Packet | Proposal] = []
        self._late: list[Packet] = []
        """What comes over old connections, long after new ones are up."""
        self._promises = Promises(self._register, self._nodes, is_seen_enough=self._is_seen_enough)
        self._number = 0
        self._step = 0
        harshness = self._random.choice(HARSHNESS)
        weights = WORK | {what: weight * harshness for what, weight in MISFORTUNES.items()}
        weights["replace disk"] *= MANY_DISKS if loses_many_disks else 1
        del weights["min isr" if self._has_new_disks else "replace disk"]
        if self._is_seen_enough:
            del weights["fail flush"]
        self._store_late_share = self._random.choice((0.1, 0.5, 0.9))
        self._deaf = self._random.choice((None, *NODES))
        """Who hears of the record much later than others."""
        self._actions, self._weights = list(weights), list(weights.values())

    def run(self, steps: int) -> Counter[str]:
        for node in self._nodes.values():
            self._start(node)
        for self._step in range(steps):
            (what,) = self._random.choices(self._actions, self._weights)
            self._act(what, self._choose_node(what))
            self._promises.check()
        self._heal()
        self.counts["acknowledged"] += len(self._promises.acknowledged)
        self.counts["epochs"] += self._register.record.epoch
        return self.counts

    def _heal(self) -> None:
        """Nothing goes wrong any more: soon everything is served, and all have the same."""
        self._store_late_share = 0.0
        self._packets = [packet for packet in self._packets if isinstance(packet, Proposal)]
        for node in self._nodes.values():
            if node.replica is not None:
                for peer in NODES:
                    node.replica.disconnected(peer)
                self._carry_out(node, node.replica.begin_session())
        for _ in range(ROUNDS_OF_HEALING):
            self._control("control")
            for node in self._nodes.values():
                if node.replica is None:
                    self._start(node)
                elif node.name not in self._register.alive:
                    self._register_anew(node, node.replica)
            for node in self._nodes.values():
                assert node.replica is not None, "it was started"
                if node.replica.is_reopening:
                    self._reopen(node, node.replica)
                self._learn(node, node.replica)
                if node.asks_again:
                    node.asks_again = False
                    self._carry_out(node, node.replica.begin_session())
                self._pump(node, node.replica)
                node.log.flush()
                self._carry_out(node, node.replica.log_moved())
            for _ in range(len(self._packets)):
                self._move_packet("deliver")
            self._promises.check()
            if self._promises.is_whole():
                return
        if self._register.record.isr or self._register.record.elr:
            raise Violation(f"nothing goes wrong any more, and it does not heal: {self._register.record}")

    def _choose_node(self, what: str) -> SimulatedNode:
        """Who does it: leaders write, who is down starts; where there is none, nothing comes of it."""
        nodes = list(self._nodes.values())
        if what in ("append", "pump", "retain"):
            able = [node for node in nodes if node.replica is not None and node.replica.is_leader]
        elif what == "start":
            able = [node for node in nodes if node.replica is None]
        else:
            able = nodes
        return self._random.choice(able or nodes)

    def _act(self, what: str, node: SimulatedNode) -> None:
        match what:
            case "deliver":
                for _ in range(self._random.randint(1, DELIVERIES_MAX)):
                    self._move_packet(what)
                if self._late and self._random.random() < LATE_SHARE:
                    self._deliver(self._late.pop(self._random.randrange(len(self._late))))
            case "lose" | "double" | "delay":
                self._move_packet(what)
            case "control" | "elect" | "min isr":
                self._control(what)
            case "start" if node.replica is None:
                self._start(node)
            case "replace disk":
                self._replace_disk(node)
            case "end session":
                self._end_session(node)
            case _ if node.replica is not None:
                self._act_up(what, node, node.replica)

    def _act_up(self, what: str, node: SimulatedNode, replica: Replica) -> None:
        """What a node does that is up."""
        match what:
            case "append" if replica.is_leader:
                self._append(node, replica)
            case "flush" if not replica.is_reopening:
                node.log.flush()
                self._carry_out(node, replica.log_moved())
            case "pump":
                self._pump(node, replica)
            case "follow":
                self._carry_out(node, replica.begin_session())
            case "learn" if node.name != self._deaf or self._random.random() < 0.1:
                self._learn(node, replica)
            case "read":
                self._promises.read(node, replica)
            case "tick":
                self._carry_out(node, replica.tick(now_ms=self._step))
            case "reopen" if replica.is_reopening:
                self._reopen(node, replica)
            case "stop":
                self._note("stopped", node)
                kept = self._random.randint(node.log.flushed_offset, node.log.end_offset)
                kept = self._random.choice((node.log.flushed_offset, kept))
                node.stop(kept_offset=node.log.end_offset if self._is_seen_enough else kept)
            case "fail flush" if not replica.is_reopening:
                self._note("failed flush", node)
                self._carry_out(node, replica.resign(is_reopening=True))
                node.reopening = CutTo(self._random.randint(node.log.flushed_offset, node.log.end_offset))
                if not replica.is_reopening:
                    self._reopen(node, replica)  # Without the rule it goes on at once.
            case "retain" if replica.is_leader and replica.is_mark_known:
                offset = self._random.randint(node.log.start_offset, replica.commit_mark)
                self._promises.given_up = max(self._promises.given_up, offset)
                node.log.move_start(offset)
                self._carry_out(node, replica.log_moved())

    def _append(self, node: SimulatedNode, replica: Replica) -> None:
        if not replica.has_enough_replicas and self._random.random() < 0.8:
            return  # Somebody with less to lose writes all the same.
        self._number += 1
        entry = Entry(replica.epoch, self._number)
        offset = node.log.end_offset
        node.log.append([entry])
        node.publishes[offset] = node.polls[offset] = Waiting(entry, self._step)
        self._carry_out(node, replica.log_moved())

    def _pump(self, node: SimulatedNode, replica: Replica) -> None:
        for target in replica.followers:
            first = replica.next_offset(target)
            if first is None or first > node.log.end_offset:
                continue  # Without a rule, a leader may have lost what it has sent.
            end = min(node.log.end_offset, first + self._random.randint(0, 4))
            frames = replica.frames_to(target, end)
            packet = Packet(node.name, node.incarnation, target, frames, tuple(node.log.read(first, end)))
            self._packets.append(packet)

    def _learn(self, node: SimulatedNode, replica: Replica) -> None:
        history = self._register.history
        if node.known == len(history):
            node.revision = self._register.revision
        else:
            node.known = self._random.randint(node.known + 1, len(history))
            node.revision = self._register.next_revision(node.known)
            revision, record = history[node.known - 1]
            self._carry_out(node, replica.take_min_isr(self._register.min_isr))
            self._carry_out(node, replica.take_record(record, revision, now_ms=self._step))

    def _reopen(self, node: SimulatedNode, replica: Replica) -> None:
        match node.reopening:
            case CutTo(end_offset):
                node.log.cut_to(min(end_offset, node.log.end_offset))
            case BeginAt(start_offset):
                node.log.begin_at(start_offset)
        node.reopening = None
        self._carry_out(node, replica.reopened(now_ms=self._step))

    def _start(self, node: SimulatedNode) -> None:
        self._note("started", node)
        if node.is_wiped and self._notices_new_disks:
            self._register.put(without_copy(self._register.record, node.name))
        node.is_wiped = False
        commit_mark = self._random.choice((0, self._promises.shown_end(node)))
        node.start(self._register, self._rules, commit_mark=commit_mark, is_seen_enough=self._is_seen_enough)
        node.revision = self._register.revision
        self._learn_all(node)

    def _learn_all(self, node: SimulatedNode) -> None:
        """As it loads the record before it is ready, or again when a proposal was refused."""
        assert node.replica is not None, "only a node that is up hears anything"
        node.known = len(self._register.history)
        revision, record = self._register.history[-1]
        self._carry_out(node, node.replica.take_record(record, revision, now_ms=self._step))

    def _replace_disk(self, node: SimulatedNode) -> None:
        record = self._register.record
        holders = {name for name in {*record.isr, *record.elr} if not self._nodes[name].is_wiped}
        if holders == {node.name} and self._random.random() < 0.8:
            return  # What comes after the last copy is not worth much of a search.
        self._note("new disk", node)
        self._promises.lose_disk(node)
        node.stop(kept_offset=0)
        node.replace_disk()

    def _end_session(self, node: SimulatedNode) -> None:
        """The store no longer believes that a node is alive; if it is, it registers and connects anew."""
        self._note("session ended", node)
        self._register.end_session(node.name)
        if node.replica is not None and self._random.random() < 0.5:
            self._register_anew(node, node.replica)

    def _register_anew(self, node: SimulatedNode, replica: Replica) -> None:
        node.incarnation = replica.incarnation = self._register.register(node.name)
        self._carry_out(node, replica.begin_session())

    def _control(self, what: str) -> None:
        register, record = self._register, self._register.record
        if what == "min isr":
            self._note("min isr changed")
            register.asked_min_isr = 3 - register.asked_min_isr
        elif what == "control":
            for name, node in self._nodes.items():
                if node.replica is None and self._random.random() < 0.5:
                    register.end_session(name)
                elif node.replica is not None and name not in register.alive and self._random.random() < 0.3:
                    self._register_anew(node, node.replica)
            register.put(fit_record(record, register.alive, min_isr=register.min_isr))
        elif ready := candidates(record, register.alive):
            register.put(elect(record, self._random.choice(ready), register.alive))

    def _move_packet(self, what: str) -> None:
        if not self._packets:
            return
        # Mostly in order; now and then one is late, or overtakes all others.
        index = 0 if self._random.random() < 0.8 else self._random.randrange(len(self._packets))
        if what == "double":
            self._packets.append(self._packets[index])
            return
        packet = self._packets.pop(index)
        if isinstance(packet, Packet):
            if what == "deliver":
                self._deliver(packet)
            elif what == "delay":
                self._late.append(packet)
        elif what != "deliver" or self._random.random() < self._store_late_share:
            self._packets.append(
                packet
            )  # It takes its time, and without an answer the same is proposed again.
        else:
            self._propose(packet)
        while len(self._packets) > PACKETS_MAX and isinstance(self._packets[0], Packet):
            del self._packets[0]

    def _propose(self, proposal: Proposal) -> None:
        made = self._register.propose(proposal.proposal)
        self._note("proposal made" if made else "proposal refused")
        node = self._nodes[proposal.sender]
        if node.replica is None or node.life != proposal.life:
            return
        if self._random.random() < 0.2:
            self._packets.append(proposal)  # Nobody hears the answer, so the same is proposed again.
        elif made or self._register.record_revision > node.replica.revision:
            self._learn_all(node)
        else:
            self._carry_out(node, node.replica.refused(proposal.proposal))

    def _deliver(self, packet: Packet) -> None:
        node = self._nodes[packet.target]
        replica, sender, message = node.replica, packet.sender, packet.message
        if replica is None:
            return
        match message:
            case Follow():
                effects = replica.follow(sender, packet.incarnation, message, now_ms=self._step)
            case Following():
                effects = replica.following(sender, message)
            case Frames():
                effects = replica.frames(sender, message)
            case Ack():
                effects = replica.ack(sender, packet.incarnation, message, now_ms=self._step)
        self._carry_out(node, effects, packet.entries)

    def _carry_out(self, node: SimulatedNode, effects: list[Effect], entries: tuple[Entry, ...] = ()) -> None:
        replica = node.replica
        assert replica is not None, "only a node that is up has effects"
        for effect in effects:
            match effect:
                case Send():
                    self._packets.append(Packet(node.name, node.incarnation, effect.target, effect.message))
                case WriteFrames():
                    assert len(entries) == effect.end_offset - effect.base_offset, (
                        "frames are as they were named"
                    )
                    node.log.append(entries)
                case CutTo() | BeginAt():
                    node.reopening = effect
                case MoveStart():
                    node.log.move_start(effect.start_offset)
                case ProposeRecord():
                    self._packets.append(Proposal(node.name, node.life, effect))
                case CommitMarkMoved():
                    self._promises.acknowledge(node, replica, effect.offset)
                case SeenMarkMoved():
                    self._promises.answer_polls(node, replica, effect.offset)
                    if self._is_seen_enough:
                        self._promises.acknowledge(node, replica, effect.offset)
                case FollowLater():
                    node.asks_again = True
                case BecameLeader() | BecameFollower() | Resigned():
                    self._promises.change_role(node, effect)
        if any(isinstance(effect, WriteFrames) for effect in effects):
            self._carry_out(node, replica.log_moved())

    def _note(self, what: str, node: SimulatedNode | None = None) -> None:
        self.counts[what] += 1
        if self._tell is not None:
            self._tell(what if node is None else f"{what} {node.name}")
