"""Any node answers: what is led elsewhere is asked of the node that leads it."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest

from goqueue.broker.broker import Broker
from goqueue.broker.forwarding import forwarding as module
from goqueue.broker.forwarding.at_home import at_home
from goqueue.broker.forwarding.forwarding import Forwarding
from goqueue.broker.forwarding.hints import open_note
from goqueue.broker.forwarding.joining import joined_topic
from goqueue.broker.forwarding.table import PASSED_ON
from goqueue.broker.read.frames import offsets_at, watch_offsets
from goqueue.broker.read.read import read_messages
from goqueue.broker.topics.verbs import create_topic
from goqueue.broker.write.publish import publish
from goqueue.model.cluster import NodeId, NodeRecord, PartitionRecord
from goqueue.model.commands import FindOffsets, Placed, Publish, ReadMessages, WatchOffsets
from goqueue.model.delays import MoveDelayed
from goqueue.model.errors import (
    AnswerLost,
    GoQueueError,
    LeadershipLost,
    MessageTooLarge,
    NodeUnreachable,
    NoLeader,
    NotLeader,
    PartitionNotFound,
    TopicNotFound,
)
from goqueue.model.group_commands import DeleteOffsets, ResetOffsets
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.messages import Message
from goqueue.model.peers import Answered
from goqueue.model.places import Command
from goqueue.model.ports import Peers
from goqueue.model.settings import BrokerConfig, TopicSettings
from goqueue.model.topics import CreateTopic, PartitionView, TopicView
from goqueue.node.disk import FolderDisk
from tests.unit.broker.running import ORDERS, running, until

A, B = NodeId("a"), NodeId("b")
COUNT = 4


class Calls:
    """Peers that run a command at the other broker, unless a test wants something else to happen."""

    def __init__(self) -> None:
        self.brokers: dict[NodeId, Broker] = {}
        self.asked: list[tuple[NodeId, Command]] = []
        self.troubles: list[GoQueueError] = []
        """What the next calls end with, one each."""

    async def call(self, node: NodeId, command: Command, *, wait_ms: int) -> Answered:
        self.asked.append((node, command))
        if self.troubles:
            raise self.troubles.pop(0)
        return Answered(await PASSED_ON[type(command)].verb(self.brokers[node], command))


class Two:
    """Two brokers with the same topic; A passes on what the image says is led by B."""

    def __init__(self, brokers: dict[NodeId, Broker], calls: Calls) -> None:
        self.brokers = brokers
        self.calls = calls
        self.a, self.b = brokers[A], brokers[B]
        self.a.forwarding = Forwarding(self.a, cast(Peers, calls))

    def lead(self, leaders: dict[int, NodeId | None]) -> None:
        topic = self.a.metadata.topic(ORDERS)
        for number, leader in leaders.items():
            self.a.metadata.records[topic.topic_id, number] = PartitionRecord(
                leader=leader, epoch=1, replicas=(A, B), isr=(A, B)
            )
        self.a.metadata.revision += 1
        for listener in self.a.agreement.listeners:
            listener()

    async def stored(self, node: NodeId) -> list[list[bytes | None]]:
        """The values in each partition of a node."""
        found = []
        for number in range(COUNT):
            read = await read_messages(
                self.brokers[node], ReadMessages(source=TopicPartition(ORDERS, number))
            )
            found.append([message.value for message in read.messages])
        return found


def walk(tmp_path: Path, work: Callable[[Two], Awaitable[None]]) -> None:
    async def walk() -> None:
        calls = Calls()
        async with AsyncExitStack() as stack:
            for node in (A, B):
                disk = FolderDisk(tmp_path / node)
                broker = await stack.enter_async_context(running(disk, BrokerConfig(node_id=node)))
                await create_topic(broker, CreateTopic(name=ORDERS, partitions=COUNT))
                calls.brokers[node] = broker
            await work(Two(calls.brokers, calls))

    asyncio.run(walk())


def to(number: int | None, value: bytes) -> Message:
    return Message(value, partition=number)


def test_messages_are_stored_by_the_leaders_of_their_partitions_and_told_in_order(tmp_path: Path) -> None:
    async def work(two: Two) -> None:
        two.lead({0: A, 1: B, 2: A, 3: B})
        messages = [to(number % COUNT, b"%d" % number) for number in range(12)]
        published = await at_home(two.a, publish, Publish(topic=ORDERS, messages=messages))
        assert published == [Placed(number % COUNT, number // COUNT) for number in range(12)]
        assert await two.stored(A) == [[b"0", b"4", b"8"], [], [b"2", b"6", b"10"], []]
        assert await two.stored(B) == [[], [b"1", b"5", b"9"], [], [b"3", b"7", b"11"]]
        assert [node for node, _ in two.calls.asked] == [B]

    walk(tmp_path, work)


def test_a_key_goes_where_it_went_on_one_node_and_others_take_turns_past_what_nobody_leads(
    tmp_path: Path,
) -> None:
    async def work(two: Two) -> None:
        keyed = [Message(b"v", key=b"k%d" % number) for number in range(20)]
        alone = await publish(two.b, Publish(topic=ORDERS, messages=keyed))
        two.lead({0: A, 1: B, 2: A, 3: B})
        shared = await at_home(two.a, publish, Publish(topic=ORDERS, messages=keyed))
        assert [_partition(one) for one in shared] == [_partition(one) for one in alone]
        two.lead({1: None})
        free = [Message(b"v")] * 30
        turns = await at_home(two.a, publish, Publish(topic=ORDERS, messages=free))
        assert Counter(map(_partition, turns)) == {0: 10, 2: 10, 3: 10}

    walk(tmp_path, work)


def test_a_bad_message_is_refused_and_the_others_are_stored(tmp_path: Path) -> None:
    async def work(two: Two) -> None:
        two.lead({0: A, 1: B, 2: A, 3: B})
        messages = [to(1, b"x" * 20_000_000), to(9, b"nowhere"), to(1, b"one"), to(0, b"nought")]
        too_large, nowhere, *placed = await at_home(two.a, publish, Publish(topic=ORDERS, messages=messages))
        assert isinstance(too_large, MessageTooLarge)
        assert isinstance(nowhere, PartitionNotFound)
        assert placed == [Placed(1, 0), Placed(0, 0)]
        with pytest.raises(TopicNotFound):
            await at_home(two.a, publish, Publish(topic=TopicName("nothing"), messages=messages))

    walk(tmp_path, work)


@pytest.mark.parametrize("trouble", [NotLeader("orders", 1), NodeUnreachable("b")])
def test_what_was_not_run_is_tried_again_and_stored_once(tmp_path: Path, trouble: GoQueueError) -> None:
    async def work(two: Two) -> None:
        two.lead({0: A, 1: B, 2: A, 3: B})
        two.calls.troubles = [trouble]
        messages = [to(0, b"here"), to(1, b"there")]
        assert await at_home(two.a, publish, Publish(topic=ORDERS, messages=messages)) == [
            Placed(0, 0),
            Placed(1, 0),
        ]
        assert len(two.calls.asked) == 2
        assert await two.stored(A) == [[b"here"], [], [], []]

    walk(tmp_path, work)


@pytest.mark.parametrize("trouble", [AnswerLost("b", "the connection was lost"), LeadershipLost("orders", 1)])
def test_what_may_have_been_stored_is_not_sent_again(tmp_path: Path, trouble: GoQueueError) -> None:
    async def work(two: Two) -> None:
        two.lead({0: A, 1: B, 2: A, 3: B})
        two.calls.troubles = [trouble]
        messages = [to(0, b"here"), to(1, b"there")]
        here, there = await at_home(two.a, publish, Publish(topic=ORDERS, messages=messages))
        assert here == Placed(0, 0)
        assert type(there) is type(trouble)
        two.calls.troubles = [trouble]
        with pytest.raises(type(trouble)):
            await at_home(two.a, publish, Publish(topic=ORDERS, messages=messages[1:]))
        assert len(two.calls.asked) == 2

    walk(tmp_path, work)


@pytest.mark.parametrize(
    "command",
    [
        # Once moved, it may be delivered before the second asking, which would say that it never was.
        MoveDelayed(topic=ORDERS, partition=1, number=7, due_ms=0),
        # The second would tell the new offsets as those before, or be refused for who has joined meanwhile.
        ResetOffsets(group="g", topics=[ORDERS]),
        # The first may have ended the group, so that the second does not find it.
        DeleteOffsets(group="g", unwanted=[(ORDERS, [0])]),
    ],
    ids=lambda command: type(command).__name__,
)
def test_what_would_answer_otherwise_when_it_was_done_is_not_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    async def work(two: Two) -> None:
        monkeypatch.setattr(module, "route", lambda *_: {B: None})
        two.calls.troubles = [AnswerLost("b", "too few replicas are in sync")]
        with pytest.raises(AnswerLost):
            await at_home(two.a, PASSED_ON[type(command)].verb, command)
        assert two.calls.asked == [(B, command)]

    walk(tmp_path, work)


def test_a_place_without_a_leader_is_waited_for_and_then_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(two: Two) -> None:
        two.lead({0: A, 1: None, 2: A, 3: B})
        read = ReadMessages(source=TopicPartition(ORDERS, 1))
        asking = asyncio.ensure_future(at_home(two.a, read_messages, read))
        publishing = asyncio.ensure_future(
            at_home(two.a, publish, Publish(topic=ORDERS, messages=[to(1, b"late")]))
        )
        await asyncio.sleep(0)
        two.lead({1: B})
        assert await publishing == [Placed(1, 0)]
        assert (await asking).next_offset in (0, 1)
        monkeypatch.setattr(module, "PATIENCE_MS", 0)
        two.lead({1: None})
        with pytest.raises(NoLeader):
            await at_home(two.a, read_messages, read)
        [refused] = await at_home(two.a, publish, Publish(topic=ORDERS, messages=[to(1, b"never")]))
        assert isinstance(refused, NoLeader)

    walk(tmp_path, work)


def test_messages_are_read_from_their_leader(tmp_path: Path) -> None:
    async def work(two: Two) -> None:
        two.lead({0: A, 1: B, 2: A, 3: B})
        await publish(two.b, Publish(topic=ORDERS, messages=[to(1, b"there")]))
        read = ReadMessages(source=TopicPartition(ORDERS, 1))
        [message] = (await at_home(two.a, read_messages, read)).messages
        assert message.value == b"there"
        assert two.calls.asked == [(B, read)]

    walk(tmp_path, work)


def test_a_look_whose_answer_was_lost_is_taken_again(tmp_path: Path) -> None:
    async def work(two: Two) -> None:
        two.lead({0: A, 1: B, 2: A, 3: B})
        await publish(two.b, Publish(topic=ORDERS, messages=[to(1, b"there")]))
        two.calls.troubles = [AnswerLost("b", "the connection was lost"), NodeUnreachable("b")]
        read = ReadMessages(source=TopicPartition(ORDERS, 1))
        assert len((await at_home(two.a, read_messages, read)).messages) == 1
        assert len(two.calls.asked) == 3

    walk(tmp_path, work)


def test_ends_of_all_partitions_are_asked_of_their_leaders(tmp_path: Path) -> None:
    async def work(two: Two) -> None:
        two.lead({0: A, 1: B, 2: A, 3: B})
        await publish(two.a, Publish(topic=ORDERS, messages=[to(0, b"a"), to(2, b"a"), to(2, b"b")]))
        await publish(two.b, Publish(topic=ORDERS, messages=[to(1, b"c")] * 3 + [to(3, b"c")] * 4))
        for watch in (WatchOffsets(topics=[ORDERS]), WatchOffsets(pattern="ord.*")):
            ranges = await at_home(two.a, watch_offsets, watch)
            ends = [(at.partition, found.end_offset) for at, found in ranges.items()]
            assert ends == [(0, 1), (1, 3), (2, 2), (3, 4)]
        at = await at_home(two.a, offsets_at, FindOffsets(topics=[ORDERS], time_ms=0))
        assert {source.partition: offset for source, offset in at.items()} == {0: 0, 1: 0, 2: 0, 3: 0}
        with pytest.raises(TopicNotFound):
            await at_home(two.a, watch_offsets, WatchOffsets(topics=["nothing"]))
        assert await at_home(two.a, watch_offsets, WatchOffsets(pattern="none.*", wait_ms=10)) == {}

    walk(tmp_path, work)


def test_who_watches_is_told_by_whichever_leader_has_more(tmp_path: Path) -> None:
    async def work(two: Two) -> None:
        two.lead({0: A, 1: B, 2: A, 3: B})
        past = {TopicPartition(ORDERS, number): 0 for number in range(COUNT)}
        for broker, number in ((two.b, 3), (two.a, 0)):
            watch = WatchOffsets(topics=[ORDERS], past=past, wait_ms=20_000)
            watching = asyncio.ensure_future(at_home(two.a, watch_offsets, watch))
            await until(lambda: bool(two.a.waiting_reads and two.b.waiting_reads))
            assert not watching.done()
            await publish(broker, Publish(topic=ORDERS, messages=[to(number, b"new")]))
            ranges = await watching
            assert ranges[TopicPartition(ORDERS, number)].end_offset == 1
            assert not two.a.waiting_reads
            assert not two.b.waiting_reads
            past[TopicPartition(ORDERS, number)] = 1

    walk(tmp_path, work)


@pytest.mark.parametrize("trouble", [TopicNotFound(ORDERS), PartitionNotFound(ORDERS, 1)])
def test_a_node_that_has_not_heard_of_a_topic_yet_is_asked_again(
    tmp_path: Path, trouble: GoQueueError
) -> None:
    async def work(two: Two) -> None:
        two.lead({0: A, 1: B, 2: A, 3: B})
        two.calls.troubles = [trouble]
        read = ReadMessages(source=TopicPartition(ORDERS, 1))
        assert (await at_home(two.a, read_messages, read)).next_offset == 0
        assert len(two.calls.asked) == 2
        two.calls.troubles = [trouble]
        assert await at_home(two.a, publish, Publish(topic=ORDERS, messages=[to(1, b"v")])) == [Placed(1, 0)]

    walk(tmp_path, work)


def test_a_topic_has_the_numbers_of_its_leaders_or_is_not_told() -> None:
    told = [topic_of([(0, 2), (2, 0)]), topic_of([(1, 3), (3, 0)])]
    assert [one.end_offset for one in joined_topic(told, 4).partitions] == [2, 3, 0, 0]
    with pytest.raises(NoLeader, match="orders/4"):
        joined_topic(told, 5)


def topic_of(ends: list[tuple[int, int]]) -> TopicView:
    partitions = tuple(PartitionView(number, 0, end, 0, 1) for number, end in ends)
    return TopicView(
        name=ORDERS, topic_id=UUID(int=1), created_ms=0, settings=TopicSettings(), partitions=partitions
    )


def test_whoever_asks_may_be_told_which_other_node_answered(tmp_path: Path) -> None:
    async def work(two: Two) -> None:
        two.lead({0: A, 1: B, 2: A, 3: B})
        two.a.metadata.nodes[B] = NodeRecord(folder_id="f", http="b.example:8080")
        note = open_note("plaintext")
        await at_home(two.a, read_messages, ReadMessages(source=TopicPartition(ORDERS, 0)))
        assert note == set(), "it was this node"
        asking = asyncio.ensure_future(
            at_home(two.a, read_messages, ReadMessages(source=TopicPartition(ORDERS, 1)))
        )
        await asking
        assert note == {"b.example:8080"}, "also when a task has asked"

    walk(tmp_path, work)


def test_whoever_came_through_a_listener_is_told_of_those_of_its_name(tmp_path: Path) -> None:
    async def work(two: Two) -> None:
        two.lead({0: A, 1: B, 2: A, 3: B})
        addresses = {"inside": "10.0.0.2:8080", "outside": "b.example:8443"}
        two.a.metadata.nodes[B] = NodeRecord(folder_id="f", http="10.0.0.2:8080", http_listeners=addresses)
        for listener, told in (
            ("outside", {"b.example:8443"}),
            ("inside", {"10.0.0.2:8080"}),
            ("other", set()),
        ):
            note = open_note(listener)
            await at_home(two.a, read_messages, ReadMessages(source=TopicPartition(ORDERS, 1)))
            assert note == told

    walk(tmp_path, work)


def test_one_node_alone_calls_the_verb_itself() -> None:
    broker = cast(Broker, SimpleNamespace(forwarding=None))

    def verb(broker: Broker, command: Any) -> Any:
        called.append((broker, command))

    called: list[object] = []
    command = ReadMessages(source=TopicPartition(ORDERS, 1))
    assert at_home(broker, verb, command) is None
    assert called == [(broker, command)]


def _partition(outcome: object) -> int:
    assert isinstance(outcome, Placed)
    return outcome.partition
