"""A group under everything that members and misfortune can do: join, die, hang up, pause, leave, restart.

The members here behave as Kafka's clients do, and a naive model remembers what they were told.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count
from uuid import UUID

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from goqueue.core.groups.events import Event, GroupChanged
from goqueue.core.groups.group import Group
from goqueue.core.groups.groups import Groups
from goqueue.core.groups.outcome import Outcome
from goqueue.model.errors import GoQueueError, MemberIdRequired, UnknownMember
from goqueue.model.group_commands import JoinGroup, SyncGroup
from goqueue.model.groups import GroupState, Joined, Leaver, Membership, Synced, TopicOffsets
from goqueue.model.ids import TopicName
from goqueue.model.settings import GroupConfig

PARTITIONS = range(5)
NS_PER_MS = 1_000_000
SESSION_MS, REBALANCE_MS, DELAY_MS = 10_000, 20_000, 500
ORDERS, ORDERS_ID = TopicName("orders"), UUID(int=1)


@dataclass(eq=False)
class Client:
    """A consumer: what it believes of itself."""

    member_id: str = ""
    generation: int = -1
    joined: Joined | None = None
    owned: frozenset[int] = frozenset()
    is_waiting: bool = False
    is_stable: bool = False

    def begin_again(self) -> None:
        self.joined, self.owned, self.is_waiting, self.is_stable = None, frozenset(), False, False


class GroupUnderFire(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.config = GroupConfig(initial_delay_ms=DELAY_MS)
        self.groups = Groups(self.config)
        self.journal: list[Event] = []
        self.now_ns = 0
        self.clients: list[Client] = []
        self.waiting: dict[str, Client] = {}
        self.owners: dict[tuple[int, int], str] = {}
        self.committed: dict[int, int] = {}
        self.agreed = 0
        self.numbers = count(1)

    @property
    def group(self) -> Group:
        return self.groups.ensure("readers").as_classic()

    @initialize(member_count=st.integers(1, 3))
    def members_begin(self, member_count: int) -> None:
        for _ in range(member_count):
            self.a_member_comes()

    @rule()
    def a_member_comes(self) -> None:
        if len(self.clients) < 5:
            self.clients.append(Client())

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def a_member_does_what_is_next(self, data: st.DataObject) -> None:
        self.step(data.draw(st.sampled_from(self.clients)))

    @rule(rounds=st.integers(1, 4))
    def all_do_what_is_next(self, rounds: int) -> None:
        for _ in range(rounds):
            for client in self.clients:
                self.step(client)

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def a_member_dies(self, data: st.DataObject) -> None:
        client = data.draw(st.sampled_from(self.clients))
        self.clients.remove(client)
        if client.is_waiting:
            self.hang_up(client)

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def a_connection_breaks(self, data: st.DataObject) -> None:
        client = data.draw(st.sampled_from([client for client in self.clients if client.is_waiting]))
        self.hang_up(client)
        client.begin_again()

    @precondition(lambda self: any(client.member_id for client in self.clients))
    @rule(data=st.data())
    def a_member_leaves(self, data: st.DataObject) -> None:
        client = data.draw(st.sampled_from([client for client in self.clients if client.member_id]))
        if client.is_waiting:
            return
        self.clients.remove(client)
        try:
            self.carry_out(self.group.leave(Leaver(client.member_id), now_ns=self.now_ns))
        except UnknownMember:
            assert client.member_id not in self.group.members

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), ahead=st.integers(0, 50))
    def a_member_commits(self, data: st.DataObject, ahead: int) -> None:
        """Anybody tries, zombies too; only members of the present generation are let."""
        client = data.draw(st.sampled_from(self.clients))
        rows = tuple((partition, ahead, -1, "") for partition in sorted(client.owned))
        who = Membership("readers", client.member_id, client.generation)
        try:
            event = self.groups.commit_offsets(
                who, [TopicOffsets(ORDERS, ORDERS_ID, rows)], now_ns=self.now_ns, now_ms=0
            )
        except GoQueueError:
            return
        if self.group.members:
            assert client.generation == self.group.generation
        self.write([event])
        self.committed.update(dict.fromkeys(client.owned, ahead))

    @rule(duration_ms=st.sampled_from([100, DELAY_MS, SESSION_MS // 2, SESSION_MS, REBALANCE_MS]))
    def time_passes(self, duration_ms: int) -> None:
        end_ns = self.now_ns + duration_ms * NS_PER_MS
        while (deadline_ns := self.group.next_deadline_ns()) is not None and deadline_ns <= end_ns:
            self.now_ns = max(self.now_ns, deadline_ns)
            self.carry_out(self.group.advance(now_ns=self.now_ns))
            assert self.group.next_deadline_ns() != deadline_ns, "advancing must settle what was due"
        self.now_ns = end_ns

    @rule(is_shortened=st.booleans())
    def the_broker_restarts(self, is_shortened: bool) -> None:
        state = list(self.groups.whole_state())
        self.groups = self.replayed(self.journal)
        assert list(self.groups.whole_state()) == state, "the state written anew is what the journal says"
        if is_shortened:
            self.groups, self.journal = self.replayed(state), state
        assert self.group.generation == self.agreed
        self.groups.resume(now_ns=self.now_ns)
        for client in self.clients:
            if client.is_waiting:
                client.begin_again()
        self.waiting.clear()

    @invariant()
    def offsets_are_as_last_committed(self) -> None:
        rows = self.groups.ensure("readers").offsets.of(ORDERS, ORDERS_ID)
        assert {partition: row[1] for partition, row in rows.items()} == self.committed

    @invariant()
    def whoever_waits_is_known_to_wait(self) -> None:
        assert set(self.waiting) == {m.member_id for m in self.group.members.values() if m.is_waiting}

    @invariant()
    def a_group_at_work_has_a_timer_and_an_empty_one_has_none(self) -> None:
        has_timer = self.group.next_deadline_ns() is not None
        assert has_timer == (not self.group.is_vacant)

    def teardown(self) -> None:
        """Left in peace, the members that live agree on one generation, and all partitions have an owner."""
        for _ in range(30):
            for client in self.clients:
                self.step(client)
            self.time_passes(SESSION_MS // 4)
        if not self.clients:
            return
        assert self.group.state is GroupState.STABLE
        assert all(client.is_stable for client in self.clients)
        assert {client.generation for client in self.clients} == {self.group.generation}
        assert sorted(p for client in self.clients for p in client.owned) == list(PARTITIONS)

    def replayed(self, events: Iterable[Event]) -> Groups:
        groups = Groups(self.config)
        for event in events:
            groups.apply(event)
        return groups

    def step(self, client: Client) -> None:
        """What a consumer does next: join, then sync, then heartbeat; and begin again when told to."""
        if client.is_waiting:
            return
        try:
            if client.is_stable:
                who = Membership("readers", client.member_id, client.generation)
                self.group.heartbeat(who, now_ns=self.now_ns)
            elif client.joined is not None:
                self.sync(client, client.joined)
            else:
                self.join(client)
        except MemberIdRequired as required:
            client.member_id = required.member_id
        except GoQueueError as error:
            self.tell(client, error)

    def join(self, client: Client) -> None:
        command = JoinGroup(
            group="readers",
            member_id=client.member_id,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            protocol_type="consumer",
            protocols=(("range", b""),),
            is_id_required=True,
        )
        fresh_id = f"member-{next(self.numbers)}"
        outcome = self.group.join(command, fresh_id=fresh_id, now_ns=self.now_ns)
        self.wait(client)
        self.carry_out(outcome)

    def sync(self, client: Client, joined: Joined) -> None:
        names = [member.member_id for member in joined.members]
        assignments = [(name, bytes(PARTITIONS[at :: len(names)])) for at, name in enumerate(names)]
        command = SyncGroup(
            group="readers",
            member_id=client.member_id,
            generation=client.generation,
            assignments=assignments,
        )
        changed = self.group.sync(command, now_ns=self.now_ns)
        self.wait(client)
        if changed is not None:
            self.write([changed])
        self.carry_out(self.group.answer_syncs(now_ns=self.now_ns))

    def wait(self, client: Client) -> None:
        client.is_waiting = True
        self.waiting[client.member_id] = client

    def hang_up(self, client: Client) -> None:
        del self.waiting[client.member_id]
        self.carry_out(self.group.abandon(client.member_id, now_ns=self.now_ns))

    def carry_out(self, outcome: Outcome) -> None:
        self.write(outcome.events)
        for member_id, reply in outcome.answers:
            if client := self.waiting.pop(member_id, None):
                client.is_waiting = False
                self.tell(client, reply)

    def write(self, events: Iterable[Event]) -> None:
        for event in events:
            self.journal.append(event)
            self.groups.apply(event)
            if isinstance(event, GroupChanged):
                self.agreed = event.generation

    def tell(self, client: Client, reply: Joined | Synced | GoQueueError) -> None:
        match reply:
            case Joined():
                assert reply.member_id == client.member_id
                client.joined, client.generation = reply, reply.generation
            case Synced():
                client.is_stable, client.owned = True, frozenset(reply.assignment)
                for partition in client.owned:
                    owner = self.owners.setdefault((client.generation, partition), client.member_id)
                    assert owner == client.member_id, "two owners of a partition in one generation"
            case UnknownMember():
                client.begin_again()
                client.member_id = ""
            case _:
                client.begin_again()


TestGroupUnderFire = GroupUnderFire.TestCase
TestGroupUnderFire.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
