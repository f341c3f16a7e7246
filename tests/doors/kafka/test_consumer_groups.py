"""Consumer groups in which the broker assigns (KIP-848), request by request."""

from collections.abc import Iterable, Iterator
from datetime import timedelta
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from goqueue.broker.groups.assigned import join_assigned
from goqueue.broker.topics.verbs import add_partitions, create_topic, delete_topic
from goqueue.edge.kafka.apis import ApiKey
from goqueue.edge.kafka.config import KafkaConfig
from goqueue.model.group_commands import JoinAssigned
from goqueue.model.settings import BrokerConfig, GroupConfig
from goqueue.model.topics import AddPartitions, CreateTopic, DeleteTopic, TopicView
from tests.doors.kafka import group_requests as ask
from tests.doors.kafka.conftest import NewTopic
from tests.doors.kafka.door_thread import DoorThread
from tests.doors.kafka.raw_client import RawClient
from tests.doors.kafka.test_versions import versions

JOIN, LEAVE, STEP_OUT = 0, -1, -2
UNCHANGED = timedelta(milliseconds=-1)
_numbers = count(1)


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DoorThread]:
    config = BrokerConfig(groups=GroupConfig(initial_delay_ms=0, consumer_heartbeat_ms=700, members_max=3))
    opened = DoorThread(tmp_path_factory.mktemp("data"), config, KafkaConfig())
    yield opened
    opened.close()


@pytest.fixture
def group() -> str:
    """The name of a group that no other test uses."""
    return f"group-{next(_numbers)}"


def heartbeat(
    raw: RawClient,
    group: str,
    member_id: str,
    epoch: int,
    *,
    version: int = 1,
    topics: Iterable[str] | None = None,
    pattern: str | None = None,
    owned: dict[TopicView, Iterable[int]] | None = None,
    instance_id: str | None = None,
    assignor: str | None = None,
    rebalance_timeout: timedelta = UNCHANGED,
) -> Any:
    held = None
    if owned is not None:
        held = tuple(
            SimpleNamespace(topic_id=topic.topic_id, partitions=tuple(numbers))
            for topic, numbers in owned.items()
        )
    return raw.ask(
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        version,
        group_id=group,
        member_id=member_id,
        member_epoch=epoch,
        instance_id=instance_id,
        rack_id=None,
        rebalance_timeout=rebalance_timeout,
        subscribed_topic_names=None if topics is None else tuple(topics),
        subscribed_topic_regex=pattern,
        server_assignor=assignor,
        topic_partitions=held,
    )


def join(raw: RawClient, group: str, member_id: str, *topics: str, **fields: Any) -> Any:
    fields = {"topics": topics, "owned": {}, "rebalance_timeout": timedelta(seconds=60), **fields}
    return heartbeat(raw, group, member_id, JOIN, **fields)


def partitions(reply: Any) -> list[int] | None:
    """The partitions in a reply, of whatever topics; None when it brings no assignment."""
    if reply.assignment is None:
        return None
    return sorted(p for topic in reply.assignment.topic_partitions for p in topic.partitions)


def code(reply: Any) -> ErrorCode:
    error: ErrorCode = reply.error_code
    return error


@versions(ApiKey.CONSUMER_GROUP_HEARTBEAT)
def test_who_joins_is_told_what_it_has_and_how_often_to_say_that_it_lives(
    raw: RawClient, new_topic: NewTopic, group: str, version: int
) -> None:
    topic = new_topic(partitions=3)

    joined = join(raw, group, "a" if version else "", topic.name, version=version)
    again = heartbeat(raw, group, joined.member_id, joined.member_epoch, version=version)

    assert (code(joined), joined.error_message, joined.member_epoch) == (ErrorCode.none, None, 1)
    assert joined.member_id == "a" if version else joined.member_id.startswith("raw-")
    assert joined.heartbeat_interval == timedelta(milliseconds=700)
    assert partitions(joined) == [0, 1, 2]
    assert {t.topic_id for t in joined.assignment.topic_partitions} == {topic.topic_id}
    assert (code(again), again.member_epoch, partitions(again)) == (ErrorCode.none, 1, None)


def test_a_partition_goes_to_a_newcomer_when_its_owner_has_let_go(
    raw: RawClient, new_topic: NewTopic, group: str
) -> None:
    topic = new_topic(partitions=4)
    join(raw, group, "a", topic.name)
    newcomer = join(raw, group, "b", topic.name)
    assert (newcomer.member_epoch, partitions(newcomer)) == (2, [])

    asked = heartbeat(raw, group, "a", 1)
    assert (asked.member_epoch, partitions(asked)) == (1, [0, 1])
    still = heartbeat(raw, group, "a", 1)
    assert (still.member_epoch, partitions(still)) == (1, None)
    assert partitions(heartbeat(raw, group, "b", 2)) is None
    let_go = heartbeat(raw, group, "a", 1, owned={topic: [0, 1]})
    assert (let_go.member_epoch, partitions(let_go)) == (2, None)

    assert partitions(heartbeat(raw, group, "b", 2)) == [2, 3]


def test_who_wants_other_topics_does_not_take_what_has_become_free_of_the_old_ones(
    raw: RawClient, new_topic: NewTopic, group: str
) -> None:
    old, new = new_topic(partitions=2), new_topic(partitions=2)
    join(raw, group, "a", old.name)
    join(raw, group, "b", old.name)
    heartbeat(raw, group, "a", 1)
    heartbeat(raw, group, "a", 1, owned={old: [0]})  # the other one is free now, and meant for b

    changed = heartbeat(raw, group, "b", 2, topics=[new.name])

    assert (changed.member_epoch, partitions(changed)) == (3, [0, 1])
    assert {t.topic_id for t in changed.assignment.topic_partitions} == {new.topic_id}
    taken_back = heartbeat(raw, group, "a", 2)
    assert (taken_back.member_epoch, partitions(taken_back)) == (3, [0, 1])


def test_subscriptions_that_are_swapped_again_and_again_leave_no_partition_with_nobody(
    raw: RawClient, new_topic: NewTopic, group: str
) -> None:
    topics = new_topic(partitions=3), new_topic(partitions=3)
    members = {name: MemberOfTwo(raw, group, name, topics) for name in "ab"}
    for wishes in ([[1], [0]], [[0, 1], [1]], [[0], [1]], [[1], [0, 1]], [[0], [1]]) * 3:
        for member, wants in zip(members.values(), wishes, strict=True):
            member.speak(wants)
        for member in members.values():
            member.speak()
    for _ in range(4):
        for member in members.values():
            member.speak()

    assert members["a"].held == {(0, 0), (0, 1), (0, 2)}
    assert members["b"].held == {(1, 0), (1, 1), (1, 2)}


class MemberOfTwo:
    """A member that does as it is told, and like clients names what it has only when that has changed."""

    def __init__(self, raw: RawClient, group: str, name: str, topics: tuple[TopicView, TopicView]) -> None:
        self.raw, self.group, self.name, self.topics = raw, group, name, topics
        self.held: set[tuple[int, int]] = set()
        self.wants = [0]
        self._epoch = JOIN
        self._has_changed = False

    def speak(self, wants: list[int] | None = None) -> None:
        fields: dict[str, Any] = {}
        if wants is not None:
            self.wants = wants
        if wants is not None or self._epoch == JOIN:
            fields["topics"] = [self.topics[number].name for number in self.wants]
        if self._epoch == JOIN:
            fields["rebalance_timeout"] = timedelta(seconds=60)
        if self._has_changed or self._epoch == JOIN:
            owned: dict[TopicView, list[int]] = {}
            for index, partition in self.held:
                owned.setdefault(self.topics[index], []).append(partition)
            fields["owned"] = owned
        reply = heartbeat(self.raw, self.group, self.name, self._epoch, **fields)
        assert code(reply) == ErrorCode.none
        self._epoch, self._has_changed = reply.member_epoch, False
        if reply.assignment is not None:
            index_of = {topic.topic_id: index for index, topic in enumerate(self.topics)}
            told = {
                (index_of[t.topic_id], p) for t in reply.assignment.topic_partitions for p in t.partitions
            }
            self.held, self._has_changed = told, told != self.held


def test_a_member_that_missed_a_reply_is_told_again(raw: RawClient, new_topic: NewTopic, group: str) -> None:
    topic = new_topic(partitions=2)
    join(raw, group, "a", topic.name)

    again = join(raw, group, "a", topic.name)
    assert (again.member_epoch, partitions(again)) == (1, [0, 1])
    join(raw, group, "b", topic.name)
    assert partitions(heartbeat(raw, group, "a", 1)) == [0]
    assert partitions(heartbeat(raw, group, "a", 1, owned={topic: [0, 1]})) == [0]
    heartbeat(raw, group, "a", 1, owned={topic: [0]})
    assert partitions(heartbeat(raw, group, "b", 2)) == [1]
    assert partitions(heartbeat(raw, group, "b", 2, owned={})) == [1]
    assert partitions(heartbeat(raw, group, "b", 2, owned={topic: [1]})) is None


def test_who_leaves_is_forgotten_and_its_partitions_go_to_others(
    raw: RawClient, new_topic: NewTopic, group: str
) -> None:
    topic = new_topic(partitions=2)
    join(raw, group, "a", topic.name)
    join(raw, group, "b", topic.name)

    left = heartbeat(raw, group, "a", LEAVE)

    assert (code(left), left.member_epoch) == (ErrorCode.none, LEAVE)
    taken = heartbeat(raw, group, "b", 2)
    assert (taken.member_epoch, partitions(taken)) == (3, [0, 1])
    assert code(heartbeat(raw, group, "a", 1)) is ErrorCode.unknown_member_id


def test_a_wrong_epoch_is_fenced(raw: RawClient, new_topic: NewTopic, group: str) -> None:
    join(raw, group, "a", new_topic().name)

    assert code(heartbeat(raw, group, "a", 5)) is ErrorCode.fenced_member_epoch
    assert code(heartbeat(raw, "no-such-group", "a", 5)) is ErrorCode.unknown_member_id


def test_subscriptions_change_and_follow_topics(
    door: DoorThread, raw: RawClient, new_topic: NewTopic, group: str
) -> None:
    topic, other = new_topic(partitions=1), new_topic(partitions=2)
    later = f"later-{group}"
    join(raw, group, "a", topic.name, later)

    changed = heartbeat(raw, group, "a", 1, topics=[other.name, later], owned={topic: [0]})
    assert (changed.member_epoch, partitions(changed)) == (1, [])
    moved = heartbeat(raw, group, "a", 1, owned={})
    assert (moved.member_epoch, partitions(moved)) == (2, [0, 1])
    door.run(add_partitions(door.broker, AddPartitions(name=other.name, total=3)))
    assert partitions(heartbeat(raw, group, "a", 2)) == [0, 1, 2]
    door.run(create_topic(door.broker, CreateTopic(name=later, partitions=1)))
    assert partitions(heartbeat(raw, group, "a", 3)) == [0, 0, 1, 2]


def test_a_topic_that_was_made_anew_is_told_of_at_the_next_heartbeat(
    door: DoorThread, raw: RawClient, new_topic: NewTopic, group: str
) -> None:
    topic = new_topic(partitions=2)
    joined = join(raw, group, "a", topic.name)
    door.run(delete_topic(door.broker, DeleteTopic(name=topic.name)))
    other = door.run(create_topic(door.broker, CreateTopic(name=topic.name, partitions=2)))

    told = heartbeat(raw, group, "a", joined.member_epoch)

    assert [assigned.topic_id for assigned in told.assignment.topic_partitions] == [other.topic_id]
    assert partitions(heartbeat(raw, group, "a", told.member_epoch)) is None


def test_topics_are_found_by_pattern(door: DoorThread, raw: RawClient, group: str) -> None:
    door.run(create_topic(door.broker, CreateTopic(name=f"{group}-one", partitions=2)))

    joined = join(raw, group, "a", pattern=f"{group}-.*")
    assert partitions(joined) == [0, 1]
    door.run(create_topic(door.broker, CreateTopic(name=f"{group}-two", partitions=1)))
    assert partitions(heartbeat(raw, group, "a", 1)) == [0, 0, 1]
    assert code(join(raw, group, "b", pattern="(a+)+")) is ErrorCode.invalid_regular_expression


def test_a_static_member_comes_back_to_its_partitions(
    raw: RawClient, new_topic: NewTopic, group: str
) -> None:
    topic = new_topic(partitions=2)
    join(raw, group, "a", topic.name, instance_id="one")
    assert code(join(raw, group, "b", topic.name, instance_id="one")) is ErrorCode.unreleased_instance_id

    out = heartbeat(raw, group, "a", STEP_OUT, instance_id="one")
    assert (code(out), out.member_epoch) == (ErrorCode.none, STEP_OUT)
    back = join(raw, group, "b", topic.name, instance_id="one")

    assert (back.member_epoch, partitions(back)) == (1, [0, 1])
    assert code(heartbeat(raw, group, "a", 1, instance_id="one")) is ErrorCode.fenced_instance_id


def test_requests_that_break_the_protocol_are_refused(
    raw: RawClient, new_topic: NewTopic, group: str
) -> None:
    topic = new_topic()
    refused = ErrorCode.invalid_request

    assert code(join(raw, group, "", topic.name)) is refused
    assert code(join(raw, group, "a" * 1_001, topic.name)) is refused
    assert code(join(raw, group, "a")) is refused
    assert code(join(raw, group, "a", topic.name, owned={topic: [0]})) is refused
    assert code(join(raw, group, "a", topic.name, rebalance_timeout=UNCHANGED)) is refused
    assert code(join(raw, group, "a", topic.name, instance_id="")) is refused
    assert code(heartbeat(raw, group, "a", STEP_OUT)) is refused
    assert code(heartbeat(raw, group, "a", -3)) is refused
    assert code(join(raw, group, "a", topic.name, assignor="sticky")) is ErrorCode.unsupported_assignor
    assert code(join(raw, "", "a", topic.name)) is ErrorCode.invalid_group_id
    for member_id in "abc":
        assert code(join(raw, group, member_id, topic.name)) is ErrorCode.none
    assert code(join(raw, group, "d", topic.name)) is ErrorCode.group_max_size_reached


def test_a_tool_removes_a_static_member_by_its_instance_id(
    raw: RawClient, new_topic: NewTopic, group: str
) -> None:
    join(raw, group, "a", new_topic().name, instance_id="one")

    removed = SimpleNamespace(member_id="", group_instance_id="one", reason="gone")
    left = raw.ask(ApiKey.LEAVE_GROUP, 5, group_id=group, members=(removed,))

    assert left.members[0].error_code is ErrorCode.none
    assert code(heartbeat(raw, group, "a", 1)) is ErrorCode.unknown_member_id


def test_a_group_is_of_one_protocol_while_it_has_members(
    raw: RawClient, new_topic: NewTopic, group: str
) -> None:
    topic = new_topic()
    join(raw, group, "a", topic.name)

    classic = raw.ask(ApiKey.JOIN_GROUP, 9, **ask.join(group))
    assert classic.error_code is ErrorCode.inconsistent_group_protocol
    beat = raw.ask(ApiKey.HEARTBEAT, 4, **ask.heartbeat(group, "a", 1))
    assert beat.error_code is ErrorCode.unknown_member_id
    left = raw.ask(ApiKey.LEAVE_GROUP, 5, **ask.leave(group, "a"))
    assert left.members[0].error_code is ErrorCode.none
    ask.stable_alone(raw, group)
    assert code(join(raw, group, "a", topic.name)) is ErrorCode.inconsistent_group_protocol


def test_offsets_are_for_members_that_know_their_epoch(
    raw: RawClient, new_topic: NewTopic, group: str
) -> None:
    topic = new_topic()
    join(raw, group, "a", topic.name)

    def commit(member_id: str, epoch: int) -> ErrorCode:
        request = ask.commit(group, topic.name, {0: 7}, member_id=member_id, generation=epoch)
        outcome: ErrorCode = raw.ask(ApiKey.OFFSET_COMMIT, 9, **request).topics[0].partitions[0].error_code
        return outcome

    def fetch(member_id: str | None, epoch: int) -> tuple[ErrorCode, list[int]]:
        request = ask.fetch(group, {topic.name: (0,)})
        asked: Any = request["groups"]
        asked[0].member_id, asked[0].member_epoch = member_id, epoch
        [found] = raw.ask(ApiKey.OFFSET_FETCH, 9, **request).groups
        return found.error_code, [p.committed_offset for t in found.topics for p in t.partitions]

    assert commit("a", 0) is ErrorCode.stale_member_epoch
    assert commit("b", 1) is ErrorCode.unknown_member_id
    assert commit("", -1) is ErrorCode.unknown_member_id
    assert commit("a", 1) is ErrorCode.none
    assert fetch("a", 1) == (ErrorCode.none, [7])
    assert fetch(None, -1) == (ErrorCode.none, [7])
    assert fetch("a", 0)[0] is ErrorCode.stale_member_epoch
    assert fetch("b", 1)[0] is ErrorCode.unknown_member_id


@versions(ApiKey.CONSUMER_GROUP_DESCRIBE)
def test_a_group_is_described_with_what_members_have_and_are_to_have(
    raw: RawClient, new_topic: NewTopic, group: str, version: int
) -> None:
    topic = new_topic(partitions=2)
    join(raw, group, "a", topic.name, assignor="range")
    join(raw, group, "b", topic.name)
    classic = f"{group}-classic"
    ask.join_alone(raw, classic)

    found, not_found = raw.ask(
        ApiKey.CONSUMER_GROUP_DESCRIBE,
        version,
        group_ids=(group, classic),
        include_authorized_operations=True,
    ).groups

    assert (code(found), found.group_state, found.group_epoch) == (ErrorCode.none, "Reconciling", 2)
    assert (found.assignor_name, found.authorized_operations) == ("range", 328 | 1 << 10 | 1 << 11)
    first, second = found.members
    assert (first.member_id, first.member_epoch, first.client_id) == ("a", 1, "raw")
    assert first.subscribed_topic_names == (topic.name,)
    assert [t.partitions for t in first.assignment.topic_partitions] == [(0, 1)]
    assert [t.partitions for t in first.target_assignment.topic_partitions] == [(0,)]
    assert [t.topic_name for t in second.target_assignment.topic_partitions] == [topic.name]
    assert code(not_found) is ErrorCode.group_id_not_found


def test_groups_are_listed_by_type_and_dead_to_the_older_description(
    door: DoorThread, raw: RawClient, new_topic: NewTopic, group: str
) -> None:
    topic = new_topic()
    http, classic = f"{group}-http", f"{group}-classic"
    join(raw, group, "a", topic.name)
    door.run(join_assigned(door.broker, JoinAssigned(group=http, client_id="web", topics=[topic.name])))
    ask.join_alone(raw, classic)

    def listed(*types: str) -> dict[str, str]:
        reply = raw.ask(ApiKey.LIST_GROUPS, 5, states_filter=(), types_filter=types)
        return {g.group_id: g.group_type for g in reply.groups if g.group_id.startswith(group)}

    assert listed() == {group: "consumer", http: "consumer", classic: "classic"}
    assert set(listed("Consumer")) == {group, http}
    assert set(listed("classic")) == {classic}
    [described] = raw.ask(
        ApiKey.DESCRIBE_GROUPS, 5, groups=(group,), include_authorized_operations=False
    ).groups
    assert (described.error_code, described.group_state) == (ErrorCode.none, "Dead")


def test_members_go_on_after_the_broker_has_restarted(tmp_path: Path) -> None:
    before = DoorThread(tmp_path, BrokerConfig(), KafkaConfig())
    try:
        topic = before.run(create_topic(before.broker, CreateTopic(name="orders", partitions=2)))
        with RawClient(before.port) as raw:
            join(raw, "crew", "a", topic.name)
            join(raw, "crew", "b", topic.name)
            heartbeat(raw, "crew", "a", 1)
    finally:
        before.close()

    after = DoorThread(tmp_path, BrokerConfig(), KafkaConfig())
    try:
        with RawClient(after.port) as raw:
            let_go = heartbeat(raw, "crew", "a", 1, owned={topic: [0]})
            assert (let_go.member_epoch, partitions(let_go)) == (2, [0])
            assert partitions(heartbeat(raw, "crew", "b", 2)) == [1]
    finally:
        after.close()
