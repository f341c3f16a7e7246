"""Three nodes and an etcd on this machine: what replication costs, and how long a leader is waited for."""

import signal
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench.kafka_rows import MILLION, PARTITIONS, consume_all, publish_all
from bench.measured import Row, at_most, measuring_all, percentile, reported
from bench.raw_client import RawClient, batch_of, produce_request_to_many, stored_partitions
from tests.integration.running_cluster import RunningCluster

NODES = 3
WAIT_S = 60.0
LED = 300
IDLE_S = 10.0
_PAUSE_S = 0.01
_BATCH_MESSAGES = 1_000


@contextmanager
def started(folder: Path, *, nodes: int = NODES, replication: int = NODES) -> Iterator[RunningCluster]:
    running = RunningCluster(folder, f"--nodes={nodes}", f"--replication={replication}")
    try:
        running.start()
        yield running
    finally:
        running.kill()


def in_and_out(folder: Path, *, count: int = MILLION) -> list[Row]:
    """100-byte messages by librdkafka, acks=all, on the disks of all three before they are acknowledged."""
    with started(folder) as running:
        create_topics(running, {"cpu": PARTITIONS}, NODES)
        pids = pids_of(running, NODES)
        publish_all(kafka_of(running), "cpu", "all", count // 20)  # all have met by then
        with measuring_all(pids) as published:
            publish_all(kafka_of(running), "cpu", "all", count)
        with measuring_all(pids) as consumed:
            consume_all(kafka_of(running), "cpu", count)
    scale = MILLION / count
    return [
        at_most(
            "three nodes, 100 B, librdkafka, acks=all: CPU of all nodes per million published and consumed",
            (published.cpu_s + consumed.cpu_s) * scale,
            "CPU-s",
            1.3,
            f"publish {published.cpu_s * scale:.3f} ({count / published.wall_s:,.0f}/s), "
            f"consume {consumed.cpu_s * scale:.3f} ({count / consumed.wall_s:,.0f}/s)",
        )
    ]


def many_nodes(folder: Path, *, count: int = MILLION, rounds: int = 3) -> list[Row]:
    """The same with one copy, on one node and on two: does a message cost more where there are more nodes?

    Batches are of the same size in both: librdkafka fills them by time, and sends smaller ones to two brokers
    than to one, or to a busy machine. What a node takes to be there is measured apart.
    """
    costs_us: dict[int, list[float]] = {1: [], 2: []}
    idle: dict[int, float] = {}
    for turn in range(rounds):
        for nodes, costs in costs_us.items():
            with started(folder / f"{turn}-{nodes}", nodes=nodes, replication=1) as running:
                create_topics(running, {"cpu": 4}, 1)
                pids = pids_of(running, nodes)
                _publish_in_equal_batches(running, count // 20)
                with measuring_all(pids) as spent:
                    _publish_in_equal_batches(running, count)
                    consume_all(kafka_of(running), "cpu", count, partitions=4)
                with measuring_all(pids) as rested:
                    time.sleep(3)
                idle[nodes] = rested.cpu_s / rested.wall_s
                costs.append((spent.cpu_s - idle[nodes] * spent.wall_s) / count * 1e6)
    one_us, two_us = min(costs_us[1]), min(costs_us[2])
    return [
        at_most(
            "CPU of a message published and consumed on two nodes, over that on one",
            (two_us / one_us - 1) * 100,
            "%",
            10,
            f"{one_us:.3f} µs on one, {two_us:.3f} on two, one copy each, batches of {_BATCH_MESSAGES:,}, "
            f"least of {rounds}; without what being there takes, {idle[1]:.1%} and {idle[2]:.1%} of a core",
        )
    ]


def _publish_in_equal_batches(running: RunningCluster, count: int) -> None:
    settings = {"batch.num.messages": _BATCH_MESSAGES, "linger.ms": 500}
    publish_all(kafka_of(running), "cpu", "all", count, partitions=4, settings=settings)


def fail_over(folder: Path) -> list[Row]:
    """From the death of a node to the first acknowledged write on each partition it led; a clean stop."""
    with started(folder) as running:
        create_topics(running, {"led": LED}, NODES)
        wait_until_whole(running)
        delays_s = _killed(running)
        wait_until_whole(running)
        stop_s, sent, refused = _stopped(running)
    return [
        at_most(
            f"kill -9 of a node leading a third of {LED} partitions, until the first acknowledged write, p50",
            percentile(delays_s, 0.5),
            "s",
            1,
            f"{len(delays_s)} partitions",
        ),
        at_most("the same, worst", max(delays_s), "s", 3),
        at_most("clean stop of such a node, until others lead all", stop_s, "s", 1),
        at_most(
            "publishes that failed meanwhile, with retries", refused, "of them", 0, f"{sent:,} were sent"
        ),
    ]


def _killed(running: RunningCluster) -> list[float]:
    """For each partition that a node led, when another has acknowledged a write to it.

    Asked by clients that lose no time: librdkafka takes two seconds until it looks for another leader.
    """
    left = set(_partitions_of(running, "node-1", "led"))
    survivors = [RawClient(running.doors[node, "kafka"]) for node in ("node-2", "node-3")]
    running.child("node-1").send_signal(signal.SIGKILL)
    killed_s = time.perf_counter()
    delays_s: list[float] = []
    with ThreadPoolExecutor(len(survivors)) as pool:
        while left:
            assert time.perf_counter() < killed_s + WAIT_S
            for stored in pool.map(_try_to_write, survivors, [sorted(left)] * len(survivors)):
                delays_s += [time.perf_counter() - killed_s] * len(left & stored)
                left -= stored
            time.sleep(_PAUSE_S)
    for survivor in survivors:
        survivor.close()
    return delays_s


def _try_to_write(survivor: RawClient, partitions: list[int]) -> set[int]:
    """Those partitions that it leads."""
    survivor.send(produce_request_to_many("led", partitions, batch_of(1, b"after"), acks=-1))
    return stored_partitions(survivor.receive(), "led")


def _stopped(running: RunningCluster) -> tuple[float, int, int]:
    """How long until it leads nothing; and of those who published meanwhile, how many were refused."""
    is_over = threading.Event()
    refused: list[str] = []
    sent = 0
    producer = Producer({"bootstrap.servers": kafka_of(running), "acks": "all", "retry.backoff.ms": 50})

    def told(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            refused.append(str(error))

    def publish() -> None:
        nonlocal sent
        while not is_over.is_set():
            producer.produce("led", b"x", partition=sent % LED, on_delivery=told)
            sent += 1
            producer.poll(0.001)

    publisher = threading.Thread(target=publish)
    publisher.start()
    while sent < LED:
        time.sleep(0.01)
    others = [at for (node, door), at in running.doors.items() if door == "http" and node != "node-2"]
    running.child("node-2").send_signal(signal.SIGTERM)
    began_s = time.perf_counter()
    while any(node["leads"] for node in _state(others[0])["nodes"] if node["id"] == "node-2"):
        assert time.perf_counter() < began_s + WAIT_S
    took_s = time.perf_counter() - began_s
    is_over.set()
    publisher.join()
    left = producer.flush(WAIT_S)
    return took_s, sent, len(refused) + left


def many_partitions(folder: Path, *, count: int = 10_000) -> list[Row]:
    """A node that holds very many: how long it takes to start, and what it takes to do nothing."""
    with started(folder) as running:
        create_topics(running, {f"many-{number}": 500 for number in range(count // 500)}, NODES)
        wait_until_whole(running, 10 * WAIT_S)
        running.child("node-3").send_signal(signal.SIGTERM)
        running.wait_for("node-3   ended with code 0", 10 * WAIT_S)
        ended_s = time.perf_counter()
        running.wait_for("node-3   ready", 10 * WAIT_S)
        start_s = time.perf_counter() - ended_s
        start_cpu_s = sum(running.child("node-3").cpu_times()[:2])
        wait_until_whole(running, 10 * WAIT_S)
        time.sleep(IDLE_S)  # what was put off is done
        processes = [running.child(f"node-{number}") for number in (1, 2, 3)]
        shares = []
        for process in processes:
            process.cpu_percent()
        time.sleep(IDLE_S)
        shares = [process.cpu_percent() for process in processes]
        memory_mb = [process.memory_info().rss / 1e6 for process in processes]
    name = f"{count:,} partitions on each of three nodes"
    return [
        at_most(f"{name}: start of one", start_s, "s", 10, f"{start_cpu_s:.1f} s of CPU; others were busy"),
        at_most(f"{name}: idle CPU of a node", max(shares), "%", 2, " ".join(f"{s:.1f}" for s in shares)),
        at_most(f"{name}: memory", max(memory_mb), "MB", 300, " ".join(f"{m:.0f}" for m in memory_mb)),
    ]


def polls(folder: Path, *, count: int = 500) -> list[Row]:
    """One message published, polled and acknowledged over HTTP, on a cluster and on one node."""
    p50_ms = {}
    for nodes in (1, NODES):
        with started(folder / str(nodes), nodes=nodes, replication=nodes) as running:
            create_topics(running, {"work": 1}, nodes)
            wait_until_whole(running)
            p50_ms[nodes] = percentile(_poll_times_ms(running, count), 0.5)
    return [
        at_most(
            "poll of one message over HTTP on three nodes, p50 over one node's",
            p50_ms[NODES] - p50_ms[1],
            "ms",
            0.5,
            f"{p50_ms[NODES]:.2f} against {p50_ms[1]:.2f} ms",
        ),
        reported("poll of one message over HTTP on three nodes, p50", p50_ms[NODES], "ms"),
    ]


def _poll_times_ms(running: RunningCluster, count: int) -> list[float]:
    """At the node that coordinates the group and, where one leads all, holds the topic."""
    taken = []
    at = next(at for (_, door), at in running.doors.items() if door == "http")
    with httpx.Client(base_url=f"http://{at}", timeout=WAIT_S) as client:
        body = {"client_id": "c", "topics": ["work"], "mode": "shared", "session_timeout": "30m"}
        member = client.post("/groups/bench/join", json=body).json()["member_id"]
        query = {"member_id": member, "limit": "1", "timeout": "5s", "visibility_timeout": "30s"}
        for number in range(count):
            published = client.post("/topics/work/messages", json={"messages": [{"value": str(number)}]})
            assert published.status_code == 200, published.text
            began_s = time.perf_counter()
            messages = client.get("/groups/bench/poll", params=query).json()["messages"]
            taken.append((time.perf_counter() - began_s) * 1e3)
            handles = [message["receipt_handle"] for message in messages]
            client.post("/messages/ack", json={"receipt_handles": handles}).raise_for_status()
    return taken


def kafka_of(running: RunningCluster) -> str:
    return ",".join(at for (_, door), at in running.doors.items() if door == "kafka")


def pids_of(running: RunningCluster, nodes: int) -> Sequence[int]:
    return [running.child(f"node-{number}").pid for number in range(1, nodes + 1)]


def create_topics(running: RunningCluster, partitions: dict[str, int], copies: int) -> None:
    admin = AdminClient({"bootstrap.servers": kafka_of(running)})
    for name, count in partitions.items():
        [done] = admin.create_topics([NewTopic(name, count, copies)], request_timeout=10 * WAIT_S).values()
        done.result(10 * WAIT_S)


def wait_until_whole(running: RunningCluster, wait_s: float = WAIT_S) -> None:
    """Until each node says that all copies are in sync and all nodes are ready."""
    urls = [f"http://{at}/cluster/health" for (_, door), at in running.doors.items() if door == "http"]
    give_up_s = time.monotonic() + wait_s
    while time.monotonic() < give_up_s:
        try:
            if all(httpx.get(url, timeout=WAIT_S).json()["status"] == "healthy" for url in urls):
                return
        except (httpx.HTTPError, ValueError):
            pass
        time.sleep(0.1)
    raise RuntimeError("the cluster is not whole")


def _state(at: str) -> dict[str, list[dict[str, object]]]:
    found: dict[str, list[dict[str, object]]] = httpx.get(f"http://{at}/cluster/state", timeout=WAIT_S).json()
    return found


def _partitions_of(running: RunningCluster, node: str, topic: str) -> list[int]:
    known = AdminClient({"bootstrap.servers": kafka_of(running)}).list_topics(topic, timeout=WAIT_S)
    ports = {broker.id: broker.port for broker in known.brokers.values()}
    port = int(running.doors[node, "kafka"].rpartition(":")[2])
    partitions = known.topics[topic].partitions.values()
    return [partition.id for partition in partitions if ports.get(partition.leader) == port]
