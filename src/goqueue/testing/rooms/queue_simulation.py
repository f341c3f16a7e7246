"""The work queue on a simulated machine, through crashes: nothing lost, doubled, or settled and seen again.

Two consumers of a shared group take messages in the order of their keys and acknowledge them, give them back,
reject them or forget them, some before their publisher is answered; lives end anywhere, the disk fills up,
the wall clock is set. In the end everything published with acks=all was acknowledged or is a dead letter,
each once. What was under way when the power went may have happened or not.
"""

from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from goqueue.broker.broker import Broker
from goqueue.broker.groups.assigned import join_assigned
from goqueue.broker.queue.poll import poll
from goqueue.broker.queue.settle import settle
from goqueue.broker.read.read import read_messages
from goqueue.broker.topics.verbs import create_topic
from goqueue.broker.write.publish import publish
from goqueue.model.commands import Publish, ReadMessages
from goqueue.model.delivery import DEAD_LETTER_SUFFIX, Action, Poll, Receipt, Settle
from goqueue.model.errors import GoQueueError, TopicExists
from goqueue.model.group_commands import JoinAssigned
from goqueue.model.groups import Sharing
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.messages import Acks, Message
from goqueue.model.settings import HOUR_MS, BrokerConfig
from goqueue.model.topics import CreateTopic
from goqueue.testing.rooms.answers import Answers
from goqueue.testing.rooms.room_simulation import Habits, RoomLife, RoomSimulation
from goqueue.testing.whole.partition_history import Violation, demand
from goqueue.testing.world.clock import NS_PER_MS, SimulatedClock
from goqueue.testing.world.machine import Tell

TOPIC = TopicName("tasks")
DEAD = TopicName(TOPIC + DEAD_LETTER_SUFFIX)
PARTITIONS = 2
GROUP = "workers"
CONSUMERS = ("ann", "ben")
VISIBILITY_MS = 4_000
DELIVERIES_MAX = 4
_SETTINGS = {"goqueue.visibility.ms": str(VISIBILITY_MS), "goqueue.retry.backoff.ms": "100"}
_ROUNDS_MAX = 200
_CLOCK_STEPS_MS = (-HOUR_MS, -5_000, 5_000, HOUR_MS)
_WAITS_MS = (50, 500, 2_000, 6_000)


class Taken(NamedTuple):
    """A message as its consumer sees it."""

    key: str
    value: str
    delivery_count: int
    receipt: str
    until_ms: int
    """So long it is this consumer's, at least."""


@dataclass(slots=True)
class _State:
    """What the broker has promised so far, and what it was seen to do."""

    next_value: int = 0
    published: set[str] = field(default_factory=set)
    acked: set[str] = field(default_factory=set)
    rejected: set[str] = field(default_factory=set)
    unanswered: set[str] = field(default_factory=set)
    """A settlement may hold although the broker did not live to say so."""
    out_until_ms: dict[str, int] = field(default_factory=dict)
    is_clock_ahead: bool = False
    """In this life the wall clock was set forward: the next one takes that for time that has passed."""
    members: dict[str, str] = field(default_factory=dict)
    unsettled: list[Taken] = field(default_factory=list)


class QueueSimulation(RoomSimulation):
    what = "queue"
    habits = Habits(opening_changes=30, end_share=0.08, close_share=0.3, down_ms=(0, 50, 3_000))

    def __init__(self, seed: int, steps: int, *, tell: Tell | None = None) -> None:
        self._state = _State()
        super().__init__(seed, steps, tell=tell)

    def choose_config(self) -> BrokerConfig:
        return BrokerConfig(
            flush_interval_ms=self.random.choice((200, 1_000, 10_000)),
            upkeep_interval_ms=self.random.choice((100, 5_000, 5_000)),
        )

    def new_life(self, broker: Broker, answers: Answers) -> RoomLife:
        if self.has_lost_power or self._state.is_clock_ahead:
            # A lease is written and not waited for: the power may take it, and the message comes again.
            self._state.out_until_ms.clear()
            self._state.unsettled = [one._replace(until_ms=0) for one in self._state.unsettled]
        self._state.is_clock_ahead = False
        return _Life(self, broker, answers, self._state)


class _Life(RoomLife):
    def __init__(self, simulation: RoomSimulation, broker: Broker, answers: Answers, state: _State) -> None:
        super().__init__(simulation, broker, answers)
        self._state = state
        # Whoever waits for the disk hurries it for all: some lives have hardly anybody who does.
        self._acks = self.random.choice(((Acks.ALL, Acks.LEADER, Acks.NONE), (Acks.LEADER, Acks.NONE)))

    async def begin(self) -> None:
        with suppress(TopicExists):
            creation = CreateTopic(name=TOPIC, partitions=PARTITIONS, settings=_SETTINGS)
            await self.answers.wait_for(create_topic(self.broker, creation))
        for name in CONSUMERS:
            if name not in self._state.members:
                await self._join(name)

    async def step(self) -> None:
        actions = {self._publish: 30, self._poll: 30, self._settle: 30, self._wait: 8, self._misfortune: 2}
        (action,) = self.random.choices(list(actions), list(actions.values()))
        try:
            await action()
        except GoQueueError as error:
            self.note(f"refused: {error.code}")
            self.answers.permit(error)
        self.answers.raise_problems()

    async def finish(self) -> None:
        """Take all that is left: in the end every message was settled, each in one way."""
        state = self._state
        drained: set[str] = set()
        for _ in range(_ROUNDS_MAX):
            for name in CONSUMERS:
                taken = await self._take(name, limit=100, wait_ms=2_000)
                await self.answers.wait_for(self._settled(Action.ACK, taken))
                drained |= {one.value for one in taken}
            ends = [len(await self._stored(TOPIC, number)) for number in range(PARTITIONS)]
            if self._floors() == ends:
                break
        else:
            raise Violation(f"the group stands at {self._floors()}, and the partitions end at {ends}")
        dead = [value for number in range(PARTITIONS) for value in await self._stored(DEAD, number)]
        demand(len(dead) == len(set(dead)), "a dead letter is there twice")
        both = set(dead) & (drained | state.acked)
        demand(not both, f"{both} were acknowledged, and are dead letters")
        demand(state.rejected <= set(dead), f"{state.rejected - set(dead)} were rejected, and are nowhere")
        lost = state.published - (state.acked | drained | set(dead) | state.unanswered)
        demand(not lost, f"{lost} were published, and nobody has settled them")

    async def _join(self, name: str) -> None:
        command = JoinAssigned(
            group=GROUP,
            client_id=name,
            topics=[TOPIC],
            sharing=Sharing.SHARED,
            key_order=True,
            session_timeout_ms=1_800_000,
        )
        joined = await self.answers.wait_for(join_assigned(self.broker, command))
        self._state.members[name] = joined.member_id

    async def _publish(self) -> None:
        self.note("publish")
        first = self._state.next_value
        self._state.next_value += self.random.randrange(1, 5)
        values = range(first, self._state.next_value)
        acks = self.random.choice(self._acks)
        if self.random.random() < 0.5:
            # What is done next may concern these messages before their publisher is answered.
            self.answers.start(self._send(values, acks))
        else:
            await self.answers.wait_for(self._send(values, acks))

    async def _send(self, values: range, acks: Acks) -> None:
        messages = [Message(b"%d" % value, b"key %d" % (value % 3)) for value in values]
        placed = await publish(self.broker, Publish(topic=TOPIC, messages=messages, acks=acks))
        if not self.answers.has_power:
            return
        for value, reply in zip(values, placed, strict=True):
            if isinstance(reply, GoQueueError):
                self.answers.permit(reply)
            elif acks is Acks.ALL:
                self._state.published.add(str(value))

    async def _poll(self) -> None:
        self.note("poll")
        limit, wait_ms = self.random.randrange(1, 6), self.random.choice((0, 0, 300))
        taken = await self._take(self.random.choice(CONSUMERS), limit=limit, wait_ms=wait_ms)
        self._state.out_until_ms.update({one.value: one.until_ms for one in taken})
        self._state.unsettled += taken

    async def _settle(self) -> None:
        state = self._state
        if not state.unsettled:
            return
        one = state.unsettled.pop(self.random.randrange(len(state.unsettled)))
        action = self.random.choice((Action.ACK, Action.ACK, Action.ACK, Action.NACK, Action.REJECT))
        self.note(action.name.lower())
        out_until_ms = state.out_until_ms.pop(one.value, 0)
        is_in_time = self._now_ms() < one.until_ms
        answered = {one.value} - state.unanswered  # what an earlier receipt did stays unknown
        state.unanswered.add(one.value)
        is_settled = await self.answers.wait_for(self._settled(action, [one]))
        state.unanswered -= answered
        if not is_settled:
            state.out_until_ms[one.value] = out_until_ms
        elif action is Action.ACK and is_in_time:
            state.acked.add(one.value)
        elif action is Action.ACK:
            # A late one may find it settled as a dead letter; or in time, where a clock that was set back
            # before a restart has made the lease last for longer.
            state.unanswered.add(one.value)
        elif action is Action.REJECT:
            state.rejected.add(one.value)

    async def _wait(self) -> None:
        await self.answers.sleep(self.random.choice(_WAITS_MS))

    async def _misfortune(self) -> None:
        which = self.random.randrange(6)
        if which == 0:
            self.cut_power(within_changes=40)
        elif which == 1:
            self.fill_disk(0, 300, 3_000)
        elif which == 2:
            self._set_clock()
        elif which == 3:
            self.fail_reads(f"logs/{TOPIC}/")
        elif which == 4:
            self.stand_still(100, 5_000, 40_000)
        else:
            self.mend()

    def _set_clock(self) -> None:
        step_ms = self.random.choice(_CLOCK_STEPS_MS)
        self.note("clock set")
        self._state.is_clock_ahead |= step_ms > 0
        assert isinstance(self.broker.clock, SimulatedClock)
        self.broker.clock.step_wall_ms(step_ms)

    def _now_ms(self) -> int:
        """The time that passes, which no clock on a wall tells."""
        return self.broker.clock.monotonic_ns() // NS_PER_MS

    async def _take(self, name: str, *, limit: int, wait_ms: int = 0) -> list[Taken]:
        """Poll, and see that nothing comes which was settled, is out, or came too often, or out of order."""
        now_ms = self._now_ms()
        command = Poll(
            group=GROUP, member_id=self._state.members[name], generation=0, limit=limit, wait_ms=wait_ms
        )
        polled = await self.answers.wait_for(poll(self.broker, command))
        taken: list[Taken] = []
        for (topic, partition), nonce, messages, counts in polled.parts:
            for message in messages:
                count = counts.get(message.offset, 1)
                receipt = str(Receipt(topic, partition, message.offset, count, nonce))
                key, value = (message.key or b"").decode(), (message.value or b"").decode()
                taken.append(Taken(key, value, count, receipt, now_ms + VISIBILITY_MS))
        for one in taken:
            demand(one.value not in self._state.acked, f"{one.value} was acknowledged, and comes again")
            demand(one.value not in self._state.rejected, f"{one.value} was rejected, and comes again")
            demand(one.delivery_count <= DELIVERIES_MAX, f"{one.value} comes too often")
            until_ms = self._state.out_until_ms.get(one.value, 0)
            demand(until_ms <= now_ms + wait_ms, f"{one.value} is handed out while it is out")
        for key in {one.key for one in taken}:
            own = [int(one.value) for one in taken if one.key == key]
            demand(own == sorted(own), f"messages of {key} come out of order: {own}")
        return taken

    async def _settled(self, action: Action, taken: list[Taken]) -> bool:
        """Whether all of it was taken note of."""
        command = Settle(action=action, receipts=[one.receipt for one in taken])
        return not (await settle(self.broker, command)).refusals

    def _floors(self) -> list[int]:
        record = self.broker.coordinator.journals.record(GROUP)
        rows = {} if record is None else record.offsets.of(TOPIC, self.broker.metadata.topic(TOPIC).topic_id)
        return [rows[number][1] if number in rows else 0 for number in range(PARTITIONS)]

    async def _stored(self, topic: TopicName, number: int) -> list[str]:
        """All values of a partition, in log order; none when the topic is not there."""
        if topic not in self.broker.topics:
            return []
        command = ReadMessages(source=TopicPartition(topic, number), limit=100_000)
        found = await self.answers.wait_for(read_messages(self.broker, command))
        return [(message.value or b"").decode() for message in found.messages]


simulate_queue = QueueSimulation.simulate
