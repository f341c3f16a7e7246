"""Three nodes with replicas of a partition, on simulated disks, network and store, through all that can fail.

Clients publish wherever they think the leader is. Nodes are killed, lose power, are cut off, start again;
syncs fail; a stand-in for the controller elects who is in sync and alive. What was acknowledged must be
there, at its offset; an offset shows one value for all readers and for ever; and when everything is well
again, all replicas become the same, byte for byte.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from random import Random

from goqueue.core.cluster.isr import with_isr
from goqueue.core.cluster.values import decode_part, encode, part_key
from goqueue.model.cluster import Guard, NodeId, PartitionRecord
from goqueue.model.errors import GoQueueError, Outdated
from goqueue.model.settings import KiB, TopicSettings
from goqueue.testing.rooms.replica_nodes import TOPIC_ID, ReplicaNode, ReplicaVillage
from goqueue.testing.whole.partition_history import Violation, demand
from goqueue.testing.world.faults import PowerCut
from goqueue.testing.world.loop import SimulatedLoop, Stalled
from goqueue.testing.world.machine import Tell, replayed
from goqueue.testing.world.store import SimulatedStore

NODES = (NodeId("a"), NodeId("b"), NodeId("c"))
KEY = part_key(TOPIC_ID, 0)
MIN_ISR = 2
_SIZES = (5, 200, 3_000, 30_000)
_WAITS_S = (0.0, 0.001, 0.02, 0.3, 3.0)
_HEALTHY_S = 120


class NodeSimulation:
    def __init__(self, seed: int, steps: int, *, tell: Tell | None = None) -> None:
        self._random = Random(seed)
        self._steps = steps
        self._tell = tell
        self.counts: Counter[str] = Counter()
        settings = TopicSettings(segment_bytes=self._random.choice((4 * KiB, 200 * KiB)))
        self._village = ReplicaVillage(seed, min_isr=MIN_ISR, settings=settings)
        self._acknowledged: dict[int, bytes] = {}
        self._shown: dict[int, bytes] = {}
        self._start_offset = 0
        self._written = 0
        self._under_way: dict[asyncio.Task[None], NodeId] = {}
        self._violations: list[Violation] = []

    def note(self, what: str) -> None:
        self.counts[what] += 1
        if self._tell is not None:
            self._tell(what)

    def run(self) -> Counter[str]:
        loop = SimulatedLoop(self._village.clock)
        try:
            loop.run(self._live())
        except Stalled as stalled:
            raise Violation(f"all wait for what never comes: {stalled}") from stalled
        finally:
            for node in self._village.nodes.values():
                node.disk.is_dead = True
            loop.abandon()
        for problem in loop.unhandled:
            if not isinstance(problem, (OSError, PowerCut)):
                raise Violation(f"an error that nobody took: {problem!r}")
        return self.counts

    async def _live(self) -> None:
        village = self._village
        village.store = SimulatedStore(Random(f"store {village.seed}"))
        for node in NODES:
            await village.start(node)
        first = village.nodes[NODES[0]].peer
        record = PartitionRecord(
            leader=first.node, epoch=1, replicas=NODES, isr=NODES, incarnation=first.incarnation
        )
        await village.store.change([Guard(KEY, 0)], {KEY: encode(record)}, ())
        controller = asyncio.get_running_loop().create_task(self._control())
        for _ in range(self._steps):
            await self._step()
            for violation in self._violations:
                raise violation
        await self._heal()
        controller.cancel()

    async def _step(self) -> None:
        actions: dict[Callable[[NodeId], object], float] = {
            self._publish: 30,
            self._append: 8,
            self._look: 12,
            self._kill: 1.2,
            self._cut_power: 1.2,
            self._start: 6,
            self._part: 2,
            self._mend_network: 5,
            self._reset: 2,
            self._fail_sync: 1,
            self._move_start: 1,
        }
        (action,) = self._random.choices(list(actions), list(actions.values()))
        outcome = action(self._random.choice(NODES))
        if asyncio.iscoroutine(outcome):
            await outcome
        await asyncio.sleep(self._random.choice(_WAITS_S))

    # Clients.

    def _leader(self) -> ReplicaNode | None:
        leaders = [node for node in self._village.nodes.values() if node.replica.is_leader]
        return self._random.choice(leaders) if leaders else None

    def _value(self) -> bytes:
        self._written += 1
        return b"%d " % self._written + bytes(self._random.choice(_SIZES))

    def _publish(self, _: NodeId) -> None:
        node = self._leader()
        if node is not None:
            self.note("publish")
            task = asyncio.get_running_loop().create_task(self._acknowledge(node, self._value()))
            self._under_way[task] = node.peer.node
            task.add_done_callback(self._end)

    async def _acknowledge(self, node: ReplicaNode, value: bytes) -> None:
        try:
            offset = await node.publish(value)
        except GoQueueError as error:
            self.note(f"refused: {error.code}")
            return
        if node.disk.is_dead:
            return
        self.note("acknowledged")
        before = self._acknowledged.setdefault(offset, value)
        demand(before == value, f"offset {offset} was acknowledged twice")
        self._note_shown(offset, value)

    def _end(self, task: "asyncio.Task[None]") -> None:
        self._under_way.pop(task, None)
        if not task.cancelled() and isinstance(error := task.exception(), Violation):
            self._violations.append(error)

    def _append(self, _: NodeId) -> None:
        node = self._leader()
        if node is not None:
            self.note("append")
            try:
                node.append(self._value())
            except GoQueueError as error:
                self.note(f"refused: {error.code}")
            except PowerCut:
                pass

    def _look(self, name: NodeId) -> None:
        node = self._village.nodes.get(name)
        if node is None:
            return
        try:
            found = node.shown()
        except GoQueueError:
            return  # it is being cut, or its disk has failed
        self.note("look")
        for offset, value in found.items():
            self._note_shown(offset, value)

    def _note_shown(self, offset: int, value: bytes) -> None:
        before = self._shown.setdefault(offset, value)
        demand(before == value, f"offset {offset} has shown {before[:20]!r}, and now {value[:20]!r}")

    def _move_start(self, _: NodeId) -> None:
        node = self._leader()
        if node is not None:
            self.note("move start")
            mark = node.partition.commit_mark
            self._start_offset = self._random.randint(min(self._start_offset, mark), mark)
            node.partition.log.move_start(self._start_offset)

    # Misfortunes.

    def _stop(self, name: NodeId, *, is_power_cut: bool) -> None:
        if name in self._village.nodes:
            for task in [task for task, node in self._under_way.items() if node == name]:
                task.cancel()
            self._village.stop(name, is_power_cut=is_power_cut)

    def _kill(self, name: NodeId) -> None:
        self.note("kill")
        self._stop(name, is_power_cut=False)

    def _cut_power(self, name: NodeId) -> None:
        """Now, or at one of the next changes of its disk."""
        self.note("power cut")
        node = self._village.nodes.get(name)
        if node is None:
            return
        loop = asyncio.get_running_loop()

        def cut() -> None:
            if self._village.nodes.get(name) is node:
                self._stop(name, is_power_cut=True)

        if self._random.random() < 0.3:
            cut()
        else:
            changes = self._random.randrange(1, 20)

            def cut_soon() -> None:
                loop.call_soon(cut)

            node.disk.faults.cut_power(after_changes=changes, on_power_cut=cut_soon)

    async def _start(self, name: NodeId) -> None:
        if name not in self._village.nodes:
            self.note("start")
            node = await self._village.start(name)
            demand(node.recovered.damage is None, f"{name} is damaged: {node.recovered.damage}")

    def _part(self, name: NodeId) -> None:
        self.note("part")
        other = self._random.choice([node for node in NODES if node != name])
        self._village.network.cut(name, other)
        if self._random.random() < 0.6:
            self._village.network.cut(other, name)

    def _mend_network(self, _: NodeId) -> None:
        self._village.network.heal_all()

    def _reset(self, name: NodeId) -> None:
        self._village.network.reset(name, self._random.choice([node for node in NODES if node != name]))

    def _fail_sync(self, name: NodeId) -> None:
        if (node := self._village.nodes.get(name)) is not None:
            self.note("failing sync")
            node.disk.faults.fail_syncs(under=self._random.choice(("logs/", "commit/")))

    # Who decides.

    async def _control(self) -> None:
        """Elect somebody who is in sync and alive whenever the leader is not; the dead leave the ISR."""
        while True:
            await asyncio.sleep(self._random.choice((0.05, 0.5, 2.0)))
            item = (await self._village.store.load(KEY)).items[KEY]
            changed = self._decide(decode_part(item.value))
            if changed is not None:
                try:
                    await self._village.store.change([Guard(KEY, item.revision)], {KEY: encode(changed)}, ())
                    self.note("elected")
                except Outdated:
                    continue

    def _decide(self, record: PartitionRecord) -> PartitionRecord | None:
        alive = self._village.nodes
        leader = alive.get(record.leader) if record.leader is not None else None
        if leader is not None and leader.peer.incarnation == record.incarnation:
            left = [node for node in record.isr if node in alive]
            return with_isr(record, left, min_isr=MIN_ISR) if len(left) < len(record.isr) else None
        candidates = [node for node in record.isr if node in alive]
        if not candidates:
            candidates = [node for node in record.elr if node in alive][:1]
            if not candidates:
                return None
            record = replace(
                record, isr=tuple(candidates), elr=tuple(n for n in record.elr if n not in candidates)
            )
        chosen = alive[candidates[0]].peer
        in_sync = with_isr(record, candidates, min_isr=MIN_ISR)
        return replace(in_sync, leader=chosen.node, epoch=record.epoch + 1, incarnation=chosen.incarnation)

    async def _heal(self) -> None:
        """All is well again: everything must become so, and stay."""
        self._village.network.heal_all()
        for node in self._village.nodes.values():
            node.disk.faults.heal()
        for name in NODES:
            await self._start(name)
        deadline = self._village.clock.monotonic_ns() + _HEALTHY_S * 10**9
        while not await self._is_well():
            demand(self._village.clock.monotonic_ns() < deadline, f"not well after {_HEALTHY_S} s")
            for violation in self._violations:
                raise violation
            await asyncio.sleep(0.1)
        for name in NODES:
            self._look(name)
        leader = self._leader()
        assert leader is not None, "all is well"
        found = leader.shown()
        for offset, value in self._acknowledged.items():
            if offset >= leader.partition.log.start_offset:
                demand(found.get(offset) == value, f"offset {offset} was acknowledged, and is not there")
        self.counts["checked"] += len(self._acknowledged)

    async def _is_well(self) -> bool:
        record = decode_part((await self._village.store.load(KEY)).items[KEY].value)
        leader = self._leader()
        if leader is None or set(record.isr) != set(NODES):
            return False
        try:
            await leader.publish(b"the last")
            await asyncio.sleep(0.2)  # the news of the mark are on their way
            # One that did not hear of the last start before it led may begin earlier than the others.
            first = max(node.partition.log.first_offset for node in self._village.nodes.values())
            logs = {node.frames(first) for node in self._village.nodes.values()}
            marks = {node.partition.commit_mark for node in self._village.nodes.values()}
        except GoQueueError:
            return False
        return len(logs) == 1 and len(marks) == 1


def simulate_nodes(seed: int, steps: int, *, tell: Tell | None = None) -> Counter[str]:
    """Run one seed; counts what happened, or raises Violation with the command that repeats it."""
    try:
        return NodeSimulation(seed, steps, tell=tell).run()
    except Violation as violation:
        raise replayed(violation, seed, steps, "WHAT=nodes") from violation
