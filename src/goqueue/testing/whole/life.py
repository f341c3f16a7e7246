"""One life of a simulated broker, from its opening to its end: clients act, misfortunes strike."""

import asyncio
from collections.abc import Awaitable, Callable
from enum import Enum

from goqueue.broker.broker import Broker
from goqueue.broker.opening import close_broker
from goqueue.model.errors import GoQueueError
from goqueue.testing.rooms.answers import Answers, PowerLost
from goqueue.testing.whole.clients import Clients
from goqueue.testing.whole.group_clients import GroupClients
from goqueue.testing.whole.member_clients import MemberClients
from goqueue.testing.whole.misfortunes import Misfortunes
from goqueue.testing.whole.story import Story
from goqueue.testing.whole.topic_changes import TopicChanges
from goqueue.testing.world.disk import SimulatedDisk
from goqueue.testing.world.loop import SimulatedLoop

FLUSH_SLACK_MS = 500
"""What threads and queues may add to the flush interval."""
END_SHARE = 0.03
_NS_PER_MS = 1_000_000


class Fate(Enum):
    """How a life ends."""

    POWER_CUT = "power cut"
    KILLED = "killed"
    CLOSED = "closed"


class Life:
    """Steps drawn from the seed. What is under way when the end comes stays unanswered."""

    def __init__(self, story: Story, broker: Broker, disk: SimulatedDisk, loop: SimulatedLoop) -> None:
        self._story = story
        self._broker = broker
        self._topics = TopicChanges(story, broker)
        self.answers = Answers(loop, disk)
        clients = Clients(story, broker, self.answers)
        self._groups = GroupClients(story, broker, self.answers)
        self._members = MemberClients(story, broker, self.answers)
        misfortunes = Misfortunes(story, disk, self.answers)
        self._actions: dict[Callable[[], Awaitable[None]], float] = {
            clients.publish: 20,
            clients.append: 12,
            clients.append_idempotent: 25,
            clients.append_spoilt: 2,
            clients.begin_producer: 4,
            clients.read: 14,
            clients.find: 3,
            clients.delete_records: 1,
            self._change_topics: 5,
            self._wait: 14,
            self._drain: 4,
            misfortunes.fill_disk: 0.7,
            misfortunes.fail_sync: 0.7,
            misfortunes.fail_commit: 0.7,
            misfortunes.fail_reads: 0.7,
            misfortunes.flip_bit: 0.7,
            misfortunes.cut_power: 0.7,
            misfortunes.mend: 3,
        }

    async def live(self) -> Fate:
        """Act until the steps run out or the end comes."""
        try:
            while self._story.steps_left > 0 and self.answers.has_power:
                self._story.steps_left -= 1
                if self._story.is_chosen(END_SHARE):
                    return self._story.random.choice(list(Fate))
                (action,) = self._story.random.choices(list(self._actions), list(self._actions.values()))
                await action()
                await self._groups.act()
                await self._members.act()
                if self._story.is_chosen(0.7):
                    await asyncio.sleep(0)  # let what is under way begin
                self._story.note_time(self._broker.clock.wall_ms())
                self.answers.raise_problems()
        except PowerLost:
            return Fate.POWER_CUT
        return Fate.CLOSED if self.answers.has_power else Fate.POWER_CUT

    async def close(self) -> Fate:
        """Close in order, while requests may be under way: they too get their answers."""
        self.answers.is_closing = True
        try:
            await self.answers.wait_for(close_broker(self._broker))
            await self.answers.drain()
        except PowerLost:
            return Fate.POWER_CUT
        except GoQueueError as error:
            self.answers.permit(error)
            return Fate.POWER_CUT
        return Fate.CLOSED

    def note_promises(self, fate: Fate) -> None:
        """The end has come: what acks=leader has promised until now counts, and what a clean end promises."""
        self._story.note_time(self._broker.clock.wall_ms())
        now_ns = self.answers.heard_until_ns
        flush_ns = (self._broker.config.flush_interval_ms + FLUSH_SLACK_MS) * _NS_PER_MS
        for partition in self._story.partitions():
            partition.promise_flushed(written_before_ns=now_ns - flush_ns)
            if fate is Fate.CLOSED and partition.entries and not partition.is_doubtful:
                last = max(partition.entries)
                partition.promise(range(last, last + 1))

    async def _change_topics(self) -> None:
        # Nothing else is under way: what a publish to a vanishing topic is told is no law.
        await self.answers.drain()
        try:
            await self.answers.wait_for(self._topics.change())
        except GoQueueError as error:
            self.answers.permit(error)

    async def _wait(self) -> None:
        duration_ms = self._story.random.choice((0, 0, 1, 5, 50, 300, 2_000, 15_000))
        self._story.note("wait", f"{duration_ms} ms")
        await self.answers.sleep(duration_ms)

    async def _drain(self) -> None:
        self._story.note("drain")
        await self.answers.drain()
