"""What Kafka clients do is counted like what others do: producers, consumers, groups, share groups."""

from collections.abc import Iterator

import pytest
from kio.schema.errors import ErrorCode

from goqueue.broker.measures.table import FAMILIES
from goqueue.broker.measures.view import View
from goqueue.core.telemetry.histogram import Histogram
from goqueue.edge.kafka.apis import ApiKey
from goqueue.edge.kafka.config import KafkaConfig
from goqueue.model.settings import BrokerConfig, GroupConfig
from tests.doors.kafka import group_requests as ask
from tests.doors.kafka import requests
from tests.doors.kafka import test_share_groups as share
from tests.doors.kafka.conftest import NewTopic
from tests.doors.kafka.door_thread import DoorThread
from tests.doors.kafka.raw_client import RawClient, record_batch


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DoorThread]:
    """Nobody waits for other first members here."""
    config = BrokerConfig(groups=GroupConfig(initial_delay_ms=0))
    opened = DoorThread(tmp_path_factory.mktemp("data"), config, KafkaConfig())
    yield opened
    opened.close()


def told(door: DoorThread, name: str) -> dict[tuple[str, ...], float]:
    """A family as the broker tells it now; of histograms how many values there were."""
    view = door.run(View(door.broker).look())
    [family] = [family for family in FAMILIES if family.name == f"goqueue_{name}"]
    return {
        labels: value.count if isinstance(value, Histogram) else value for labels, value in family.read(view)
    }


def test_batches_are_counted_with_all_their_messages(
    door: DoorThread, raw: RawClient, new_topic: NewTopic
) -> None:
    topic = new_topic().name
    batch = record_batch(b"a", b"b", b"c")
    raw.ask(ApiKey.PRODUCE, 9, **requests.produce(topic, batch, acks=-1))
    fetched = raw.ask(ApiKey.FETCH, 12, **requests.fetch(topic, 0))

    assert len(fetched.responses[0].partitions[0].records) == len(batch)
    assert told(door, "broker_messages_published_total")[topic,] == 3
    assert told(door, "broker_bytes_published_total")[topic,] == len(batch)
    assert told(door, "broker_messages_consumed_total")[topic, ""] == 3
    assert told(door, "broker_bytes_consumed_total")[topic, ""] == len(batch)
    assert told(door, "broker_publish_latency_seconds")[topic,] == 1
    assert told(door, "broker_fetch_latency_seconds")[topic,] == 1
    assert told(door, "broker_active_connections") == {("kafka",): 1}


def test_a_batch_that_is_refused_is_counted_by_its_error(
    door: DoorThread, raw: RawClient, new_topic: NewTopic
) -> None:
    topic = new_topic().name
    batch = record_batch(b"a")
    raw.ask(ApiKey.PRODUCE, 9, **requests.produce(topic, batch[:-1] + b"!"))

    assert told(door, "broker_messages_failed_total")[topic, "wrong_checksum"] == 1
    assert told(door, "broker_messages_published_total")[topic,] == 0


def test_the_life_of_a_group_is_counted(door: DoorThread, raw: RawClient, new_topic: NewTopic) -> None:
    topic = new_topic().name
    raw.ask(ApiKey.PRODUCE, 9, **requests.produce(topic, record_batch(b"a", b"b", b"c"), acks=-1))
    joined = ask.stable_alone(raw, "readers")
    member, generation = joined.member_id, joined.generation_id
    raw.ask(ApiKey.HEARTBEAT, 4, **ask.heartbeat("readers", member, generation))
    committed = ask.commit("readers", topic, {0: 1}, member_id=member, generation=generation)
    raw.ask(ApiKey.OFFSET_COMMIT, 8, **committed)
    fenced = ask.commit("readers", topic, {0: 1}, member_id=member, generation=generation + 5)
    raw.ask(ApiKey.OFFSET_COMMIT, 8, **fenced)

    assert told(door, "consumer_group_members")["readers",] == 1
    assert told(door, "consumer_group_generation")["readers",] == generation
    assert told(door, "consumer_group_state")["readers", "Stable"] == 1
    assert told(door, "consumer_heartbeats_sent_total")["readers",] == 1
    assert told(door, "consumer_heartbeat_latency_seconds")["readers",] == 1
    assert told(door, "consumer_offset_commits_total")[topic, "readers"] == 1
    assert told(door, "consumer_offset_commit_latency_seconds")["readers",] == 1
    assert told(door, "consumer_offset_commit_errors_total") == {("readers", "illegal_generation"): 1}
    assert told(door, "consumer_committed_offset")[topic, "readers"] == 1
    assert told(door, "consumer_lag_messages")[topic, "readers"] == 2
    raw.ask(ApiKey.LEAVE_GROUP, 5, **ask.leave("readers", member))
    assert told(door, "consumer_group_joins_total")["readers",] == 1
    assert told(door, "consumer_group_leaves_total")["readers", "left"] == 1
    rebalances = told(door, "consumer_rebalances_total")
    assert rebalances == {("readers", "member_joined"): 1, ("readers", "member_left"): 1}
    assert told(door, "consumer_rebalance_latency_seconds")["readers",] == 2


def test_share_groups_are_work_queues_in_the_metrics_too(
    door: DoorThread, raw: RawClient, new_topic: NewTopic
) -> None:
    topic = new_topic()
    raw.ask(ApiKey.PRODUCE, 9, **requests.produce(topic.name, record_batch(b"a", b"b", b"c", b"d")))
    share.join(raw, "sharers", "me", topic)
    share.fetch(raw, "sharers", "me", share.OPEN, topic)
    runs: dict[tuple[int, int], tuple[int, ...]] = {
        (0, 0): (share.ACCEPT,),
        (1, 1): (share.RELEASE,),
        (2, 2): (share.REJECT,),
    }
    reply = share.acknowledge(raw, "sharers", "me", 1, topic, runs)
    assert reply.error_code is ErrorCode.none

    pair = (topic.name, "sharers")
    assert told(door, "broker_messages_consumed_total")[pair] == 4
    assert told(door, "broker_messages_acked_total")[pair] == 1
    assert told(door, "broker_messages_nacked_total")[pair] == 1
    assert told(door, "broker_messages_rejected_total")[pair] == 1
    assert told(door, "queue_in_flight_messages")[pair] == 1
    assert told(door, "consumer_polls_total")["sharers",] == 1
