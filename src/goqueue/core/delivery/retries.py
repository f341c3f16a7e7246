"""What becomes of messages that come back: another try after a while, or the dead letters."""

from collections.abc import Iterable
from dataclasses import dataclass

from goqueue.core.delivery.delivery import Delivery
from goqueue.core.delivery.events import Event, MovesBegun, Returned, Settled
from goqueue.core.delivery.lease import NO_LEASE
from goqueue.core.delivery.runs import Run, runs_of
from goqueue.model.delivery import Move, Reason
from goqueue.model.ids import TopicPartition


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how soon a message is delivered again, and where it goes in the end."""

    retries_max: int
    backoff_ms: int
    backoff_max_ms: int
    dead_letters: TopicPartition | None
    """None: nowhere. A message that cannot be delivered from a dead-letter topic stays there, settled."""

    def delay_ms(self, attempts: int) -> int:
        """The wait before the next try, after so many that came to nothing."""
        return min(self.backoff_ms << min(attempts - 1, 62), self.backoff_max_ms)


@dataclass(frozen=True, slots=True)
class Story:
    """Why messages come back, and by whom."""

    reason: Reason
    consumer: str
    error: str
    time_ms: int


def expire(delivery: Delivery, policy: RetryPolicy, *, now_ms: int, wall_ms: int) -> list[Event]:
    """Messages whose lease ran out come back at once: they have been hidden for long enough.

    `now_ms` is running time, by which leases run out; `wall_ms` is what people and events are told.
    """
    events: list[Event] = []
    for lease, runs in delivery.overdue(now_ms):
        error = "the consumer did not settle it in time"
        story = Story(Reason.MAX_RETRIES_EXCEEDED, lease.consumer, error, wall_ms)
        events += give_back(delivery, lease.number, runs, policy, story, due_ms=wall_ms)
    return events


def give_back(
    delivery: Delivery,
    lease: int,
    runs: Iterable[Run],
    policy: RetryPolicy,
    story: Story,
    *,
    due_ms: int | None,
) -> list[Event]:
    """Another try for those that have one left, by the back-off or when told; the others are dead."""
    events: list[Event] = []
    dead: list[int] = []
    again: dict[int, list[int]] = {}
    attempts_of = delivery.attempts
    for first, end in runs:
        # Message by message, but only for those that failed.
        for offset in range(first, end):
            attempts = attempts_of.get(offset, 0) + 1
            if attempts > policy.retries_max:
                dead.append(offset)
            else:
                when_ms = story.time_ms + policy.delay_ms(attempts) if due_ms is None else due_ms
                again.setdefault(when_ms, []).append(offset)
    for when_ms, offsets in again.items():
        events.append(Returned(delivery.number, lease, tuple(runs_of(offsets)), when_ms))
    if dead:
        events.append(bury(delivery, lease, runs_of(dead), policy, story))
    return events


def bury(
    delivery: Delivery, lease: int, runs: Iterable[Run], policy: RetryPolicy, story: Story
) -> MovesBegun | Settled:
    """Messages are not to be delivered any more."""
    target = policy.dead_letters
    if target is None:
        return Settled(delivery.number, lease, tuple(runs))
    out_now = 0 if lease == NO_LEASE else 1
    moves = tuple(
        Move(
            offset,
            target.topic,
            target.partition,
            story.reason,
            delivery.attempts.get(offset, 0) + out_now,
            story.consumer,
            story.error,
            story.time_ms,
        )
        for first, end in runs
        for offset in range(first, end)
    )
    return MovesBegun(delivery.number, lease, moves)
