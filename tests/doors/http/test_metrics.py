"""GET /metrics of a broker that was used: every family is there, and the numbers are what was done."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from goqueue.broker.measures.family import Kind
from goqueue.broker.measures.table import FAMILIES
from goqueue.core.telemetry.counters import Counters
from goqueue.model.settings import BrokerConfig, MetricsConfig, TopicSettings
from goqueue.model.telemetry import ExportStatus
from tests.doors.http.running_door import RunningDoor
from tests.doors.http.test_queue import Queue
from tests.doors.http.test_transactions import Writer

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]
ORDER = json.dumps({"type": "object", "properties": {"zip": {"type": "string"}}})
NO_RETRIES = TopicSettings(retries_max=1, retry_backoff_ms=0, retry_backoff_max_ms=0)
OPENMETRICS = {"accept": "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"}


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDoor]:
    """A broker of which nearly everything was asked once."""
    config = BrokerConfig(topic_defaults=NO_RETRIES)
    with RunningDoor(tmp_path_factory.mktemp("metrics"), broker_config=config) as running:
        client = running.client
        _work(Queue(client, name="orders"))
        _outlive(Queue(client, name="short"))
        _delay(client)
        _write_in_transactions(client)
        _give_up_a_segment(running)
        _check_schemas(client)
        client.post("/sinks/lake/generations")
        client.post("/admin/tenants", json={"id": "acme", "name": "Acme"})
        client.post("/topics", json={"name": "acme.orders", "num_partitions": 1})
        client.post("/topics/acme.orders/messages", json={"messages": [{"value": "x"}] * 2})
        running.broker.telemetry.exports.append(ExportStatus("file", sent=7, dropped=2))
        _note_what_is_rare(running.broker.counters)
        running.run(running.broker.health.check(running.broker))
        yield running


def _note_what_is_rare(counters: Counters) -> None:
    """What needs a spoilt disk or a hostile schema, and has tests of its own where it happens."""
    checked = counters.topic("checked")
    checked.checked_elsewhere, checked.checks_too_slow = 3, 1
    counters.group_topic("workers-of-orders", "orders").passed_over = 2


def _work(queue: Queue) -> None:
    queue.publish(*({"value": "x", "partition": 0} for _ in range(5)), {"value": "y", "priority": "high"})
    leased = queue.poll(limit=6)
    receipts = [message["receipt_handle"] for message in leased]
    queue.settle("ack", receipt_handles=receipts[:3])
    queue.settle("nack", receipt_handle=receipts[3])
    queue.settle("reject", receipt_handle=receipts[4], reason="bad")
    queue.settle("visibility", receipt_handle=receipts[5], timeout="60s")
    assert queue.client.post("/topics/orders/dlq/redrive").json()["redriven"] == 1
    queue.client.get("/topics/orders/partitions/0/messages")
    queue.client.post(f"/groups/{queue.group}/heartbeat", json={"member_id": queue.member})
    offsets = {"member_id": "", "offsets": [{"topic": "orders", "partition": 0, "offset": 1}]}
    queue.client.post("/groups/readers/offsets", json=offsets)
    offsets = {"member_id": "", "offsets": [{"topic": "nowhere", "partition": 0, "offset": 1}]}
    queue.client.post("/groups/readers/offsets", json=offsets)
    member = queue.join()
    queue.client.post(f"/groups/{queue.group}/leave", json={"member_id": member})
    queue.client.post("/topics/orders/messages", json={"messages": [{"value": "z", "partition": 99}]})
    odd = [{"value": "z", "delay": "soon"}, {"value": "z", "priority": "urgent"}]
    queue.client.post("/topics/orders/messages", json={"messages": odd})


def _give_up_a_segment(running: RunningDoor) -> None:
    """Have retention take something, whatever would be time for it."""
    log = running.broker.topic("ledger").partitions[0].log
    running.run(_on_the_loop(log.roll))
    running.run(_on_the_loop(lambda: log.move_start(log.end_offset)))


async def _on_the_loop(work: Callable[[], None]) -> None:
    work()


def _outlive(queue: Queue) -> None:
    queue.publish({"value": "x", "partition": 0}, {"value": "y", "partition": 0, "ttl": "1ms"})
    assert len(queue.poll(limit=1, visibility_timeout="1ms")) == 1
    assert len(queue.poll(timeout="10s")) == 1  # the same again; the other one is too old by now


def _delay(client: httpx.Client) -> None:
    client.post("/topics", json={"name": "later", "num_partitions": 1})
    bodies = [{"value": "a", "delay": "1h"}, {"value": "b", "delay": "2h"}, {"value": "c", "delay": "1ms"}]
    placed = client.post("/topics/later/messages", json={"messages": bodies}).json()["results"]
    client.delete(f"/topics/later/delayed/0/{placed[1]['offset']}")
    client.get("/topics/later/partitions/0/messages", params={"wait": "5s"})  # until the third is there


def _write_in_transactions(client: httpx.Client) -> None:
    client.post("/topics", json={"name": "ledger", "num_partitions": 1})
    writer = Writer(client)
    for sequence, end in enumerate(("commit", "abort")):
        name = writer.begin()
        writer.ask("publish", topic="ledger", value="a", partition=0, sequence=sequence)
        assert writer.ask(end, transaction_id=name).status_code == 200
    writer.begin()
    assert writer.ask("publish", topic="ledger", value="a", partition=7).status_code == 404
    assert writer.ask("abort").status_code == 200


def _check_schemas(client: httpx.Client) -> None:
    settings = {"goqueue.schema.validation": "full"}
    client.post("/topics", json={"name": "checked", "num_partitions": 1, "settings": settings})
    client.post("/schemas/subjects/checked-value/versions", json={"schema": ORDER, "schemaType": "JSON"})
    bodies = [{"value": '{"zip": "8000"}'}, {"value": '{"zip": 8000}'}]
    client.post("/topics/checked/messages", json={"messages": bodies})


def scraped(client: httpx.Client) -> Samples:
    reply = client.get("/metrics")
    assert reply.status_code == 200, reply.text
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in parse_text(reply.text)
        for sample in family.samples
    }


def _parse_openmetrics(text: str) -> Iterator[Metric]:
    yield from parse_openmetrics(text)  # type: ignore[no-untyped-call]  # the library's own parser


def value(samples: Samples, name: str, **labels: str) -> float:
    return samples[name, frozenset(labels.items())]


def test_every_family_of_the_table_is_there(used: RunningDoor) -> None:
    told = {name for name, _ in scraped(used.client)}

    expected = {f.name + "_count" if f.kind is Kind.HISTOGRAM else f.name for f in FAMILIES}
    only_in_a_cluster = {
        "goqueue_cluster_bytes_replicated_total",
        "goqueue_cluster_isr_expands_total",
        "goqueue_cluster_isr_shrinks_total",
        "goqueue_cluster_leader_elections_total",
        "goqueue_cluster_replication_lag",
    }
    assert expected - told == only_in_a_cluster


def test_a_sample_has_the_labels_that_the_table_names(used: RunningDoor) -> None:
    labels_of = {family.name: set(family.labels) for family in FAMILIES}
    for name, labels in scraped(used.client):
        if name in labels_of:
            assert {label for label, _ in labels} == labels_of[name], name


def test_counters_are_what_was_done(used: RunningDoor) -> None:
    samples = scraped(used.client)
    pair = {"topic": "orders", "consumer_group": "workers-of-orders"}
    broker = "goqueue_broker_"

    def count(name: str, **labels: str) -> float:
        return value(samples, broker + name, **labels)

    assert count("messages_published_total", topic="orders") == 7  # one of them redriven
    assert count("messages_published_total", topic="orders.dlq") == 1
    assert count("priority_messages_published_total", topic="orders", priority="high") == 1
    assert count("messages_consumed_total", **pair) == 6
    assert count("bytes_consumed_total", **pair) == 6
    assert count("messages_acked_total", **pair) == 3
    assert count("messages_nacked_total", **pair) == 1
    assert count("messages_rejected_total", **pair) == 1
    assert count("messages_extended_total", **pair) == 1
    assert count("messages_dead_lettered_total", **pair) == 1
    short = {"topic": "short", "consumer_group": "workers-of-short"}
    assert (count("messages_expired_total", **short), count("messages_outdated_total", **short)) == (1, 1)
    assert count("messages_redriven_total", topic="orders") == 1
    assert count("messages_failed_total", topic="orders", error_type="partition_not_found") == 1
    assert count("messages_failed_total", topic="orders", error_type="invalid") == 2
    assert count("messages_failed_total", topic="ledger", error_type="partition_not_found") == 1
    assert count("messages_published_total", topic="ledger") == 2
    assert count("priority_messages_published_total", topic="ledger", priority="normal") == 2, "no markers"
    assert count("delayed_messages_scheduled_total", topic="later") == 3
    assert count("delayed_messages_fired_total", topic="later") == 1
    assert count("delayed_messages_cancelled_total", topic="later") == 1
    assert count("delayed_messages_pending", topic="later") == 1
    assert count("transactions_started_total") == 3
    assert (count("transactions_committed_total"), count("transactions_aborted_total")) == (1, 2)
    assert count("schema_validations_total", topic="checked", result="success") == 1
    assert count("schema_validations_total", topic="checked", result="failure") == 1
    assert count("messages_failed_total", topic="checked", error_type="schema_mismatch") == 1
    assert count("active_connections", door="http") == 1
    assert count("ack_latency_seconds_count", topic="orders", ack_type="ack") == 1
    assert value(samples, "goqueue_tenant_messages_published_total", tenant="acme") == 2
    assert value(samples, "goqueue_tracing_spans_exported_total", exporter="file") == 7


def test_readers_without_a_group_are_counted_without_one(used: RunningDoor) -> None:
    before = value(
        scraped(used.client), "goqueue_broker_messages_consumed_total", topic="later", consumer_group=""
    )
    used.client.get("/topics/later/partitions/0/messages")
    after = value(
        scraped(used.client), "goqueue_broker_messages_consumed_total", topic="later", consumer_group=""
    )

    assert after - before == 1


def test_groups_are_told_with_their_lag(used: RunningDoor) -> None:
    samples = scraped(used.client)
    readers = {"topic": "orders", "consumer_group": "readers"}
    consumer = "goqueue_consumer_"
    end_offset = value(samples, "goqueue_storage_log_end_offset", topic="orders")

    assert value(samples, f"{consumer}committed_offset", **readers) == 1
    assert value(samples, f"{consumer}offset_commits_total", **readers) == 1
    assert value(samples, f"{consumer}lag_messages", **readers) in range(1, int(end_offset))
    assert 0 <= value(samples, f"{consumer}lag_seconds", **readers) < 60
    group = {"consumer_group": "workers-of-orders"}
    assert value(samples, f"{consumer}group_members", **group) == 1
    assert value(samples, "goqueue_broker_active_consumers", topic="orders", **group) == 1
    assert value(samples, f"{consumer}assigned_partitions", **group) == 3
    assert value(samples, f"{consumer}group_state", state="Stable", **group) == 1
    assert value(samples, f"{consumer}group_joins_total", **group) == 2
    assert value(samples, f"{consumer}group_leaves_total", reason="left", **group) == 1
    assert value(samples, f"{consumer}rebalances_total", trigger="member_joined", **group) == 2
    assert value(samples, f"{consumer}rebalances_total", trigger="member_left", **group) == 1
    assert value(samples, f"{consumer}polls_total", **group) == 1
    assert value(samples, f"{consumer}poll_batch_size_sum", **group) == 6
    assert value(samples, "goqueue_queue_in_flight_messages", topic="orders", **group) == 1
    assert value(samples, "goqueue_queue_dead_letters", topic="orders") == 1
    told = {dict(labels)["consumer_group"] for name, labels in samples if name == f"{consumer}lag_messages"}
    assert told == {"readers", "workers-of-orders", "workers-of-short"}  # no group of the broker's own


def test_the_disk_is_told_of_journals_too(used: RunningDoor) -> None:
    samples = scraped(used.client)

    for topic in ("orders", "__consumer_offsets", "__metadata"):
        assert value(samples, "goqueue_storage_bytes_written_total", topic=topic) > 0
    fsyncs = sum(number for (name, _), number in samples.items() if name == "goqueue_storage_fsync_total")
    rounds = value(samples, "goqueue_storage_commit_rounds_total")
    assert rounds > 0
    assert value(samples, "goqueue_storage_fsync_latency_seconds_count") == fsyncs + rounds
    assert ("goqueue_broker_messages_published_total", frozenset({("topic", "__metadata")})) not in samples


def test_openmetrics_is_told_to_those_who_ask_for_it(used: RunningDoor) -> None:
    reply = used.client.get("/metrics", headers=OPENMETRICS)
    families: dict[str, Metric] = {family.name: family for family in _parse_openmetrics(reply.text)}

    assert reply.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    assert families["goqueue_broker_messages_published"].type == "counter"
    assert len(families) > len(FAMILIES)
    plain = used.client.get("/metrics")
    assert plain.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert {family.name for family in parse_text(plain.text)} == families.keys()


def test_topics_and_groups_beyond_the_bound_are_summed_up(tmp_path: Path) -> None:
    config = BrokerConfig(metrics=MetricsConfig(topics_max=3, groups_max=1))
    with RunningDoor(tmp_path, broker_config=config) as running:
        queues = [Queue(running.client, name=name) for name in ("a", "b", "c", "d", "e")]
        for queue in queues:
            queue.publish("x", "y")
            queue.poll(limit=1)
        samples = scraped(running.client)

    def by(label: str, wanted: str) -> dict[str, float]:
        found = ((dict(labels), number) for (name, labels), number in samples.items() if name == wanted)
        return {labels[label]: number for labels, number in found}

    assert by("topic", "goqueue_broker_messages_published_total") == {"a": 2, "b": 2, "c": 2, "_other": 4}
    assert by("topic", "goqueue_broker_topic_partitions") == {"a": 3, "b": 3, "c": 3, "_other": 6}
    assert by("consumer_group", "goqueue_broker_messages_consumed_total") == {"workers-of-a": 1, "_other": 4}
    assert by("consumer_group", "goqueue_consumer_group_members") == {"workers-of-a": 1, "_other": 4}
    assert by("consumer_group", "goqueue_queue_in_flight_messages") == {"workers-of-a": 1, "_other": 4}


def test_a_deleted_topic_is_not_told_of_any_more(client: httpx.Client, orders: str) -> None:
    client.post("/topics/orders/messages", json={"messages": [{"value": "x"}]})
    assert 'topic="orders"' in client.get("/metrics").text

    client.delete("/topics/orders")

    assert 'topic="orders"' not in client.get("/metrics").text


def test_names_that_nobody_created_get_no_series(client: httpx.Client) -> None:
    client.post("/topics/made-up/messages", json={"messages": [{"value": "x"}]})

    text = client.get("/metrics").text

    assert "made-up" not in text


@pytest.mark.parametrize("name", ['a "quoted" one', "back\\slash", "Gruppe für Ümläute"])
def test_odd_names_of_groups_are_escaped(client: httpx.Client, orders: str, name: str) -> None:
    offsets = {"offsets": [{"topic": "orders", "partition": 0, "offset": 0}]}
    committed = client.post(f"/groups/{quote(name)}/offsets", json=offsets)
    assert committed.status_code == 200, committed.text

    commits = scraped(client)[
        "goqueue_consumer_offset_commits_total", frozenset({("topic", "orders"), ("consumer_group", name)})
    ]
    told = client.get("/metrics", headers=OPENMETRICS).text

    assert commits == 1
    assert name in {
        sample.labels.get("consumer_group")
        for family in _parse_openmetrics(told)
        for sample in family.samples
    }


def test_partitions_are_told_apart_where_that_is_asked_for(tmp_path: Path) -> None:
    config = BrokerConfig(metrics=MetricsConfig(by_partition=True))
    with RunningDoor(tmp_path, broker_config=config) as running:
        queue = Queue(running.client, name="orders")
        queue.publish({"value": "x", "partition": 2})
        samples = scraped(running.client)

    ends = [value(samples, "goqueue_storage_log_end_offset", topic="orders", partition=p) for p in "012"]
    assert ends == [0, 0, 1]
    assert value(samples, "goqueue_broker_messages_published_total", topic="orders") == 1
