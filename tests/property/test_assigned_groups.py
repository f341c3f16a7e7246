"""Groups the broker assigns to, under everything that members and misfortune can do.

The members here behave as clients do: they let go when told to, lose replies, pause, die, come back as
zombies; and whoever has not been heard for a session stops reading by itself. A naive model remembers what
each of them believes to own.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from goqueue.core.groups.assigned import AssignedGroup
from goqueue.core.groups.assigned_state import Terms
from goqueue.core.groups.assignors import ASSIGNORS, sticky
from goqueue.core.groups.events import Event, HolderKept
from goqueue.core.groups.groups import Groups
from goqueue.core.groups.holder import Holder
from goqueue.model.errors import Fenced, GoQueueError, MemberEpochFenced, UnknownMember
from goqueue.model.groups import GroupKind, GroupState, Membership, Sharing
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.settings import GroupConfig

NS_PER_MS = 1_000_000
SESSION_MS, REVOCATION_MS = 10_000, 25_000
TOPICS = tuple(map(TopicName, ("orders", "payments", "returns")))
NOTHING: frozenset[TopicPartition] = frozenset()


@dataclass(eq=False)
class Client:
    """A consumer: what it believes of itself."""

    topics: tuple[TopicName, ...]
    member_id: str = ""
    epoch: int = 0
    owned: frozenset[TopicPartition] = NOTHING
    to_revoke: frozenset[TopicPartition] = NOTHING
    revocation_ns: int | None = None
    heard_ns: int = 0
    is_dead: bool = False

    def reads(self, now_ns: int) -> frozenset[TopicPartition]:
        """What it reads from: nothing after a silent session, and not what it had to let go of by now."""
        if self.is_dead or not self.member_id or now_ns >= self.heard_ns + SESSION_MS * NS_PER_MS:
            return NOTHING
        if self.revocation_ns is not None and now_ns >= self.revocation_ns:
            return self.owned
        return self.owned | self.to_revoke

    def begin_again(self) -> None:
        self.epoch, self.owned, self.to_revoke, self.revocation_ns = 0, NOTHING, NOTHING, None


class AssignedGroupUnderFire(RuleBasedStateMachine):
    terms = Terms(GroupKind.HTTP, Sharing.COOPERATIVE)

    def __init__(self) -> None:
        super().__init__()
        self.config = GroupConfig()
        self.groups = Groups(self.config)
        self.journal: list[Event] = []
        self.now_ns = 0
        self.topics = {TOPICS[0]: 5}
        self.clients: list[Client] = []
        self.owners: dict[tuple[int, TopicPartition], str] = {}
        self.numbers = count(1)
        self.assignor = "sticky"

    @property
    def group(self) -> AssignedGroup:
        return self.groups.ensure("readers").as_assigned()

    @initialize(member_count=st.integers(1, 3), assignor=st.sampled_from(sorted(ASSIGNORS)))
    def members_begin(self, member_count: int, assignor: str) -> None:
        self.assignor = assignor
        for _ in range(member_count):
            self.a_member_comes(TOPICS)

    @rule(topics=st.sampled_from([TOPICS, TOPICS, TOPICS[:1], TOPICS[1:]]))
    def a_member_comes(self, topics: tuple[TopicName, ...]) -> None:
        if len(self.clients) < 6:
            self.clients.append(Client(topics))
            self.step(self.clients[-1])

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), is_reply_lost=st.booleans())
    def a_member_does_what_is_next(self, data: st.DataObject, is_reply_lost: bool) -> None:
        self.step(data.draw(st.sampled_from(self.clients)), is_reply_lost=is_reply_lost)

    @rule(rounds=st.integers(1, 3))
    def all_do_what_is_next(self, rounds: int) -> None:
        for _ in range(rounds):
            for client in self.clients:
                self.step(client)

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def a_member_dies(self, data: st.DataObject) -> None:
        client = data.draw(st.sampled_from(self.clients))
        client.is_dead = True
        self.clients.remove(client)

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def a_member_leaves(self, data: st.DataObject) -> None:
        client = data.draw(st.sampled_from(self.clients))
        self.clients.remove(client)
        client.is_dead = True
        try:
            self.write(self.group.leave(client.member_id, now_ns=self.now_ns))
        except UnknownMember:
            assert client.member_id not in self.group.members

    @precondition(lambda self: any(client.to_revoke for client in self.clients))
    @rule()
    def a_member_does_not_let_go(self) -> None:
        """It says that it lives, and keeps what it was asked for, until that is taken from it."""
        client = next(client for client in self.clients if client.to_revoke)
        if client.member_id not in self.group.members:
            return
        holder = self.group.member(client.member_id)
        if not holder.revoking or holder.epoch != client.epoch:
            return
        who, kept = Membership("readers", client.member_id, client.epoch), client.owned | client.to_revoke
        forced = self.group.rebalances.revocation_timeouts
        while holder.revoking:
            self.write(self.group.heartbeat(who, claimed=kept, now_ns=self.now_ns))
            self.hear(client, self.now_ns)
            self.time_passes(SESSION_MS // 2)
        if self.group.rebalances.revocation_timeouts > forced:  # else nobody is there any more to have it
            with pytest.raises(Fenced):
                self.group.heartbeat(who, claimed=kept, now_ns=self.now_ns)

    @rule(topic=st.sampled_from(TOPICS), more=st.integers(1, 4))
    def a_topic_comes_or_grows(self, topic: TopicName, more: int) -> None:
        if self.topics.get(topic, 0) < 12:
            self.topics = {**self.topics, topic: self.topics.get(topic, 0) + more}

    @rule(duration_ms=st.sampled_from([100, SESSION_MS // 2, SESSION_MS, REVOCATION_MS]))
    def time_passes(self, duration_ms: int) -> None:
        end_ns = self.now_ns + duration_ms * NS_PER_MS
        while (deadline_ns := self.group.next_deadline_ns()) is not None and deadline_ns <= end_ns:
            self.now_ns = max(self.now_ns, deadline_ns)
            self.write(self.group.advance(now_ns=self.now_ns).events)
            assert self.group.next_deadline_ns() != deadline_ns, "advancing must settle what was due"
            self.no_partition_has_two_owners()
        self.now_ns = end_ns

    @rule(is_shortened=st.booleans())
    def the_broker_restarts(self, is_shortened: bool) -> None:
        state = list(self.groups.whole_state())
        self.groups = self.replayed(self.journal)
        assert list(self.groups.whole_state()) == state, "the state written anew is what the journal says"
        if is_shortened:
            self.groups, self.journal = self.replayed(state), state
        self.groups.resume(now_ns=self.now_ns)

    @invariant()
    def no_partition_has_two_owners(self) -> None:
        if self.terms.sharing is Sharing.EAGER:
            return  # an old generation may still read; the broker does not listen to it
        read = [place for client in self.clients for place in client.reads(self.now_ns)]
        assert len(read) == len(set(read)), sorted(read)

    @invariant()
    def a_group_at_work_has_a_timer_and_an_empty_one_has_none(self) -> None:
        assert (self.group.next_deadline_ns() is None) == self.group.is_vacant

    def teardown(self) -> None:
        """Left in peace, those who live have all partitions between them, and nobody has to move any more."""
        for _ in range(30):
            for client in self.clients:
                self.step(client)
            self.time_passes(SESSION_MS // 4)
            if not self.group.is_rebalancing and len(self.group.members) == len(self.clients):
                break
        for client in self.clients:
            self.step(client)
        if not self.clients:
            return
        assert self.group.state is GroupState.STABLE
        assert {client.member_id for client in self.clients} == set(self.group.members)
        assert {client.epoch for client in self.clients} == {self.group.generation}
        read = [place for client in self.clients for place in client.reads(self.now_ns)]
        wanted = {topic for client in self.clients for topic in client.topics}
        assert sorted(read) == sorted(
            TopicPartition(topic, partition)
            for topic, total in self.topics.items()
            if topic in wanted
            for partition in range(total)
        )
        if ASSIGNORS[self.assignor] is sticky and len({client.topics for client in self.clients}) == 1:
            loads = [len(client.owned) for client in self.clients]
            assert max(loads) - min(loads) <= 1

    def replayed(self, events: Iterable[Event]) -> Groups:
        groups = Groups(self.config)
        for event in events:
            groups.apply(event)
        return groups

    def write(self, events: Iterable[Event]) -> None:
        for event in events:
            self.journal.append(event)
            self.groups.apply(event)

    def step(self, client: Client, *, is_reply_lost: bool = False) -> None:
        """What a consumer does next: join, or say that it lives and what it has."""
        sent_ns = self.now_ns
        if self.now_ns >= client.heard_ns + SESSION_MS * NS_PER_MS:
            # It knows that it was silent for too long. It still tries, as a zombie does, under its old epoch.
            client.owned = client.to_revoke = NOTHING
        self.write(self.group.follow(self.topics, now_ns=self.now_ns))
        try:
            if not client.member_id or client.member_id not in self.group.members or client.epoch == 0:
                self.try_old_epoch(client)
                self.join(client)
            else:
                self.heartbeat(client)
        except MemberEpochFenced:
            client.begin_again()
            return
        except GoQueueError:
            self.learn(client)
            return
        if not is_reply_lost:
            self.hear(client, sent_ns)
        elif client.epoch == 0:
            client.begin_again()

    def try_old_epoch(self, client: Client) -> None:
        if client.member_id and client.member_id not in self.group.members:
            who = Membership("readers", client.member_id, max(client.epoch, 1))
            try:
                self.group.heartbeat(who, now_ns=self.now_ns)
            except Fenced:
                return
            raise AssertionError("a zombie was listened to")

    def join(self, client: Client) -> None:
        client.begin_again()
        if self.terms.kind is GroupKind.HTTP or not client.member_id:
            client.member_id = f"member-{next(self.numbers)}"
        kept = HolderKept(
            member_id=client.member_id,
            instance_id=None,
            client_id="",
            client_host="",
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REVOCATION_MS,
            topics=client.topics,
            pattern=None,
            assignor=self.assignor,
            joined_ms=0,
        )
        claimed = NOTHING if self.terms.kind is GroupKind.CONSUMER else None
        self.write(self.group.join(self.terms, kept, now_ns=self.now_ns))
        self.write(self.group.arrive(client.member_id, claimed=claimed, now_ns=self.now_ns))

    def heartbeat(self, client: Client) -> None:
        who = Membership("readers", client.member_id, client.epoch)
        if self.terms.kind is GroupKind.CONSUMER:
            # It has let go of what it was told to before it says so.
            client.to_revoke = NOTHING
            self.write(self.group.heartbeat(who, claimed=client.owned, now_ns=self.now_ns))
        elif client.to_revoke:
            revoked, client.to_revoke = client.to_revoke, NOTHING
            self.write(self.group.release(who, revoked, now_ns=self.now_ns))
        else:
            self.write(self.group.heartbeat(who, now_ns=self.now_ns))

    def learn(self, client: Client) -> None:
        """Refused: it asks without a generation what counts now."""
        client.begin_again()
        who = Membership("readers", client.member_id, 0)
        self.write(self.group.heartbeat(who, now_ns=self.now_ns))
        self.hear(client, self.now_ns)

    def hear(self, client: Client, sent_ns: int) -> None:
        holder: Holder = self.group.member(client.member_id)
        client.epoch, client.owned = holder.epoch, holder.owned
        client.to_revoke, client.revocation_ns = holder.revoking, holder.revocation_ns
        client.heard_ns = sent_ns
        if self.terms.sharing is Sharing.EAGER:
            for place in client.owned:
                owner = self.owners.setdefault((client.epoch, place), client.member_id)
                assert owner == client.member_id, "two owners in one generation"


class EagerGroupUnderFire(AssignedGroupUnderFire):
    terms = Terms(GroupKind.HTTP, Sharing.EAGER)


class ConsumerGroupUnderFire(AssignedGroupUnderFire):
    terms = Terms(GroupKind.CONSUMER, Sharing.COOPERATIVE)


_SETTINGS = settings(max_examples=30, stateful_step_count=30, deadline=None)
TestCooperativeGroups = AssignedGroupUnderFire.TestCase
TestCooperativeGroups.settings = _SETTINGS
TestEagerGroups = EagerGroupUnderFire.TestCase
TestEagerGroups.settings = _SETTINGS
TestConsumerGroups = ConsumerGroupUnderFire.TestCase
TestConsumerGroups.settings = _SETTINGS
