"""Three to five brokers on one loop, and all that can happen to them: the promises of a cluster, from a seed.

Each node has its own disk, clock and chance; network and store are simulated with their faults. Clients
publish where they believe a partition to be led, or at any node, and read anywhere; groups take messages and
commit (`cluster_groups.py`), often of partitions that their coordinator has no copy of; people move
partitions, elect leaders and retire nodes (`cluster_operators.py`). Nodes lose power, are killed, stopped,
cut off, clogged, reset; the store goes away or ends sessions; syncs fail; a disk is replaced. In the end all
is mended, and must heal.

In some seeds publishers do not wait for disks (`acks.all.waits.for=written`): what they were told of is kept
through all of that, but for what no disk had when a node lost its power. Syncs do not fail there.
"""

import asyncio
import gc
from collections import Counter
from random import Random

from goqueue.broker.broker import Broker
from goqueue.broker.forwarding.at_home import at_home
from goqueue.broker.replication.replicated import Replicated
from goqueue.broker.storage.data_folder import LOGS_FOLDER
from goqueue.broker.storage.partition import Partition
from goqueue.broker.topics.verbs import create_topic
from goqueue.broker.write.publish import publish
from goqueue.core.cluster.values import ORDERS, PARTS, decode_part, parsed_part_key, part_key
from goqueue.log.reading import from_disk
from goqueue.model.cluster import NodeId, PartitionRecord
from goqueue.model.commands import Placed, Publish, Published
from goqueue.model.errors import Corrupt, GoQueueError, NotLeader
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.messages import Message
from goqueue.model.settings import BrokerConfig, KiB, TopicSettings
from goqueue.model.topics import CreateTopic
from goqueue.records.batch import open_batch
from goqueue.records.layout import read_header
from goqueue.testing.whole.cluster_groups import TOPIC_SETTINGS, ClusterGroups
from goqueue.testing.whole.cluster_node import SESSION_MS, ClusterNode
from goqueue.testing.whole.cluster_operators import COPIES_MIN, ClusterOperators, open_orders, retired_by
from goqueue.testing.whole.cluster_owners import ClusterOwners
from goqueue.testing.whole.partition_history import Violation, demand
from goqueue.testing.world.clock import SimulatedClock, SkewedClock
from goqueue.testing.world.disk import SimulatedDisk
from goqueue.testing.world.lives import LoopOfLives
from goqueue.testing.world.loop import Stalled
from goqueue.testing.world.machine import Tell, replayed
from goqueue.testing.world.network import NetworkFaults, SimulatedNetwork
from goqueue.testing.world.store import SimulatedStore, StoreFaults
from goqueue.testing.world.threads import DELAY_MS_MAX

NODES = tuple(map(NodeId, "abcde"))
COUNTS = (3, 3, 4, 5)
COPIES = (2, 3, 3)
"""So many nodes, and so many copies of a partition: one is drawn."""
TOPIC = TopicName("orders")
PARTITIONS = 2
START_S = 60
DISK_COPIES_MIN = 3
DISK_LOST_S = 2 * SESSION_MS / 1_000
"""For so long at most a node is believed to have what it has lost."""
"""Only of so many copies one may be lost with its disk, whatever happens to another meanwhile."""
HEAL_S = 120
STOP_S = 60
ANSWER_S = 30
"""Whoever gets no answer for so long gives up; what it published may be there or not."""
SKEWS_MS = (-10_000, -500, 0, 0, 0, 500, 10_000)
"""How far a node's wall clock is off: leases end by the wall of who coordinates, and are late by as much."""
WRITTEN_SHARE = 0.25
"""In so many seeds publishers do not wait for disks."""
COMPACTED_SHARE = 0.3
"""In so many seeds the topic is compacted, by each node for itself."""
COMPACT = {"cleanup.policy": "compact", "segment.bytes": "4096", "min.cleanable.dirty.ratio": "0.01"}
KEYS = 7
SLOW_DISK_MS = 500
"""So long those disks may take: what they do not have yet is what may be lost."""
WAITS_S = (0.0, 0.001, 0.01, 0.1, 0.5, 2.0)
ACTIONS = {
    "publish": 40,
    "group": 30,
    "wait": 14,
    "read": 8,
    "stop": 1.5,
    "stop cleanly": 0.7,
    "start": 4,
    "cut": 1.5,
    "clog": 1,
    "heal": 3,
    "reset": 1.5,
    "store away": 0.5,
    "store back": 2,
    "end session": 0.7,
    "fail syncs": 0.7,
    "new disk": 0.3,
    "compact": 0.3,
    "order": 3,
    "own": 20,
}


def simulate_cluster(seed: int, steps: int, *, tell: Tell | None = None) -> Counter[str]:
    """Run one seed; counts what happened, or raises Violation with the command that repeats it."""
    try:
        return ClusterSimulation(seed, steps, tell=tell).run()
    except Violation as violation:
        raise replayed(violation, seed, steps, "WHAT=cluster") from violation


class ClusterSimulation:
    def __init__(self, seed: int, steps: int, *, tell: Tell | None = None) -> None:
        self._random = Random(seed)
        self._seed = seed
        self._steps = steps
        self._tell = tell
        self.counts: Counter[str] = Counter()
        self._clock = SimulatedClock()
        self.members = NODES[: self._random.choice(COUNTS)]
        self.copies = self._random.choice(COPIES)
        self._disks = {node: SimulatedDisk(Random(f"disk {node} {seed}")) for node in self.members}
        self._skews_ms = {node: self._random.choice(SKEWS_MS) for node in self.members}
        self._nodes: dict[NodeId, ClusterNode] = {}
        self._lives = 0
        self._acknowledged: dict[tuple[int, int], bytes] = {}
        self._shown: dict[tuple[int, int], bytes] = {}
        self._epochs: dict[str, int] = {}
        self._leaders: dict[tuple[str, int], tuple[NodeId, int]] = {}
        self._publishes: set[asyncio.Task[None]] = set()
        self._owners = ClusterOwners(TOPIC, Random(f"owners {seed}"), self._ready, self.counts)
        self._operators = ClusterOperators(
            TOPIC,
            PARTITIONS,
            self.members,
            self.copies,
            Random(f"operators {seed}"),
            self._ready,
            self.counts,
        )
        self._groups = ClusterGroups(
            TOPIC, PARTITIONS, Random(f"groups {seed}"), self._ready, self.counts, self._epoch_of
        )
        self._number = 0
        self._ends: Counter[int] = Counter()
        """Of each partition, where the last acknowledged message ends."""
        self._shown_ends: Counter[int] = Counter()
        self._prefix: str | None = None
        """Of the keys of the topic's partitions."""
        self._is_written = Random(f"written {seed}").random() < WRITTEN_SHARE
        """Publishers are answered when all in sync have a message in memory."""
        self._is_compacted = Random(f"compacted {seed}").random() < COMPACTED_SHARE
        self._power_cuts = 0
        self._spoilt: set[tuple[NodeId, int]] = set()
        self._orders_from_s = 0.0
        """When partitions may be moved: not while one is believed to count whose disk is gone."""
        """Partitions on nodes whose disks had a sync fail: only of these may bytes be bad, for a turn."""

    def run(self) -> Counter[str]:
        loop = LoopOfLives(self._clock)
        asyncio.set_event_loop(loop)
        # What dead nodes leave behind cleans up when it is collected, which must not be a matter of memory.
        gc.disable()
        try:
            loop.run(self._live())
        except Stalled as stalled:
            raise Violation(f"the cluster waits for what never comes: {stalled}") from stalled
        finally:
            for node in self._nodes.values():
                node.disk.is_dead = True
                node.life.end()
            asyncio.set_event_loop(None)
            loop.abandon()
            gc.enable()
            gc.collect()
        return self.counts

    async def _live(self) -> None:
        chance = Random(f"world {self._seed}")
        self._store = SimulatedStore(chance, StoreFaults(lost_questions=0.02, lost_answers=0.02, late_ms=5))
        self._network = SimulatedNetwork(chance, NetworkFaults())
        for node in self.members:
            self._start(node)
        await self._until(lambda: len(self._ready()) == len(self.members), START_S, "the nodes do not start")
        await self._create_topic()
        weighed = {what: weight for what, weight in ACTIONS.items() if what not in self._spared()}
        actions, weights = list(weighed), list(weighed.values())
        for _ in range(self._steps):
            (what,) = self._random.choices(actions, weights)
            await self._act(what)
            self._check_nodes()
            self._groups.check()
            self._operators.check()
            self._owners.check()
            await self._check_records()
        await self._heal()
        for ready in self._ready():
            self._read(ready)  # what nobody was told of may outdate what somebody was
        await self._groups.finish(self._unmatched())
        await self._until(self._have_folders_gone, HEAL_S, "folders stay that nobody wants")
        await self._check_all()

    def _spared(self) -> set[str]:
        """What does not happen: a disk that fails to keep what was written is none of what is promised."""
        return {"fail syncs"} if self._is_written else set()

    async def _act(self, what: str) -> None:
        chance = self._random
        node, other = chance.sample(self.members, 2)
        match what:
            case "publish":
                self._begin_publish()
            case "group":
                self._groups.act()
            case "wait":
                await asyncio.sleep(chance.choice(WAITS_S))
            case "read":
                for reader in self._ready():
                    self._read(reader)
            case "stop" if node in self._nodes:
                self._stop(node, has_power=chance.random() < 0.5)
            case "stop cleanly" if node in self._nodes and self._nodes[node].is_ready:
                await self._stop_cleanly(node)
            case "own":
                self._owners.act()
            case "order" if asyncio.get_running_loop().time() >= self._orders_from_s:
                self._operators.act()
            case "start" if node in self._wanted() and node not in self._nodes:
                self._start(node)
            case "cut":
                self._note(f"cut {node} {other}")
                self._network.cut(node, other)
                if chance.random() < 0.5:
                    self._network.cut(other, node)
            case "clog":
                self._note(f"clog {node} {other}")
                self._network.clog(node, other)
            case "heal":
                self._network.heal_all()
            case "reset":
                self._network.reset(node, other)
            case "store away":
                self._note("store away")
                self._store.go_away()
            case "store back":
                self._store.come_back()
            case "compact":
                self._store.compact()
            case "end session" if node in self._nodes:
                self._end_session(self._nodes[node])
            case "fail syncs" if node in self._nodes:
                self._note("failing sync")
                number = chance.randrange(PARTITIONS)
                self._nodes[node].disk.faults.fail_syncs(under=f"logs/{TOPIC}/{number}/")
                self._spoilt.add((node, number))
            case "new disk":
                await self._replace_disk(node)

    # Nodes.

    def _start(self, node: NodeId) -> None:
        self._lives += 1
        self._note(f"start {node}")
        config = BrokerConfig(
            node_id=node,
            replication=self.copies,
            topic_defaults=TopicSettings(segment_bytes=64 * KiB),
            compaction_interval_ms=500,
        )
        self._nodes[node] = ClusterNode(
            node,
            config,
            disk=self._disks[node],
            clock=SkewedClock(self._clock, skew_ms=self._skews_ms[node]),
            store=self._store,
            network=self._network,
            chance=Random(f"node {self._seed} {self._lives}"),
            delay_ms_max=SLOW_DISK_MS if self._is_written else DELAY_MS_MAX,
        )
        self._nodes[node].start()

    def _stop(self, node: NodeId, *, has_power: bool) -> None:
        """A node dies; its session ends some time later."""
        self._note(f"{'kill' if has_power else 'power cut'} {node}")
        self.counts["stopped"] += 1
        if not has_power:
            self._forgive()
        life = self._nodes.pop(node)
        self._disks[node] = life.disk.kill() if has_power else life.disk.crash()
        self._network.crash(node, is_power_cut=not has_power)
        life.life.end()
        if life.membership is not None:
            session = life.membership.session
            late_s = SESSION_MS / 1_000 * self._random.uniform(1, 1.3)
            asyncio.get_running_loop().call_later(late_s, session.end)  # type: ignore[attr-defined]

    def _forgive(self) -> None:
        """A node loses its power, and may lead next: what disks did not have may be gone."""
        self._power_cuts += 1
        if not self._is_written:
            return
        for number in range(PARTITIONS):
            safe_end = max((_commit_mark(node, number) for node in self._ready()), default=0)
            safe_end = max(safe_end, self._shown_ends[number])
            self._ends[number] = min(self._ends[number], safe_end)
            for place in [place for place in self._acknowledged if place >= (number, safe_end)]:
                if place[0] == number:
                    del self._acknowledged[place]
                    self.counts["forgiven"] += 1

    async def _stop_cleanly(self, node: NodeId) -> None:
        self._note(f"stop {node}")
        self.counts["stopped cleanly"] += 1
        stopping = self._nodes[node].life.begin(self._nodes[node].stop())
        done, _ = await asyncio.wait({stopping}, timeout=STOP_S)
        demand(bool(done), f"{node} does not stop")
        if (error := stopping.exception()) is not None:
            raise Violation(f"{node} has stopped with {error!r}") from error
        self._stop(node, has_power=True)

    def _end_session(self, node: ClusterNode) -> None:
        if node.membership is not None:
            self._note(f"session of {node.node} ends")
            node.membership.session.end()  # type: ignore[attr-defined]

    async def _replace_disk(self, node: NodeId) -> None:
        """Only one at a time, and when all others have everything: more than that is not promised.

        Nor is it where there are two copies, one of which is believed to count until its session ends: should
        the other lose its own meanwhile, nobody knows any more that it has everything. So nothing is moved
        to fewer copies either, just then.
        """
        are_all_there = {ready.node for ready in self._ready()} >= set(self._wanted())
        can_spare_one = are_all_there and self._records() and self._are_all_in_sync(DISK_COPIES_MIN)
        if node in self._nodes and can_spare_one and not self._store.peek(ORDERS):
            self._orders_from_s = asyncio.get_running_loop().time() + DISK_LOST_S
            self._stop(node, has_power=False)
            self._note(f"new disk for {node}")
            self.counts["new disk"] += 1
            self._disks[node] = SimulatedDisk(Random(f"disk {node} {self._seed} {self._lives}"))

    def _wanted(self) -> list[NodeId]:
        """All but those that were retired: these may stay, and hold nothing, and never come back."""
        retired = retired_by(self._store)
        return [node for node in self.members if node not in retired]

    def _ready(self) -> list[ClusterNode]:
        return [node for node in self._nodes.values() if node.is_ready]

    def _check_nodes(self) -> None:
        for node in tuple(self._nodes.values()):
            if node.failure is None:
                continue
            if node.is_ready or not isinstance(node.failure, GoQueueError | OSError):
                raise Violation(f"node {node.node} has ended: {node.failure!r}") from node.failure
            # It could not join, which whoever runs it sees, and starts it again.
            self.counts["not joined"] += 1
            self._stop(node.node, has_power=True)
            if node.node in self._wanted():
                self._start(node.node)

    # Clients.

    async def _create_topic(self) -> None:
        """Ask until it is there: what was not answered may have been done."""
        node = self._ready()[0]
        for _ in range(10):
            command = CreateTopic(
                name=TOPIC,
                partitions=PARTITIONS,
                replication=self.copies,
                settings=TOPIC_SETTINGS
                | ({"acks.all.waits.for": "written"} if self._is_written else {})
                | (COMPACT if self._is_compacted else {}),
            )
            try:
                await asyncio.wait_for(node.life.begin(create_topic(node.broker, command)), ANSWER_S)
            except GoQueueError as error:
                self._note(f"topic refused: {error!r}")
            if all(TOPIC in ready.broker.topics for ready in self._ready()):
                return
            await asyncio.sleep(1)
        raise Violation("a topic cannot be made, though nothing is wrong")

    def _begin_publish(self) -> None:
        task = asyncio.get_running_loop().create_task(self._publish())
        self._publishes.add(task)
        task.add_done_callback(self._publishes.discard)

    async def _publish(self) -> None:
        """Publish to whoever some node believes to lead."""
        ready = self._ready()
        number = self._random.randrange(PARTITIONS)
        if not ready:
            return
        node: ClusterNode | None = self._random.choice(ready)
        assert node is not None
        if TOPIC not in node.broker.metadata.topics:
            return
        is_passed_on = self._random.random() < 0.3
        if not is_passed_on:
            image = node.broker.metadata
            leader = image.record(image.topics[TOPIC], number).leader
            node = next((node for node in ready if node.node == leader), None)
        if node is None:
            return
        self._number += 1
        value = b"%d %s" % (self._number, b"x" * self._random.choice((1, 100, 3_000)))
        command = Publish(topic=TOPIC, messages=[Message(value, key_of(value), partition=number)])
        verb = _publish_anywhere if is_passed_on else publish
        power_cuts = self._power_cuts
        asked = node.life.begin(verb(node.broker, command))
        done, _ = await asyncio.wait({asked}, timeout=ANSWER_S)
        if not done:
            self.counts["unanswered"] += 1
            return
        if (error := asked.exception()) is not None:
            demand(isinstance(error, GoQueueError), f"a publish failed with {error!r}")
            self.counts["refused"] += 1
            return
        (result,) = asked.result()
        if isinstance(result, Placed) and self._is_written and power_cuts != self._power_cuts:
            self.counts["forgiven"] += 1  # it may have counted before the power was cut, and not since
        elif isinstance(result, Placed):
            place = (number, result.offset)
            before = self._acknowledged.setdefault(place, value)
            demand(before == value, f"two messages were acknowledged at {place}")
            self._ends[number] = max(self._ends[number], result.offset + 1)
            self.counts["acknowledged"] += 1
        else:
            self.counts["refused"] += 1

    def _read(self, node: ClusterNode) -> None:
        """Look at all that a node shows of each partition it holds."""
        topic = node.broker.topics.get(TOPIC)
        for partition in topic.partitions if topic is not None else ():
            if not partition.is_here or partition.is_failed:
                continue
            try:
                messages = messages_of(partition, partition.commit_mark)
            except NotLeader:
                continue  # its log is being cut
            except Corrupt as error:
                # The disk has given up what it did not sync, and the broker hears of that in the next turn.
                is_spoilt = (node.node, partition.source.partition) in self._spoilt
                demand(is_spoilt, f"{node.node} shows what cannot be read: {error}")
                continue
            self._check_shown_end(partition)
            for offset, value in messages:
                place = (partition.source.partition, offset)
                before = self._shown.setdefault(place, value)
                demand(
                    before == value, f"two values at {place}: {before[:20]!r}, {value[:20]!r} on {node.node}"
                )
                acknowledged = self._acknowledged.get(place, value)
                demand(acknowledged == value, f"{acknowledged[:20]!r} was acknowledged at {place}")

    def _check_shown_end(self, partition: Partition) -> None:
        """The newest leader that knows the commit mark shows no less than anybody has shown."""
        number, copies = partition.source.partition, partition.copies
        records = {parsed_part_key(key)[1]: record for key, record in self._records().items()}
        if isinstance(copies, Replicated) and number in records:
            machine = copies.machine
            if machine.is_leader and machine.epoch == records[number].epoch and machine.is_mark_known:
                shown = self._shown_ends[number]
                demand(partition.commit_mark >= shown, f"{shown} offsets of {number} were shown before")
        self._shown_ends[number] = max(self._shown_ends[number], partition.commit_mark)

    # Promises.

    def _records(self) -> dict[str, PartitionRecord]:
        if self._prefix is None:
            known = (node.broker.metadata.topics.get(TOPIC) for node in self._ready())
            topic = next((topic for topic in known if topic is not None), None)
            if topic is None:
                return {}
            self._prefix = part_key(topic.topic_id, 0)[:-1]
        return {key: decode_part(item.value) for key, item in self._store.peek(self._prefix).items()}

    def _epoch_of(self, source: TopicPartition) -> int:
        """What the store says of the epoch of any partition; 0: nobody knows it."""
        known = (node.broker.metadata.topics.get(source.topic) for node in self._ready())
        topic = next((topic for topic in known if topic is not None), None)
        key = "" if topic is None else part_key(topic.topic_id, source.partition)
        item = self._store.peek(key).get(key) if key else None
        return 0 if item is None else decode_part(item.value).epoch

    def _are_all_in_sync(self, copies_min: int = COPIES_MIN) -> bool:
        """Of all partitions, those that brokers need for themselves with them."""
        records = [decode_part(item.value) for item in self._store.peek(PARTS).values()]
        return all(
            record.leader and set(record.isr) == set(record.replicas) and len(record.isr) >= copies_min
            for record in records
        )

    async def _check_records(self) -> None:
        for key, record in self._records().items():
            demand(record.epoch >= self._epochs.get(key, 0), f"the epoch of {key} fell")
            self._epochs[key] = record.epoch
            members = {*record.isr, *record.elr}
            demand(members <= set(record.replicas), f"{record} has members that are no replicas")
            demand(record.leader is None or record.leader in record.isr, f"{record} has a leader out of sync")
            if record.leader is not None:
                leader = (record.leader, record.incarnation)
                before = self._leaders.setdefault((key, record.epoch), leader)
                demand(before == leader, f"epoch {record.epoch} of {key} has two leaders: {before}, {leader}")
            self._check_holders(parsed_part_key(key)[1], record)

    def _check_holders(self, number: int, record: PartitionRecord) -> None:
        """Whoever is in sync or may be elected, and is there to be asked, has all that was acknowledged."""
        end_offset = self._ends[number]
        for node in self._ready():
            if node.node not in {*record.isr, *record.elr} or TOPIC not in node.broker.topics:
                continue
            partition = node.broker.topics[TOPIC].partitions[number]
            if not partition.is_here:
                continue
            try:
                log = partition.log
                safe = log.end_offset if self._is_written else log.flushed_offset
            except GoQueueError:
                continue  # it is being cut, or opened anew
            demand(safe >= end_offset, f"{end_offset} offsets of {number} count, and {node.node} has {safe}")

    async def _heal(self) -> None:
        """Nothing goes wrong any more: soon all are in sync, and everything is served."""
        self._note("everything is mended")
        self._network.heal_all()
        self._store.come_back()
        self._store.faults = StoreFaults(late_ms=5)
        for node in self._wanted():
            if node not in self._nodes:
                self._start(node)
            self._nodes[node].disk.faults.heal()
        if self._publishes:
            await asyncio.wait(set(self._publishes))
        await self._groups.rest()
        await self._operators.rest()
        await self._owners.rest()
        await self._until(self._is_whole, HEAL_S, "it does not heal")

    def _is_whole(self) -> bool:
        records = {parsed_part_key(key)[1]: record for key, record in self._records().items()}
        ready = {node.node: node for node in self._ready()}
        if not ready.keys() >= set(self._wanted()) or len(records) < PARTITIONS:
            return False
        if not self._are_all_in_sync() or open_orders(self._store):
            return False
        try:
            return all(
                self._are_alike(
                    [ready[holder].broker.topics[TOPIC].partitions[number] for holder in replicas]
                )
                for number, replicas in ((number, record.replicas) for number, record in records.items())
            )
        except GoQueueError:
            return False  # one is being cut, or opened anew

    @staticmethod
    def _are_alike(copies: list[Partition]) -> bool:
        end_offset = copies[0].log.end_offset
        return all(copy.commit_mark == copy.log.end_offset == end_offset for copy in copies)

    def _have_folders_gone(self) -> bool:
        """Whether each node has the folders of what it holds, and no others."""
        for node in self._ready():
            held = {
                str(parsed_part_key(key)[1])
                for key, record in self._records().items()
                if node.node in record.replicas
            }
            if set(node.disk.list(f"{LOGS_FOLDER}/{TOPIC}")) != held:
                return False
        return True

    def _unmatched(self) -> list[tuple[int, int]]:
        """Where messages must be found: all that were acknowledged but for what newer ones have outdated."""
        newest: dict[tuple[int, bytes], int] = {}
        for (number, offset), value in {**self._shown, **self._acknowledged}.items():
            place = (number, key_of(value))
            newest[place] = max(newest.get(place, -1), offset)
        return [
            (number, offset)
            for (number, offset), value in self._acknowledged.items()
            if not self._is_compacted or newest[number, key_of(value)] == offset
        ]

    async def _check_all(self) -> None:
        """Every replica holds all that was acknowledged, where it was, and all are alike.

        What is compacted on one may be there on another: they are equal in what both still hold.
        """
        self.counts["compacted"] += sum(node.broker.compaction.removed_records for node in self._ready())
        for node in self._ready():
            self._read(node)
        kept = {place: self._acknowledged[place] for place in self._unmatched()}
        for node in self._ready():
            for partition in node.broker.topics[TOPIC].partitions:
                if not partition.is_here:
                    continue
                number = partition.source.partition
                shown = dict(messages_of(partition, partition.commit_mark))
                demand(
                    len({*shown.values()}) == len(shown),
                    f"messages of {number} were sent once, and are twice",
                )
                for (there, offset), value in kept.items():
                    if there == number:
                        found = shown.get(offset)
                        demand(
                            found == value,
                            f"{value[:20]!r} was acknowledged at {number} @{offset}: {found!r}",
                        )

    async def _until(self, condition: object, seconds: float, problem: str) -> None:
        assert callable(condition)
        until_s = asyncio.get_running_loop().time() + seconds
        while not condition():
            self._check_nodes()
            if asyncio.get_running_loop().time() > until_s:
                raise Violation(f"{problem}: {list(self._records().values())}")
            await asyncio.sleep(0.05)

    def _note(self, what: str) -> None:
        if self._tell is not None:
            self._tell(f"{asyncio.get_running_loop().time():9.3f} {what}")


def key_of(value: bytes) -> bytes:
    """The key of a message, by the number that it begins with."""
    return b"%d" % (int(value.split(b" ")[0]) % KEYS)


def held_by(node: ClusterNode, number: int) -> Partition:
    return node.broker.topics[TOPIC].partitions[number]


def _commit_mark(node: ClusterNode, number: int) -> int:
    topic = node.broker.topics.get(TOPIC)
    return 0 if topic is None else topic.partitions[number].commit_mark


async def _publish_anywhere(broker: Broker, command: Publish) -> Published:
    return await at_home(broker, publish, command)


def messages_of(partition: Partition, end_offset: int) -> list[tuple[int, bytes]]:
    log, found = partition.log, list[tuple[int, bytes]]()
    offset = log.start_offset
    while offset < end_offset:
        chunk = log.read(offset, 1 << 20, end_offset=end_offset, read_bytes=from_disk)
        for body in chunk.batches:
            if read_header(body).record_count:
                found += [(stored.offset, stored.value or b"") for stored in open_batch(body, 2)]
        offset = chunk.end_offset
    return found
