"""The delivery machine against a naive one that keeps a word for every message, with restarts in between."""

from collections import Counter
from uuid import UUID

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, rule

from goqueue.core.delivery.deliveries import Deliveries
from goqueue.core.delivery.delivery import Delivery, Holding
from goqueue.core.delivery.events import EVENT_TYPES, DeliveryKept, Event, Extended, Settled
from goqueue.core.delivery.lease import NO_LEASE
from goqueue.core.delivery.retries import RetryPolicy, Story, bury, expire, give_back
from goqueue.core.delivery.runs import Runs, count_of, runs_of
from goqueue.model.delivery import Reason
from goqueue.model.ids import TopicName, TopicPartition

ORDERS = TopicName("orders")
POLICY = RetryPolicy(2, 1_000, 60_000, TopicPartition(TopicName("orders.dlq"), 0))
WEIGHTS = (50, 25, 15, 7, 3)
VISIBILITY_MS = 5_000
CONSUMERS = st.sampled_from(("ann", "ben"))
NUMBER = 7


def deadlines(kept: DeliveryKept) -> dict[int, tuple[int, str, int]]:
    """Who has which message out, under which lease and until when."""
    return {
        offset: (lease.lease, lease.consumer, dict(lease.later).get(offset, lease.until_ms))
        for lease in kept.leases
        for run in lease.runs
        for offset in range(*run)
    }


class DeliveryMachine(RuleBasedStateMachine):
    receipts = Bundle("receipts")

    @initialize()
    def begin(self) -> None:
        self.deliveries = Deliveries()
        self.journal: list[bytes] = []
        self.now_ms = 1_000_000
        self.next_lease = 1
        self.end_offset = 0
        self.floor = 0
        """The committed offset, told by the machine as it moves."""
        self.lanes: list[int] = []
        self.places: dict[int, str] = {}
        """ready, out, waiting, moving or settled."""
        self.attempts: Counter[int] = Counter()
        self.until_ms: dict[int, int] = {}
        self.lease_of: dict[int, int] = {}
        self.due_ms: dict[int, int] = {}
        self.commit(DeliveryKept(NUMBER, "workers", ORDERS, UUID(int=1), 0, 0))

    @property
    def delivery(self) -> Delivery:
        found = self.deliveries.numbered(NUMBER)
        assert found is not None
        return found

    def commit(self, *events: Event) -> None:
        for event in events:
            self.journal.append(msgspec.json.encode([type(event).__name__, event]))
            if moved := self.deliveries.apply(event):
                self.floor = moved.offset

    @rule(count=st.integers(1, 12), lane=st.integers(0, 4))
    def publish(self, count: int, lane: int) -> None:
        first, self.end_offset = self.end_offset, self.end_offset + count
        self.lanes += [lane] * count
        self.places.update(dict.fromkeys(range(first, self.end_offset), "ready"))
        self.scan()

    def scan(self) -> None:
        offset = self.delivery.find_scan()
        while offset < self.end_offset:
            end = offset + 1
            while end < self.end_offset and self.lanes[end] == self.lanes[offset]:
                end += 1
            self.delivery.learn(offset, end, self.lanes[offset])
            offset = self.delivery.find_scan()

    @rule(target=receipts, limit=st.integers(1, 10), consumer=CONSUMERS)
    def poll(self, limit: int, consumer: str) -> object:
        self.pass_time(0)
        ready = {offset for offset, place in self.places.items() if place == "ready"}
        runs = self.delivery.shelf.take(limit, weights=WEIGHTS, wait_ms_max=30_000, now_ms=self.now_ms)
        assert count_of(runs) == min(limit, len(ready)), "what is ready is handed out"
        self.delivery.reserve(runs)
        lease, self.next_lease = self.next_lease, self.next_lease + 1
        until_ms = self.now_ms + VISIBILITY_MS
        leased = self.delivery.lease(sorted(runs), lease=lease, consumer=consumer, until_ms=until_ms)
        if not leased.runs:
            return multiple()
        self.commit(leased)
        offsets = [offset for run in leased.runs for offset in range(*run)]
        assert set(offsets) <= ready, "nothing is handed out that is not ready"
        for lane in range(5):
            waiting = sorted(offset for offset in ready if self.lanes[offset] == lane)
            taken = sorted(offset for offset in offsets if self.lanes[offset] == lane)
            assert taken == waiting[: len(taken)], "a lane is handed out in order"
        for offset in offsets:
            assert self.delivery.delivery_count(offset) == self.attempts[offset] + 1
            self.places[offset], self.lease_of[offset] = "out", lease
            self.until_ms[offset] = until_ms
        return multiple(*((lease, offset) for offset in offsets))

    @rule(limit=st.integers(1, 10))
    def poll_that_is_broken_off(self, limit: int) -> None:
        runs = self.delivery.shelf.take(limit, weights=WEIGHTS, wait_ms_max=30_000, now_ms=self.now_ms)
        self.delivery.reserve(runs)
        self.delivery.put_back(runs)

    def is_held(self, receipt: tuple[int, int]) -> bool:
        """Whether a receipt is good; the machine has to think so too."""
        lease, offset = receipt
        holding = self.delivery.holding(lease, offset, now_ms=self.now_ms)
        is_good = (
            self.places[offset] == "out"
            and self.lease_of[offset] == lease
            and self.now_ms < self.until_ms[offset]
        )
        assert (holding is Holding.HELD) == is_good
        assert (holding is Holding.SETTLED) == (self.places[offset] == "settled")
        return is_good

    @rule(receipt=receipts)
    def ack(self, receipt: tuple[int, int]) -> None:
        if self.is_held(receipt):
            lease, offset = receipt
            self.commit(Settled(NUMBER, lease, ((offset, offset + 1),)))
            self.places[offset] = "settled"

    @rule(receipt=receipts, reason=st.sampled_from(("nack", "reject")))
    def give_back(self, receipt: tuple[int, int], reason: str) -> None:
        if not self.is_held(receipt):
            return
        lease, offset = receipt
        runs = [(offset, offset + 1)]
        story = Story(Reason.REJECTED, "ann", "", self.now_ms)
        if reason == "reject":
            self.commit(bury(self.delivery, lease, runs, POLICY, story))
            self.places[offset] = "moving"
        else:
            self.commit(*give_back(self.delivery, lease, runs, POLICY, story, due_ms=None))
            self.came_back(offset, self.now_ms + 1_000 * 2 ** self.attempts[offset])

    def came_back(self, offset: int, due_ms: int) -> None:
        if self.attempts[offset] == POLICY.retries_max:
            self.places[offset] = "moving"
        else:
            self.attempts[offset] += 1
            self.places[offset], self.due_ms[offset] = "waiting", due_ms

    @rule(receipt=receipts, visibility_ms=st.sampled_from((1_000, 20_000)))
    def extend(self, receipt: tuple[int, int], visibility_ms: int) -> None:
        if self.is_held(receipt):
            lease, offset = receipt
            until_ms = self.now_ms + visibility_ms
            self.commit(Extended(NUMBER, lease, ((offset, offset + 1),), until_ms))
            self.until_ms[offset] = until_ms

    @rule()
    def finish_moves(self) -> None:
        moved = sorted(move.offset for move, _ in self.delivery.moves.pending())
        if moved:
            self.commit(Settled(NUMBER, NO_LEASE, tuple(runs_of(moved))))
            self.places.update(dict.fromkeys(moved, "settled"))

    @rule(duration_ms=st.sampled_from((1, 999, 1_000, 5_000, 30_000)))
    def pass_time(self, duration_ms: int) -> None:
        self.now_ms += duration_ms
        self.commit(*expire(self.delivery, POLICY, now_ms=self.now_ms, wall_ms=self.now_ms))
        self.delivery.fall_due(self.now_ms)
        for offset, place in self.places.items():
            if place == "out" and self.until_ms[offset] <= self.now_ms:
                self.came_back(offset, self.now_ms)
        for offset, place in self.places.items():
            if place == "waiting" and self.due_ms[offset] <= self.now_ms:
                self.places[offset] = "ready"

    @rule(share=st.integers(0, 4))
    def commit_by_hand(self, share: int) -> None:
        offset = self.floor + (self.end_offset - self.floor) * share // 4
        self.delivery.settle_below(offset)
        self.floor = self.delivery.floor
        for settled in range(offset):
            if self.places[settled] != "settled":
                self.places[settled] = "settled"
        # The journal has the commit in the groups' words; here the state stands for it.
        self.journal = [msgspec.json.encode(["DeliveryKept", self.delivery.kept()])]

    @rule(is_shortened=st.booleans())
    def restart(self, is_shortened: bool) -> None:
        before = self.delivery.kept()
        if is_shortened:
            self.journal = [
                msgspec.json.encode([type(event).__name__, event]) for event in self.deliveries.whole_state()
            ]
        self.deliveries = Deliveries()
        for data in self.journal:
            name, fields = msgspec.json.decode(data)
            self.deliveries.apply(msgspec.convert(fields, type=EVENT_TYPES[name]))
        # What has fallen due is told as ready, or as due in the past: both mean the same.
        self.delivery.fall_due(self.now_ms)
        assert self.delivery.kept().floor == before.floor
        assert deadlines(self.delivery.kept()) == deadlines(before)
        assert self.delivery.moves.pending() == before.moves
        assert self.delivery.attempts == {offset: n for offset, n, _ in before.returned}
        self.scan()

    @invariant()
    def every_message_is_in_one_place(self) -> None:
        delivery = self.delivery
        shelf = Runs()
        for runs in delivery.shelf.ready:
            for run in runs:
                assert not shelf.within(*run)
                shelf.add(*run)
        for offset, place in self.places.items():
            is_settled = offset < delivery.floor or offset in delivery.settled
            assert (place == "settled") == is_settled
            assert (place in ("out", "waiting", "moving")) == (offset in delivery.busy)
            assert (place == "ready") == (offset in shelf)
            assert (place == "moving") == (offset in set(delivery.moves))
            assert (place == "out") == any(offset in lease.offsets for lease in delivery.leases.values())
        assert not delivery.reserved

    @invariant()
    def the_floor_is_the_first_message_that_is_not_settled(self) -> None:
        unsettled = [offset for offset, place in self.places.items() if place != "settled"]
        assert self.delivery.floor == self.floor == min(unsettled, default=self.end_offset)

    @invariant()
    def consumers_have_out_what_was_leased_to_them(self) -> None:
        out: Counter[str] = Counter()
        for lease in self.delivery.leases.values():
            out[lease.consumer] += lease.offsets.count
        for consumer in ("ann", "ben"):
            assert self.deliveries.in_flight("workers", consumer) == out[consumer]

    @invariant()
    def something_is_known_to_happen_when_messages_wait(self) -> None:
        if any(place in ("out", "waiting") for place in self.places.values()):
            times = [self.until_ms[o] for o, place in self.places.items() if place == "out"]
            times += [self.due_ms[o] for o, place in self.places.items() if place == "waiting"]
            next_ms = self.delivery.next_time_ms()
            assert next_ms is not None
            assert next_ms <= min(times)


TestDelivery = DeliveryMachine.TestCase
TestDelivery.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
