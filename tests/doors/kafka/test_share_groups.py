"""Share groups (KIP-932), request by request: sessions, acquired records, acknowledgements, refusals."""

import asyncio
import tracemalloc
from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from goqueue.broker.broker import Broker
from goqueue.broker.groups.settings import alter_group_settings
from goqueue.broker.topics.verbs import create_topic, delete_topic
from goqueue.broker.write.publish import publish
from goqueue.edge.kafka.apis import ApiKey
from goqueue.edge.kafka.config import KafkaConfig
from goqueue.model.commands import Publish
from goqueue.model.group_settings import AlterGroupSettings
from goqueue.model.messages import Message
from goqueue.model.settings import BrokerConfig, GroupConfig, MiB
from goqueue.model.topics import CreateTopic, DeleteTopic, SettingChange, TopicView
from tests.doors.kafka.conftest import NewTopic
from tests.doors.kafka.door_thread import DoorThread
from tests.doors.kafka.raw_client import RawClient
from tests.doors.kafka.test_versions import versions

JOIN, LEAVE = 0, -1
OPEN, CLOSE = 0, -1
GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
_numbers = count(1)


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DoorThread]:
    config = BrokerConfig(groups=GroupConfig(initial_delay_ms=0, consumer_heartbeat_ms=700))
    opened = DoorThread(tmp_path_factory.mktemp("data"), config, KafkaConfig())
    yield opened
    opened.close()


@pytest.fixture
def group(door: DoorThread) -> str:
    """The name of a group that no other test uses, which is to begin with the first messages there are."""
    name = f"share-{next(_numbers)}"
    changes = [SettingChange("share.auto.offset.reset", "earliest")]
    door.run(alter_group_settings(door.broker, AlterGroupSettings(group=name, changes=changes)))
    return name


@pytest.fixture
def work(door: DoorThread, new_topic: NewTopic) -> TopicView:
    """A topic of one partition with ten messages."""
    topic = new_topic()
    messages = [Message(str(number).encode()) for number in range(10)]
    door.run(publish(door.broker, Publish(topic=topic.name, messages=messages)))
    return topic


def heartbeat(
    raw: RawClient, group: str, member: str, epoch: int, topics: tuple[str, ...] | None = None
) -> Any:
    return raw.ask(
        ApiKey.SHARE_GROUP_HEARTBEAT,
        1,
        group_id=group,
        member_id=member,
        member_epoch=epoch,
        rack_id=None,
        subscribed_topic_names=topics,
    )


def _topics(topic: TopicView, acknowledged: dict[tuple[int, int], tuple[int, ...]]) -> tuple[object, ...]:
    batches = tuple(
        SimpleNamespace(first_offset=first, last_offset=last, acknowledge_types=types)
        for (first, last), types in acknowledged.items()
    )
    partition = SimpleNamespace(partition_index=0, acknowledgement_batches=batches)
    return (SimpleNamespace(topic_id=topic.topic_id, partitions=(partition,)),)


def fetch(
    raw: RawClient,
    group: str,
    member: str,
    epoch: int,
    topic: TopicView,
    acknowledged: dict[tuple[int, int], tuple[int, ...]] | None = None,
    *,
    limit: int = 4,
    version: int = 1,
) -> Any:
    return raw.ask(
        ApiKey.SHARE_FETCH,
        version,
        group_id=group,
        member_id=member,
        share_session_epoch=epoch,
        max_wait=timedelta(0),
        min_bytes=1,
        max_bytes=1 << 20,
        max_records=limit,
        batch_size=limit,
        share_acquire_mode=0,
        is_renew_ack=False,
        topics=_topics(topic, acknowledged or {}),
        forgotten_topics_data=(),
    )


def acknowledge(
    raw: RawClient,
    group: str,
    member: str,
    epoch: int,
    topic: TopicView,
    acknowledged: dict[tuple[int, int], tuple[int, ...]],
    *,
    version: int = 1,
) -> Any:
    return raw.ask(
        ApiKey.SHARE_ACKNOWLEDGE,
        version,
        group_id=group,
        member_id=member,
        share_session_epoch=epoch,
        is_renew_ack=False,
        topics=_topics(topic, acknowledged),
    )


def acquired(reply: Any) -> list[tuple[int, int, int]]:
    """First and last offset of what was acquired, and how often it was delivered."""
    assert reply.error_code is ErrorCode.none, reply.error_message
    return [
        (run.first_offset, run.last_offset, run.delivery_count)
        for topic in reply.responses
        for partition in topic.partitions
        for run in partition.acquired_records
    ]


def join(raw: RawClient, group: str, member: str, topic: TopicView) -> Any:
    joined = heartbeat(raw, group, member, JOIN, (topic.name,))
    assert joined.error_code is ErrorCode.none, joined.error_message
    return joined


def test_every_member_is_assigned_every_partition(raw: RawClient, new_topic: NewTopic, group: str) -> None:
    topic = new_topic(partitions=3)

    first, second = join(raw, group, "a", topic), join(raw, group, "b", topic)

    for joined in (first, second):
        [assigned] = joined.assignment.topic_partitions
        assert (assigned.topic_id, sorted(assigned.partitions)) == (topic.topic_id, [0, 1, 2])
        assert joined.heartbeat_interval == timedelta(milliseconds=700)
    behind = heartbeat(raw, group, "a", first.member_epoch)
    assert (behind.error_code, behind.member_epoch) == (ErrorCode.none, second.member_epoch)


@versions(ApiKey.SHARE_FETCH)
def test_members_acquire_different_records_of_one_partition(
    raw: RawClient, work: TopicView, group: str, version: int
) -> None:
    join(raw, group, "a", work)
    join(raw, group, "b", work)

    assert acquired(fetch(raw, group, "a", OPEN, work, version=version)) == [(0, 3, 1)]
    assert acquired(fetch(raw, group, "b", OPEN, work, version=version)) == [(4, 7, 1)]
    assert acquired(fetch(raw, group, "a", 1, work, version=version)) == [(8, 9, 1)]


@versions(ApiKey.SHARE_ACKNOWLEDGE)
def test_what_is_accepted_is_done_and_what_is_released_comes_again(
    raw: RawClient, work: TopicView, group: str, version: int
) -> None:
    join(raw, group, "a", work)
    fetch(raw, group, "a", OPEN, work)

    reply = acknowledge(
        raw, group, "a", 1, work, {(0, 1): (ACCEPT,), (2, 3): (RELEASE, ACCEPT)}, version=version
    )

    [topic] = reply.responses
    assert [partition.error_code for partition in topic.partitions] == [ErrorCode.none]
    assert acquired(fetch(raw, group, "a", 2, work)) == [(2, 2, 2), (4, 6, 1)]


def test_acknowledgements_ride_on_the_next_fetch(raw: RawClient, work: TopicView, group: str) -> None:
    join(raw, group, "a", work)
    fetch(raw, group, "a", OPEN, work)

    reply = fetch(raw, group, "a", 1, work, {(0, 3): (ACCEPT,)})

    assert acquired(reply) == [(4, 7, 1)]
    assert reply.responses[0].partitions[0].acknowledge_error_code == 0
    assert raw_offset(raw, group, work) == 4


def raw_offset(raw: RawClient, group: str, topic: TopicView) -> int:
    """The committed offset of the group, as Kafka's tools see it."""
    asked = SimpleNamespace(name=topic.name, partition_indexes=(0,))
    reply = raw.ask(ApiKey.OFFSET_FETCH, 5, group_id=group, topics=(asked,))
    return int(reply.topics[0].partitions[0].committed_offset)


def test_what_is_rejected_goes_to_the_dead_letters(
    door: DoorThread, raw: RawClient, work: TopicView, group: str
) -> None:
    join(raw, group, "a", work)
    fetch(raw, group, "a", OPEN, work, limit=1)

    acknowledge(raw, group, "a", 1, work, {(0, 0): (REJECT,)})

    assert f"{work.name}.dlq" in door.broker.topics
    assert acquired(fetch(raw, group, "a", 2, work, limit=1)) == [(1, 1, 1)]


def test_a_session_that_is_closed_gives_back_what_it_has(raw: RawClient, work: TopicView, group: str) -> None:
    join(raw, group, "a", work)
    join(raw, group, "b", work)
    fetch(raw, group, "a", OPEN, work)

    assert fetch(raw, group, "a", CLOSE, work, {(0, 0): (ACCEPT,)}).error_code is ErrorCode.none
    assert heartbeat(raw, group, "a", LEAVE).error_code is ErrorCode.none

    assert acquired(fetch(raw, group, "b", OPEN, work)) == [(1, 3, 2), (4, 4, 1)]


def test_a_record_that_is_not_held_cannot_be_settled_and_nothing_else_is(
    raw: RawClient, work: TopicView, group: str
) -> None:
    join(raw, group, "a", work)
    fetch(raw, group, "a", OPEN, work, limit=2)

    reply = acknowledge(raw, group, "a", 1, work, {(0, 5): (ACCEPT,)})

    assert reply.responses[0].partitions[0].error_code is ErrorCode.invalid_record_state
    assert raw_offset(raw, group, work) == 0


@pytest.mark.parametrize("kind", [GAP, ACCEPT, RELEASE, REJECT, RENEW])
def test_a_run_of_any_length_costs_no_more_than_what_the_member_has(
    raw: RawClient, work: TopicView, group: str, kind: int
) -> None:
    join(raw, group, "a", work)
    fetch(raw, group, "a", OPEN, work, limit=2)

    tracemalloc.start()
    try:
        alone = acknowledge(raw, group, "a", 1, work, {(0, 30_000_000): (kind,)})
        riding = fetch(raw, group, "a", 2, work, {(0, 2**63 - 2): (kind,)}, limit=1)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert alone.responses[0].partitions[0].error_code is ErrorCode.invalid_record_state
    assert riding.responses[0].partitions[0].acknowledge_error_code == ErrorCode.invalid_record_state.value
    assert peak_bytes < 5 * MiB
    assert raw_offset(raw, group, work) == 0


def test_a_group_that_nobody_knows_is_refused_before_anything_is_looked_at(
    raw: RawClient, work: TopicView, group: str
) -> None:
    everything: dict[tuple[int, int], tuple[int, ...]] = {(0, 2**63 - 2): (ACCEPT,)}

    assert fetch(raw, group, "a", OPEN, work, everything).error_code is ErrorCode.unknown_member_id
    assert acknowledge(raw, group, "a", 1, work, everything).error_code is ErrorCode.unknown_member_id
    assert fetch(raw, group, "a", 1, work, everything).error_code is ErrorCode.unknown_member_id


def test_acknowledgements_of_the_whole_run_that_is_held_settle_it_in_parts(
    raw: RawClient, work: TopicView, group: str
) -> None:
    join(raw, group, "a", work)
    fetch(raw, group, "a", OPEN, work, limit=3)
    fetch(raw, group, "a", 1, work, limit=3)

    kinds = (ACCEPT, ACCEPT, RELEASE, RELEASE, GAP, ACCEPT)
    reply = acknowledge(raw, group, "a", 2, work, {(0, 5): kinds})

    assert reply.responses[0].partitions[0].error_code is ErrorCode.none
    assert acquired(fetch(raw, group, "a", 3, work)) == [(2, 3, 2), (6, 7, 1)]


@pytest.mark.parametrize(
    "runs",
    [
        {(0, 2): (ACCEPT,), (2, 3): (RELEASE,)},
        {(-2, 1): (ACCEPT,)},
        {(2**63 - 1, 2**63 - 1): (ACCEPT,)},
        {(2**63 - 1, -(2**63)): (ACCEPT,)},
    ],
    ids=["overlapping", "below 0", "without an end", "backwards"],
)
def test_runs_that_cannot_be_are_refused(
    raw: RawClient, work: TopicView, group: str, runs: dict[tuple[int, int], tuple[int, ...]]
) -> None:
    join(raw, group, "a", work)
    fetch(raw, group, "a", OPEN, work)

    reply = acknowledge(raw, group, "a", 1, work, runs)

    assert reply.responses[0].partitions[0].error_code is ErrorCode.invalid_request
    assert raw_offset(raw, group, work) == 0


@pytest.mark.parametrize("types", [(9,), (ACCEPT, ACCEPT, ACCEPT), ()])
def test_acknowledgements_without_sense_are_refused(
    raw: RawClient, work: TopicView, group: str, types: tuple[int, ...]
) -> None:
    join(raw, group, "a", work)
    fetch(raw, group, "a", OPEN, work, limit=2)

    reply = acknowledge(raw, group, "a", 1, work, {(0, 1): types})

    assert reply.responses[0].partitions[0].error_code is ErrorCode.invalid_request


def test_requests_of_a_session_come_in_turn(raw: RawClient, work: TopicView, group: str) -> None:
    join(raw, group, "a", work)

    assert fetch(raw, group, "a", 1, work).error_code is ErrorCode.share_session_not_found
    fetch(raw, group, "a", OPEN, work)
    assert fetch(raw, group, "a", 5, work).error_code is ErrorCode.invalid_share_session_epoch
    alone = acknowledge(raw, group, "a", OPEN, work, {(0, 0): (ACCEPT,)})
    assert alone.error_code is ErrorCode.invalid_share_session_epoch


def test_a_stranger_gets_nothing(raw: RawClient, work: TopicView, group: str) -> None:
    join(raw, group, "a", work)

    assert fetch(raw, group, "b", OPEN, work).error_code is ErrorCode.unknown_member_id
    assert heartbeat(raw, group, "b", 1).error_code is ErrorCode.unknown_member_id
    assert heartbeat(raw, group, "a", 99).error_code is ErrorCode.fenced_member_epoch
    assert heartbeat(raw, group, "", JOIN, (work.name,)).error_code is ErrorCode.invalid_request
    assert heartbeat(raw, group, "c", JOIN, ()).error_code is ErrorCode.invalid_request


def test_a_group_of_another_kind_takes_no_share_consumers(
    raw: RawClient, work: TopicView, group: str
) -> None:
    join(raw, group, "a", work)

    refused = raw.ask(
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        1,
        group_id=group,
        member_id="b",
        member_epoch=0,
        instance_id=None,
        rack_id=None,
        rebalance_timeout=timedelta(seconds=60),
        subscribed_topic_names=(work.name,),
        subscribed_topic_regex=None,
        server_assignor=None,
        topic_partitions=(),
    )

    assert refused.error_code is ErrorCode.inconsistent_group_protocol


@versions(ApiKey.SHARE_GROUP_DESCRIBE)
def test_share_groups_are_described_and_others_are_not(
    raw: RawClient, work: TopicView, group: str, version: int
) -> None:
    join(raw, group, "a", work)

    reply = raw.ask(
        ApiKey.SHARE_GROUP_DESCRIBE,
        version,
        group_ids=(group, "missing"),
        include_authorized_operations=False,
    )

    known, missing = reply.groups
    assert (known.group_state, known.group_epoch) == ("Stable", 1)
    [member] = known.members
    assert (member.member_id, member.subscribed_topic_names) == ("a", (work.name,))
    assert missing.error_code is ErrorCode.group_id_not_found


@versions(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS)
def test_it_is_told_up_to_where_a_share_group_has_settled(
    raw: RawClient, work: TopicView, group: str, version: int
) -> None:
    join(raw, group, "a", work)
    fetch(raw, group, "a", OPEN, work)
    fetch(raw, group, "a", 1, work, {(0, 3): (ACCEPT,)})

    def asked(name: str, partitions: tuple[int, ...] | None) -> Any:
        topics = None
        if partitions is not None:
            topics = (SimpleNamespace(topic_name=work.name, partitions=partitions),)
        wanted = SimpleNamespace(group_id=name, topics=topics)
        return raw.ask(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, version, groups=(wanted,)).groups[0]

    for found in (asked(group, None), asked(group, (0,))):
        assert (found.group_id, found.error_code) == (group, ErrorCode.none)
        [topic] = found.topics
        assert (topic.topic_name, topic.topic_id) == (work.name, work.topic_id)
        assert [(one.partition_index, one.start_offset) for one in topic.partitions] == [(0, 4)]
    assert asked("never-was", (0,)).topics[0].partitions[0].start_offset == -1


def test_share_groups_are_listed_as_what_they_are(raw: RawClient, work: TopicView, group: str) -> None:
    join(raw, group, "a", work)

    reply = raw.ask(ApiKey.LIST_GROUPS, 5, states_filter=(), types_filter=("share",))

    found = {one.group_id: (one.protocol_type, one.group_type) for one in reply.groups}
    assert found[group] == ("share", "share")


def test_another_subscription_brings_other_partitions(
    raw: RawClient, new_topic: NewTopic, work: TopicView, group: str
) -> None:
    other = new_topic(partitions=2)
    joined = join(raw, group, "a", work)

    changed = heartbeat(raw, group, "a", joined.member_epoch, (other.name,))

    [assigned] = changed.assignment.topic_partitions
    assert (assigned.topic_id, sorted(assigned.partitions)) == (other.topic_id, [0, 1])


@pytest.fixture
def made_anew(door: DoorThread, work: TopicView) -> Callable[[], TopicView]:
    """Deletes the topic and makes another of the same name, with one message."""

    def make() -> TopicView:
        door.run(delete_topic(door.broker, DeleteTopic(name=work.name)))
        topic = door.run(create_topic(door.broker, CreateTopic(name=work.name, partitions=1)))
        door.run(publish(door.broker, Publish(topic=work.name, messages=[Message(b"new")])))
        return topic

    return make


def test_a_topic_that_was_made_anew_is_told_of_at_the_next_heartbeat(
    raw: RawClient, work: TopicView, group: str, made_anew: Callable[[], TopicView]
) -> None:
    joined = join(raw, group, "a", work)
    other = made_anew()

    told = heartbeat(raw, group, "a", joined.member_epoch)

    assert [topic.topic_id for topic in told.assignment.topic_partitions] == [other.topic_id]
    assert heartbeat(raw, group, "a", told.member_epoch).assignment is None


def test_a_topic_that_was_made_anew_is_another_one_to_a_session(
    raw: RawClient, work: TopicView, group: str, made_anew: Callable[[], TopicView]
) -> None:
    join(raw, group, "a", work)
    assert acquired(fetch(raw, group, "a", OPEN, work)) == [(0, 3, 1)]
    other = made_anew()

    stale = fetch(raw, group, "a", 1, work, {(0, 3): (ACCEPT,)})
    fresh = fetch(raw, group, "a", 2, other)

    [topic] = stale.responses
    [partition] = topic.partitions
    assert (topic.topic_id, partition.error_code) == (work.topic_id, ErrorCode.unknown_topic_id)
    assert partition.acknowledge_error_code == ErrorCode.unknown_topic_id
    assert [topic.topic_id for topic in fresh.responses] == [other.topic_id]
    assert acquired(fresh) == [(0, 0, 1)]


def test_acknowledgements_for_a_topic_that_is_gone_are_answered(
    raw: RawClient, work: TopicView, group: str, made_anew: Callable[[], TopicView]
) -> None:
    join(raw, group, "a", work)
    fetch(raw, group, "a", OPEN, work)
    made_anew()

    reply = acknowledge(raw, group, "a", 1, work, {(0, 3): (ACCEPT,)})

    [topic] = reply.responses
    [partition] = topic.partitions
    assert (topic.topic_id, partition.error_code) == (work.topic_id, ErrorCode.unknown_topic_id)


def test_a_partition_that_is_not_there_is_told_apart_from_a_topic_that_is_not(
    raw: RawClient, work: TopicView, group: str
) -> None:
    join(raw, group, "a", work)
    request = _topics(work, {})
    request[0].partitions[0].partition_index = 7  # type: ignore[attr-defined]

    reply = raw.ask(
        ApiKey.SHARE_FETCH,
        1,
        group_id=group,
        member_id="a",
        share_session_epoch=OPEN,
        max_wait=timedelta(0),
        min_bytes=1,
        max_bytes=1 << 20,
        max_records=1,
        batch_size=1,
        topics=request,
        forgotten_topics_data=(),
    )

    [partition] = reply.responses[0].partitions
    assert (partition.partition_index, partition.error_code) == (7, ErrorCode.unknown_topic_or_partition)


def fetch_of_all(raw: RawClient, group: str, member: str, topic: TopicView, **limits: Any) -> Any:
    partitions = tuple(
        SimpleNamespace(partition_index=number, acknowledgement_batches=())
        for number in range(len(topic.partitions))
    )
    asked = {"max_wait": timedelta(0), "max_bytes": 1 << 20, "max_records": 100, **limits}
    return raw.ask(
        ApiKey.SHARE_FETCH,
        1,
        group_id=group,
        member_id=member,
        share_session_epoch=OPEN,
        min_bytes=1,
        batch_size=100,
        topics=(SimpleNamespace(topic_id=topic.topic_id, partitions=partitions),),
        forgotten_topics_data=(),
        **asked,
    )


def test_only_the_first_batch_of_a_share_fetch_may_be_larger_than_asked(
    door: DoorThread, raw: RawClient, new_topic: NewTopic, group: str
) -> None:
    topic = new_topic(partitions=5)
    for partition in range(5):
        for _ in range(2):
            messages = [Message(b"x" * 1_000, partition=partition) for _ in range(5)]
            door.run(publish(door.broker, Publish(topic=topic.name, messages=messages)))
    join(raw, group, "a", topic)

    seen: set[tuple[int, int]] = set()
    for max_bytes in [4_000, 8_000] * 5:
        reply = fetch_of_all(raw, group, "a", topic, max_bytes=max_bytes)
        [(partition, offsets)] = [
            (one.partition_index, range(run.first_offset, run.last_offset + 1))
            for one in reply.responses[0].partitions
            for run in one.acquired_records
        ]
        assert len(offsets) == 5
        seen |= {(partition, offset) for offset in offsets}
    assert len(seen) == 50, "each comes in its turn"
    assert len(fetch_of_all(raw, group, "a", topic).responses) == 0


def test_as_many_batches_come_as_fit(door: DoorThread, raw: RawClient, work: TopicView, group: str) -> None:
    for _ in range(9):
        messages = [Message(b"x" * 1_000) for _ in range(5)]
        door.run(publish(door.broker, Publish(topic=work.name, messages=messages)))
    join(raw, group, "a", work)

    reply = fetch_of_all(raw, group, "a", work, max_bytes=16_000)

    [partition] = reply.responses[0].partitions
    assert 15_000 < len(partition.records) <= 16_000
    assert acquired(reply) == [(0, 24, 1)]


def test_the_lock_lasts_as_long_as_the_topic_says(raw: RawClient, new_topic: NewTopic, group: str) -> None:
    short = new_topic(goqueue_visibility_ms="5000")
    join(raw, group, "a", short)

    fetched = fetch(raw, group, "a", OPEN, short)
    acknowledged = acknowledge(raw, group, "a", 1, short, {}, version=2)

    assert fetched.acquisition_lock_timeout == timedelta(seconds=5)
    assert acknowledged.acquisition_lock_timeout == timedelta(seconds=5)


async def somebody_waits(broker: Broker) -> None:
    while not broker.waiting_reads:
        await asyncio.sleep(0.001)


def test_a_fetch_that_waits_while_its_member_leaves_ends_empty(
    door: DoorThread, raw: RawClient, new_topic: NewTopic, group: str
) -> None:
    topic = new_topic()
    joined = join(raw, group, "a", topic)
    with RawClient(door.port) as other:
        fields = {"group_id": group, "member_id": "a", "share_session_epoch": OPEN}
        asked = SimpleNamespace(partition_index=0, acknowledgement_batches=())
        other.send(
            ApiKey.SHARE_FETCH,
            1,
            **fields,
            max_wait=timedelta(seconds=30),
            min_bytes=1,
            max_bytes=1 << 20,
            max_records=1,
            batch_size=1,
            topics=(SimpleNamespace(topic_id=topic.topic_id, partitions=(asked,)),),
            forgotten_topics_data=(),
        )
        door.run(somebody_waits(door.broker))
        heartbeat(raw, group, "a", LEAVE)

        reply = other.receive(ApiKey.SHARE_FETCH, 1)

    assert joined.error_code is ErrorCode.none
    assert (reply.error_code, reply.responses) == (ErrorCode.none, ())
