"""Consumer groups by Kafka's classic protocol, in every version that is advertised."""

import asyncio
import random
from collections.abc import Iterator
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from goqueue.broker.groups.lag import group_lag
from goqueue.broker.groups.verbs import describe_group
from goqueue.edge.kafka.apis import APIS, ApiKey
from goqueue.edge.kafka.config import KafkaConfig
from goqueue.edge.kafka.offset_commit import decode_commit
from goqueue.edge.kafka.wire import Malformed, Reader
from goqueue.model.group_commands import DescribeGroup, DescribeLag
from goqueue.model.groups import GroupView
from goqueue.model.settings import BrokerConfig, GroupConfig
from tests.doors.kafka import group_requests as ask
from tests.doors.kafka import requests
from tests.doors.kafka.conftest import NewTopic, OpenDoor
from tests.doors.kafka.door_thread import DoorThread
from tests.doors.kafka.raw_client import RawClient, record_batch
from tests.doors.kafka.test_versions import versions

_numbers = count(1)


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DoorThread]:
    """Nobody waits for other first members here."""
    config = BrokerConfig(groups=GroupConfig(initial_delay_ms=0))
    opened = DoorThread(tmp_path_factory.mktemp("data"), config, KafkaConfig())
    yield opened
    opened.close()


@pytest.fixture
def group() -> str:
    """The name of a group that no other test uses."""
    return f"group-{next(_numbers)}"


def described(door: DoorThread, group: str) -> GroupView:
    async def describe() -> GroupView:
        return describe_group(door.broker, DescribeGroup(group=group))

    return door.run(describe())


@versions(ApiKey.JOIN_GROUP)
def test_the_first_member_leads_and_learns_who_is_there(raw: RawClient, group: str, version: int) -> None:
    first = raw.ask(ApiKey.JOIN_GROUP, version, **ask.join(group))
    if version >= 4:
        assert (first.error_code, first.generation_id) == (ErrorCode.member_id_required, -1)
        first = raw.ask(ApiKey.JOIN_GROUP, version, **ask.join(group, first.member_id))

    assert (first.error_code, first.generation_id) == (ErrorCode.none, 1)
    assert first.leader == first.member_id
    assert first.member_id.startswith("raw-")
    assert first.protocol_name == "range"
    assert [(m.member_id, m.metadata) for m in first.members] == [(first.member_id, ask.SUBSCRIPTION)]
    unknown = raw.ask(ApiKey.JOIN_GROUP, version, **ask.join(group, "stranger"))
    assert unknown.error_code is ErrorCode.unknown_member_id


@versions(ApiKey.SYNC_GROUP)
def test_the_leader_brings_the_assignments(raw: RawClient, group: str, version: int) -> None:
    joined = ask.join_alone(raw, group)

    synced = raw.ask(
        ApiKey.SYNC_GROUP, version, **ask.sync(group, joined.member_id, 1, {joined.member_id: b"all"})
    )
    stale = raw.ask(ApiKey.SYNC_GROUP, version, **ask.sync(group, joined.member_id, 9))

    assert (synced.error_code, synced.assignment) == (ErrorCode.none, b"all")
    assert (stale.error_code, stale.assignment) == (ErrorCode.illegal_generation, b"")
    if version >= 5:
        assert (synced.protocol_type, synced.protocol_name) == ("consumer", "range")


@versions(ApiKey.HEARTBEAT)
def test_a_heartbeat_tells_a_member_how_it_stands(raw: RawClient, group: str, version: int) -> None:
    member_id = ask.stable_alone(raw, group).member_id

    def heartbeat(member_id: str, generation: int) -> ErrorCode:
        code: ErrorCode = raw.ask(
            ApiKey.HEARTBEAT, version, **ask.heartbeat(group, member_id, generation)
        ).error_code
        return code

    assert heartbeat(member_id, 1) is ErrorCode.none
    assert heartbeat(member_id, 2) is ErrorCode.illegal_generation
    assert heartbeat("stranger", 1) is ErrorCode.unknown_member_id


@versions(ApiKey.LEAVE_GROUP)
def test_members_leave(raw: RawClient, door: DoorThread, group: str, version: int) -> None:
    member_id = ask.stable_alone(raw, group).member_id

    left = raw.ask(ApiKey.LEAVE_GROUP, version, **ask.leave(group, member_id, "stranger"))
    again = raw.ask(ApiKey.LEAVE_GROUP, version, **ask.leave(group, member_id))

    if version < 3:
        assert (left.error_code, again.error_code) == (ErrorCode.none, ErrorCode.unknown_member_id)
    else:
        assert [m.error_code for m in left.members] == [ErrorCode.none, ErrorCode.unknown_member_id]
        assert again.members[0].error_code is ErrorCode.unknown_member_id
    assert door.broker.coordinator.journals.record(group) is None


@versions(ApiKey.OFFSET_COMMIT)
@pytest.mark.parametrize("metadata", ["", None, "a note"])
def test_offsets_are_committed_with_what_goes_with_them(
    raw: RawClient, new_topic: NewTopic, group: str, version: int, metadata: str | None
) -> None:
    topic = new_topic(partitions=3).name
    request = ask.commit(group, topic, {0: 5, 2: 7, 9: 1}, metadata=metadata, leader_epoch=4)

    committed = raw.ask(ApiKey.OFFSET_COMMIT, version, **request)

    [outcome] = committed.topics
    assert outcome.name == topic
    assert [(p.partition_index, p.error_code) for p in outcome.partitions] == [
        (0, ErrorCode.none),
        (2, ErrorCode.none),
        (9, ErrorCode.unknown_topic_or_partition),
    ]
    found = raw.ask(ApiKey.OFFSET_FETCH, 9, **ask.fetch(group, {topic: (0, 1, 2)}))
    rows = found.groups[0].topics[0].partitions
    assert [row.committed_offset for row in rows] == [5, -1, 7]
    assert rows[0].metadata == (metadata or "")
    assert rows[0].committed_leader_epoch == (4 if version >= 6 else -1)


@versions(ApiKey.OFFSET_FETCH)
def test_committed_offsets_are_told(raw: RawClient, new_topic: NewTopic, group: str, version: int) -> None:
    topic = new_topic(partitions=2).name
    raw.ask(ApiKey.OFFSET_COMMIT, 9, **ask.commit(group, topic, {1: 7}))

    def fetched(topics: dict[str, tuple[int, ...]] | None) -> dict[str, list[tuple[int, int]]]:
        reply = raw.ask(ApiKey.OFFSET_FETCH, version, **ask.fetch(group, topics))
        answer = reply.groups[0] if version >= 8 else reply
        if version >= 2:
            assert answer.error_code is ErrorCode.none
        return {
            t.name: [(p.partition_index, p.committed_offset) for p in t.partitions] for t in answer.topics
        }

    assert fetched({topic: (0, 1), "never-was": (0,)}) == {topic: [(0, -1), (1, 7)], "never-was": [(0, -1)]}
    if version >= 2:
        assert fetched(None) == {topic: [(1, 7)]}


def test_a_group_that_never_was_has_no_offsets(raw: RawClient, group: str) -> None:
    reply = raw.ask(ApiKey.OFFSET_FETCH, 9, **ask.fetch(group, None))

    assert (reply.groups[0].error_code, reply.groups[0].topics) == (ErrorCode.none, ())


@versions(ApiKey.OFFSET_DELETE)
def test_offsets_of_topics_that_nobody_reads_are_deleted(
    raw: RawClient, new_topic: NewTopic, group: str, version: int
) -> None:
    topic = new_topic().name
    raw.ask(ApiKey.OFFSET_COMMIT, 9, **ask.commit(group, topic, {0: 7}))
    ask.stable_alone(raw, group)

    def delete(group: str) -> Any:
        partition = SimpleNamespace(partition_index=0)
        wanted = tuple(SimpleNamespace(name=name, partitions=(partition,)) for name in (topic, "orders"))
        return raw.ask(ApiKey.OFFSET_DELETE, version, group_id=group, topics=wanted)

    reply = delete(group)
    assert [t.partitions[0].error_code for t in reply.topics] == [
        ErrorCode.none,
        ErrorCode.group_subscribed_to_topic,
    ]
    left = raw.ask(ApiKey.OFFSET_FETCH, 9, **ask.fetch(group, None))
    assert left.groups[0].topics == ()
    assert delete("never-was").error_code is ErrorCode.group_id_not_found


@versions(ApiKey.DESCRIBE_GROUPS)
def test_groups_are_described(raw: RawClient, group: str, version: int) -> None:
    member_id = ask.stable_alone(raw, group).member_id

    reply = raw.ask(
        ApiKey.DESCRIBE_GROUPS, version, groups=(group, "never-was"), include_authorized_operations=True
    )

    known, unknown = reply.groups
    assert (known.error_code, known.group_state, known.protocol_type) == (
        ErrorCode.none,
        "Stable",
        "consumer",
    )
    [member] = known.members
    assert (member.member_id, member.client_id, member.client_host) == (member_id, "raw", "/127.0.0.1")
    assert (member.member_metadata, member.member_assignment) == (ask.SUBSCRIPTION, b"all")
    assert (unknown.error_code, unknown.group_state) == (ErrorCode.none, "Dead")


@versions(ApiKey.LIST_GROUPS)
def test_groups_are_listed(raw: RawClient, new_topic: NewTopic, group: str, version: int) -> None:
    ask.stable_alone(raw, group)
    raw.ask(ApiKey.OFFSET_COMMIT, 9, **ask.commit(f"{group}-idle", new_topic().name, {0: 7}))

    def listed(states: tuple[str, ...] = (), types: tuple[str, ...] = ()) -> set[str]:
        reply = raw.ask(ApiKey.LIST_GROUPS, version, states_filter=states, types_filter=types)
        assert reply.error_code is ErrorCode.none
        return {one.group_id for one in reply.groups} & {group, f"{group}-idle"}

    assert listed() == {group, f"{group}-idle"}
    if version >= 4:
        assert listed(states=("stable",)) == {group}
        assert listed(states=("Empty",)) == {f"{group}-idle"}
    if version >= 5:
        assert listed(types=("consumer",)) == set()
        assert listed(types=("Classic",)) == {group, f"{group}-idle"}


@versions(ApiKey.DELETE_GROUPS)
def test_groups_without_members_are_deleted(
    raw: RawClient, new_topic: NewTopic, group: str, version: int
) -> None:
    topic = new_topic().name
    raw.ask(ApiKey.OFFSET_COMMIT, 9, **ask.commit(group, topic, {0: 7}))
    ask.stable_alone(raw, f"{group}-busy")

    reply = raw.ask(ApiKey.DELETE_GROUPS, version, groups_names=(group, f"{group}-busy", "never-was", ""))

    assert [result.error_code for result in reply.results] == [
        ErrorCode.none,
        ErrorCode.non_empty_group,
        ErrorCode.group_id_not_found,
        ErrorCode.invalid_group_id,
    ]
    gone = raw.ask(ApiKey.OFFSET_FETCH, 9, **ask.fetch(group, None))
    assert gone.groups[0].topics == ()


def test_a_second_member_makes_the_first_join_again(door: DoorThread, raw: RawClient, group: str) -> None:
    first = ask.stable_alone(raw, group)
    with RawClient(door.port) as other:
        required = other.ask(ApiKey.JOIN_GROUP, 9, **ask.join(group))
        other.send(ApiKey.JOIN_GROUP, 9, **ask.join(group, required.member_id))
        beat = ErrorCode.none
        while beat is ErrorCode.none:
            beat = raw.ask(ApiKey.HEARTBEAT, 4, **ask.heartbeat(group, first.member_id, 1)).error_code
        assert beat is ErrorCode.rebalance_in_progress

        again = raw.ask(ApiKey.JOIN_GROUP, 9, **ask.join(group, first.member_id))
        second = other.receive(ApiKey.JOIN_GROUP, 9)

    assert (again.generation_id, second.generation_id) == (2, 2)
    assert len(again.members) == 2
    assert second.members == ()


def test_a_client_that_hangs_up_while_it_waits_holds_nobody_up(
    door: DoorThread, raw: RawClient, group: str
) -> None:
    first = ask.stable_alone(raw, group)
    with RawClient(door.port) as other:
        required = other.ask(ApiKey.JOIN_GROUP, 9, **ask.join(group))
        other.send(ApiKey.JOIN_GROUP, 9, **ask.join(group, required.member_id))
        while len(described(door, group).members) < 2:
            raw.ask(ApiKey.HEARTBEAT, 4, **ask.heartbeat(group, first.member_id, 1))

    while len(described(door, group).members) > 1:
        raw.ask(ApiKey.HEARTBEAT, 4, **ask.heartbeat(group, first.member_id, 1))
    again = raw.ask(ApiKey.JOIN_GROUP, 9, **ask.join(group, first.member_id))

    assert again.error_code is ErrorCode.none
    assert [member.member_id for member in again.members] == [first.member_id]


def test_a_stopping_door_does_not_wait_for_members_that_wait_for_each_other(
    open_door: OpenDoor, group: str
) -> None:
    config = BrokerConfig(groups=GroupConfig(initial_delay_ms=60_000))
    door = open_door(config, KafkaConfig(stop_ms=600_000))
    with RawClient(door.port) as client:
        client.send(ApiKey.JOIN_GROUP, 3, **ask.join(group))
        while not door.broker.coordinator.journals.record(group):
            door.run(asyncio.sleep(0))
        door.run(door.door.stop())

        assert client.is_closed()


def test_members_commit_in_their_generation_only(raw: RawClient, new_topic: NewTopic, group: str) -> None:
    topic = new_topic(partitions=1).name
    member_id = ask.stable_alone(raw, group).member_id

    def commit(member_id: str, generation: int, offset: int = 5, metadata: str = "") -> ErrorCode:
        request = ask.commit(
            group, topic, {0: offset}, member_id=member_id, generation=generation, metadata=metadata
        )
        reply = raw.ask(ApiKey.OFFSET_COMMIT, 9, **request)
        code: ErrorCode = reply.topics[0].partitions[0].error_code
        return code

    assert commit(member_id, 1) is ErrorCode.none
    assert commit(member_id, 7, offset=6) is ErrorCode.illegal_generation
    assert commit("stranger", 1, offset=6) is ErrorCode.unknown_member_id
    assert commit("", -1, offset=6) is ErrorCode.unknown_member_id
    assert commit(member_id, 1, offset=6, metadata="x" * 5_000) is ErrorCode.offset_metadata_too_large
    assert commit(member_id, 1, offset=-5) is ErrorCode.invalid_request
    found = raw.ask(ApiKey.OFFSET_FETCH, 9, **ask.fetch(group, {topic: (0,)}))
    assert found.groups[0].topics[0].partitions[0].committed_offset == 5


def test_requests_that_make_no_sense_are_refused_by_their_codes(raw: RawClient, group: str) -> None:
    def join(name: str, **fields: Any) -> ErrorCode:
        code: ErrorCode = raw.ask(ApiKey.JOIN_GROUP, 3, **ask.join(name, **fields)).error_code
        return code

    assert join("") is ErrorCode.invalid_group_id
    assert join(group, session=ask.SESSION * 0) is ErrorCode.invalid_session_timeout
    assert join(group, protocols=()) is ErrorCode.inconsistent_group_protocol
    listed = raw.ask(ApiKey.LIST_GROUPS, 5, states_filter=(), types_filter=())
    assert group not in {one.group_id for one in listed.groups}


def test_lag_is_told_for_a_group_of_kafka_clients(
    raw: RawClient, door: DoorThread, new_topic: NewTopic, group: str
) -> None:
    topic = new_topic(partitions=2).name
    raw.ask(ApiKey.PRODUCE, 9, **requests.produce(topic, record_batch(b"a", b"b", b"c")))
    raw.ask(ApiKey.OFFSET_COMMIT, 9, **ask.commit(group, topic, {0: 1, 1: 0}))

    lags = door.run(group_lag(door.broker, DescribeLag(group=group))).partitions

    assert [(lag.partition, lag.committed_offset, lag.end_offset, lag.lag) for lag in lags] == [
        (0, 1, 3, 2),
        (1, 0, 0, 0),
    ]


@pytest.mark.parametrize("version", range(APIS[ApiKey.OFFSET_COMMIT].first_version, 10))
def test_garbage_in_a_commit_is_refused_without_reserving_memory_for_it(version: int) -> None:
    chance = random.Random(version)
    for start in (
        b"",
        b"\x00\x01g\x00\x00\x00\x01\x00\x00",
        b"\x02g\x00\x00\x00\x01\x01\x00\x02\x02t\xff\xff\x07",
    ):
        for _ in range(100):
            frame = start + chance.randbytes(chance.randrange(60))
            try:
                decode_commit(version, Reader(memoryview(frame)))
            except Malformed:
                continue
