"""Three real nodes: delayed messages come once and not early, whoever keeps them, leads, and is killed."""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from confluent_kafka import Producer

from tests.integration.running_cluster import RunningCluster, cluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]
NODES = ("node-1", "node-2", "node-3")
PARTITIONS = 6
RETRIED = {503, 504}
EARLY_S = 0.002
"""Times are told in milliseconds."""


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    with cluster(tmp_path_factory.mktemp("cluster") / "c", "--nodes=3") as running:
        running.start()
        yield running
        assert running.stop() == 0


def ask(three: RunningCluster, node: str, method: str, path: str, body: Any = None) -> Any:
    """What a node answers in the end; a node that is away, or has nobody to ask, is asked again."""
    deadline_s = time.monotonic() + 40
    while True:
        try:
            reply = httpx.request(method, f"http://{three.doors[node, 'http']}{path}", json=body, timeout=20)
            if reply.status_code not in RETRIED:
                assert reply.status_code < 300, reply.text
                return reply.json()
        except httpx.HTTPError:
            pass
        assert time.monotonic() < deadline_s, f"{node} never answered {method} {path}"
        time.sleep(0.05)


def create(three: RunningCluster, topic: str) -> None:
    ask(three, "node-1", "POST", "/topics", {"name": topic, "partitions": PARTITIONS})


def delayed(value: str, partition: int, seconds: float) -> dict[str, Any]:
    return {"value": value, "partition": partition, "delay": f"{int(seconds * 1000)}ms"}


def read(three: RunningCluster, topic: str) -> list[dict[str, Any]]:
    found = []
    for number in range(PARTITIONS):
        path = f"/topics/{topic}/partitions/{number}/messages?limit=10000"
        found += ask(three, "node-1", "GET", path)["messages"]
    return found


def until_there(three: RunningCluster, topic: str, wanted: set[str], seconds: float) -> list[dict[str, Any]]:
    deadline_s = time.monotonic() + seconds
    while True:
        found = read(three, topic)
        if wanted <= {message["value"] for message in found}:
            return found
        missing = len(wanted - {message["value"] for message in found})
        assert time.monotonic() < deadline_s, f"{missing} messages have not come"
        time.sleep(0.1)


def test_any_node_takes_delayed_messages_shows_moves_and_cancels_them(three: RunningCluster) -> None:
    create(three, "orders")
    begun_s = time.time()
    for turn, node in enumerate(NODES):
        messages = [delayed(f"{node}-{number}", number, 1.5) for number in range(PARTITIONS)]
        messages += [delayed(f"far-{node}", turn, 3_600), delayed(f"moved-{node}", turn, 3_600)]
        answer = ask(three, node, "POST", "/topics/orders/messages", {"messages": messages})
        assert all(result.get("delayed") for result in answer["results"]), answer
        far, moved = answer["results"][-2:]
        other = NODES[(turn + 1) % 3]
        listed = ask(three, other, "GET", "/topics/orders/delayed?limit=1000")
        assert far["offset"] in [each["offset"] for each in listed["messages"]], listed
        ask(three, other, "DELETE", f"/topics/orders/delayed/{far['partition']}/{far['offset']}")
        path = f"/topics/orders/delayed/{moved['partition']}/{moved['offset']}/move"
        ask(three, NODES[(turn + 2) % 3], "POST", path, {"delay": "1500ms"})
    assert ask(three, "node-2", "GET", "/delay/stats")["total_pending"] <= 3 * (PARTITIONS + 1)
    wanted = {f"{node}-{number}" for node in NODES for number in range(PARTITIONS)}
    wanted |= {f"moved-{node}" for node in NODES}
    found = until_there(three, "orders", wanted, 20)
    assert Counter(message["value"] for message in found) == dict.fromkeys(wanted, 1)
    assert time.time() - begun_s > 1.4


def test_kafkas_producers_delay_messages_also_in_transactions(three: RunningCluster) -> None:
    create(three, "sent")
    refused: list[object] = []
    nodes = {"bootstrap.servers": ",".join(three.kafka)}

    def send(producer: Producer, name: str, count: int) -> set[str]:
        """Every third message is to come later."""
        for number in range(count):
            headers: dict[str, str | bytes | None] = {"goqueue-delay-ms": b"500"} if number % 3 == 0 else {}
            producer.produce(
                "sent",
                value=f"{name}{number}",
                partition=number % PARTITIONS,
                headers=headers,
                on_delivery=lambda error, _: refused.append(error) if error else None,
            )
        assert producer.flush(30) == 0
        return {f"{name}{number}" for number in range(count)}

    wanted = send(Producer({**nodes, "enable.idempotence": True}), "plain", 60)
    writer = Producer({**nodes, "transactional.id": "writer"})
    writer.init_transactions(30)
    for name, is_committed in (("aborted", False), ("committed", True)):
        writer.begin_transaction()
        sent = send(writer, name, 30)
        if is_committed:
            writer.commit_transaction(30)
            wanted |= sent
        else:
            writer.abort_transaction(30)
    assert not refused
    found = until_there(three, "sent", wanted, 20)
    assert Counter(message["value"] for message in found) == dict.fromkeys(wanted, 1)


def test_a_schedule_made_at_one_node_is_seen_at_all_and_goes_on(three: RunningCluster) -> None:
    create(three, "ticks")
    message = {"value": "tick", "key": "k"}
    made = {"name": "often", "cron": "* * * * * *", "message": message}
    ask(three, "node-2", "POST", "/topics/ticks/schedules", made)
    for node in NODES:
        listed = ask(three, node, "GET", "/topics/ticks/schedules")["schedules"]
        assert [each["name"] for each in listed] == ["often"]
    deadline_s = time.monotonic() + 20
    while len(read(three, "ticks")) < 2:
        assert time.monotonic() < deadline_s
        time.sleep(0.1)
    ask(three, "node-3", "DELETE", "/topics/ticks/schedules/often")


def test_each_node_is_killed_and_every_delayed_message_comes_once_and_not_early(
    three: RunningCluster,
) -> None:
    create(three, "kept")
    due_s: dict[str, float] = {}
    count = 0

    def publish(node: str, seconds: float) -> None:
        """Publish to all partitions; a refusal, or no answer, means another value next time."""
        nonlocal count
        messages = []
        for number in range(PARTITIONS):
            count += 1
            messages.append(delayed(f"v{count}", number, seconds))
        try:
            sent_s = time.time()
            reply = httpx.post(
                f"http://{three.doors[node, 'http']}/topics/kept/messages",
                json={"messages": messages},
                timeout=20,
            )
        except httpx.HTTPError:
            return
        if reply.status_code != 200:
            return
        for message, result in zip(messages, reply.json()["results"], strict=True):
            if result.get("delayed"):
                due_s[message["value"]] = sent_s + seconds

    seen_s: dict[str, float] = {}
    is_over = threading.Event()

    def watch() -> None:
        """When each message was there first."""
        while not is_over.wait(0.2):
            found = read(three, "kept")
            now_s = time.time()
            for message in found:
                seen_s.setdefault(message["value"], now_s)

    with ThreadPoolExecutor(4) as pool:
        watching = pool.submit(watch)
        for victim in NODES:
            others = [node for node in NODES if node != victim]
            list(pool.map(lambda turn: publish(NODES[turn % 3], 1 + turn % 5), range(15)))
            three.child(victim).kill()
            killed_s = time.monotonic()
            list(pool.map(lambda turn, nodes=others: publish(nodes[turn % 2], 1 + turn % 4), range(20)))
            print(f"{victim} killed; 20 publishes took {time.monotonic() - killed_s:.1f} s")
            three.wait_for(f"{victim}   ready")
        is_over.set()
        watching.result()
    assert len(due_s) > 3 * 15 * PARTITIONS // 2
    found = until_there(three, "kept", set(due_s), 30)
    counts = Counter(message["value"] for message in found)
    assert {value: times for value, times in counts.items() if times > 1} == {}
    # By when they were sent, which is before they were stored, and by the end of the look that found them.
    early = {value: due_s[value] - seen_s[value] for value in seen_s.keys() & due_s.keys()}
    assert {value: by for value, by in early.items() if by > EARLY_S} == {}
    assert len(early) > len(due_s) // 4, "many were seen to come"
    print(f"{len(due_s)} acknowledged of {count}, {len(counts)} came")
