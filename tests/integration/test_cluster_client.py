"""Our own client and three real nodes: whoever dies, each message is stored once, and consumers go on."""

import subprocess
import sys
import threading
from collections import Counter

import pytest

from goqueue.client import GoQueue
from tests.integration.running_cluster import RunningCluster
from tests.integration.test_cluster_admin import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
COUNT = 600


def test_producers_store_once_and_consumers_go_on_while_each_node_is_killed(
    all_three: RunningCluster,
) -> None:
    topic = "through-deaths"
    read: Counter[str] = Counter()
    lost: list[int] = []
    with GoQueue(",".join(all_three.http), retry_for_s=60) as queue:
        queue.topics.create(topic, partitions=6)

        def consume() -> None:
            with queue.consumer(topic, group="mourners", limit=20, visibility=60) as consumer:
                for message in consumer:
                    read[str(message.text)] += 1
                    message.ack(wait=True)
                    if len(read) == COUNT:
                        break
                lost.append(consumer.lost_count)

        reader = threading.Thread(target=consume)
        reader.start()
        futures = []
        with queue.producer(batch_count=10, linger_ms=1) as producer:
            for number in range(COUNT):
                futures.append(producer.send(topic, f"m{number}"))
                if number % (COUNT // 3) == COUNT // 6:
                    producer.flush()
                    name = f"node-{number * 3 // COUNT + 1}"
                    all_three.child(name).kill()
                    killed = name
                elif number % (COUNT // 3) == COUNT // 3 - 1:
                    producer.flush()
                    all_three.wait_for(f"{killed}   ready")
        placed = [future.result() for future in futures]
        assert len({(place.partition, place.offset) for place in placed}) == COUNT
        reader.join(90)
        assert len(read) == COUNT, "all were read"
        stored = [m.text for number in range(6) for m in queue.read(topic, partition=number)]
        assert sorted(stored) == sorted(f"m{number}" for number in range(COUNT)), "each once"
        again = [value for value, times in read.items() if times > 1]
        assert len(again) <= 60, "what was out and not acknowledged may come again, and nothing else"
        print(f"{len(again)} were delivered again")


def test_whoever_knows_one_node_that_dies_goes_on_with_the_others(all_three: RunningCluster) -> None:
    name = "node-2"
    at = {node: where for (node, door), where in all_three.doors.items() if door == "http"}
    others = [at[node] for node in sorted(at) if node != name]
    with GoQueue([at[name], *others], retry_for_s=30) as queue:
        queue.topics.create("going-on", partitions=3)
        queue.publish("going-on", "before")
        all_three.child(name).kill()
        assert "going-on" in queue.topics.list()
        placed = queue.publish("going-on", "after")
        assert placed.offset >= 0
        assert queue.topics.describe("going-on").total_messages == 2
    all_three.wait_for(f"{name}   ready")


def test_the_command_line_takes_several_nodes_and_asks_one_that_answers(all_three: RunningCluster) -> None:
    servers = ",".join(["127.0.0.1:1", *all_three.http])

    def cli(*words: str) -> str:
        command = [sys.executable, "-m", "goqueue.cli.main", "--server", servers, *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    cli("topic", "create", "by-hand", "-p", "2")
    cli("produce", "by-hand", "-m", "tea", "-p", "1")
    assert "tea" in cli("consume", "by-hand", "-p", "1")
    with GoQueue(all_three.http) as queue:
        wait_until(lambda: queue.admin.cluster_health().status == "healthy")
    assert "healthy: " in cli("cluster", "state")
    assert "safe up to 1" in cli("cluster", "partition", "by-hand", "1")
    assert {"node-1", "node-2", "node-3"} <= set(cli("cluster", "nodes").split())
    cli("topic", "delete", "by-hand", "--force")
