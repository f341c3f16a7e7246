"""What the broker keeps beside the deliveries: who waits in a poll, and what has been counted."""

import asyncio
from collections import Counter, deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from weakref import WeakKeyDictionary

from goqueue.broker.read.cache import OpenedBatch, OpenedBatches
from goqueue.broker.storage.journal import Submitted
from goqueue.broker.storage.waiters import ReadWaiter, tell_in_turn
from goqueue.core.delivery.delivery import Delivery
from goqueue.core.delivery.lane_turns import LANE_COUNT
from goqueue.model.ids import TopicPartition
from goqueue.model.messages import StoredMessage
from goqueue.records.large_batch import LargeBatch

_lane_of = itemgetter(StoredMessage._fields.index("lane"))
_time_of = itemgetter(StoredMessage._fields.index("timestamp_ms"))
_SAMPLES = 13
"""One at each upkeep, which with its default interval is a minute."""


@dataclass(slots=True)
class QueueCounters:
    """What happened in the work queue since the broker began and no metric tells: by lane, by reason."""

    retried: int = 0
    moves_failed: int = 0
    redriven: int = 0
    dead_by_reason: Counter[str] = field(default_factory=Counter)
    dead_by_topic: Counter[str] = field(default_factory=Counter)
    delivered_by_lane: list[int] = field(default_factory=lambda: [0] * LANE_COUNT)
    waited_ms_by_lane: list[int] = field(default_factory=lambda: [0] * LANE_COUNT)
    """How long messages of each lane have waited between publish and first delivery, summed up."""
    delivered_of: Counter[tuple[str, int, int]] = field(default_factory=Counter)
    """By topic, partition and lane."""
    served_ms: dict[tuple[str, int, int], int] = field(default_factory=dict)
    """When each of them last handed out something."""

    def count_delivered(
        self, source: TopicPartition, messages: Sequence[StoredMessage], again: Collection[int], now_ms: int
    ) -> None:
        """Messages went out; those in `again` not for the first time."""
        if again:
            messages = [message for message in messages if message.offset not in again]
        lanes = set(map(_lane_of, messages))
        for lane in lanes:
            own = messages if len(lanes) == 1 else [m for m in messages if m.lane == lane]
            times_ms = list(map(_time_of, own))
            self.delivered_by_lane[lane] += len(times_ms)
            self.waited_ms_by_lane[lane] += max(now_ms * len(times_ms) - sum(times_ms), 0)
            self.delivered_of[(*source, lane)] += len(times_ms)
            self.served_ms[(*source, lane)] = now_ms


class QueueState:
    def __init__(self) -> None:
        self.counters = QueueCounters()
        self.opened: OpenedBatches[OpenedBatch] = OpenedBatches()
        self.large: OpenedBatches[LargeBatch] = OpenedBatches()
        """Out of their compression; messages are made a window at a time."""
        self.changes: Counter[str] = Counter()
        """How often the polls of a group were woken: one that was reading meanwhile looks again."""
        self.beginnings: WeakKeyDictionary[Delivery, Submitted] = WeakKeyDictionary()
        """Deliveries that have begun with what comes, until nothing takes that back."""
        self._polls: dict[str, dict[ReadWaiter, str]] = {}
        self._samples: deque[tuple[int, tuple[int, ...]]] = deque(maxlen=_SAMPLES)
        self._move_locks: WeakKeyDictionary[Delivery, asyncio.Lock] = WeakKeyDictionary()
        self._key_locks: WeakKeyDictionary[Delivery, asyncio.Lock] = WeakKeyDictionary()

    def sample(self, now_ns: int) -> None:
        """Note how much was delivered by now; the notes of a minute tell the rate."""
        self._samples.append((now_ns, tuple(self.counters.delivered_by_lane)))

    def rates(self, now_ns: int) -> list[float]:
        """Messages a second that each lane has handed out lately."""
        then_ns, then = self._samples[0] if self._samples else (now_ns, (0,) * LANE_COUNT)
        seconds = max((now_ns - then_ns) / 1e9, 1.0)
        return [
            round((now - before) / seconds, 3)
            for now, before in zip(self.counters.delivered_by_lane, then, strict=True)
        ]

    def enter(self, group: str, consumer: str, waiter: ReadWaiter) -> None:
        """A poll begins to wait."""
        self._polls.setdefault(group, {})[waiter] = consumer

    def leave(self, group: str, waiter: ReadWaiter) -> None:
        polls = self._polls.get(group)
        if polls is not None:
            polls.pop(waiter, None)
            if not polls:
                del self._polls[group]

    def wake(self, group: str, consumer: str | None = None) -> None:
        """Something has changed for a group's polls, or for those of one consumer."""
        self.changes[group] += 1
        polls = self._polls.get(group, {})
        wanted = polls if consumer is None else [waiter for waiter, who in polls.items() if who == consumer]
        tell_in_turn(wanted, ReadWaiter.wake)

    def move_lock(self, delivery: Delivery) -> asyncio.Lock:
        """Held while messages of a delivery are moved: they go in order."""
        return self._move_locks.setdefault(delivery, asyncio.Lock())

    def key_lock(self, delivery: Delivery) -> asyncio.Lock:
        """Held while messages of a delivery are chosen in the order of their keys."""
        return self._key_locks.setdefault(delivery, asyncio.Lock())
