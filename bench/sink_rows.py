"""What an epoch of an exactly-once sink costs: CPU and bytes a row, and how long readers stand still."""

import threading
import time
from pathlib import Path

import httpx

from bench.kafka_rows import create_topic
from bench.measured import Row, measuring, reported
from bench.raw_client import batch_of
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.messages import Lane
from goqueue.records.entries import encode_entry
from tests.integration.running_broker import RunningBroker

LAKE = TopicName("lake")
PARTITIONS = 4
TASKS = 16
BATCH_ROWS = 3_125
ROW = b"x" * 100
PATIENCE_S = 60


def epochs(broker: RunningBroker, *, rows: int = 1_000_000, rounds: int = 6) -> list[Row]:
    """Epochs of so many rows over four partitions, staged by 16 tasks; the least of some rounds."""
    create_topic(broker, LAKE, PARTITIONS)
    stage = _stage_of(rows // TASKS // PARTITIONS)
    staging_s, commit_s, written, taken_s, held_ms, half_ms = [], [], [], [], [], []
    with httpx.Client(base_url=broker.http, timeout=PATIENCE_S) as client:
        generation = client.post("/sinks/bench/generations").raise_for_status().json()["generation"]
        for epoch in range(rounds):
            before_bytes, began_s = _written_bytes(broker), time.perf_counter()
            with measuring(broker) as staging:
                for task in range(TASKS):
                    query = {"epoch": epoch, "stage": f"task-{task}", "generation": generation}
                    client.post("/sinks/bench/stages", params=query, content=stage).raise_for_status()
            body = {"epoch": epoch, "generation": generation, "stages": [f"task-{n}" for n in range(TASKS)]}
            # Whoever looks on costs the broker CPU, so that only every other epoch is watched.
            watch = _Watch(broker) if epoch % 2 else None
            with measuring(broker) as committing:
                told = client.post("/sinks/bench/commits", json=body).raise_for_status().json()
            assert told["messages"] == rows, told
            taken_s.append(time.perf_counter() - began_s)
            written.append((_written_bytes(broker) - before_bytes) / rows)
            staging_s.append(staging.cpu_s)
            if watch is None:
                commit_s.append(committing.cpu_s)
            else:
                held, half = watch.end()
                held_ms.append(held)
                half_ms.append(half)
    what = f"an epoch of {rows:,} rows of 100 bytes over {PARTITIONS} partitions"
    return [
        reported(f"{what}: broker CPU a row, staging", min(staging_s) / rows * 1e9, "ns"),
        reported("the same, its commit", min(commit_s) / rows * 1e9, "ns"),
        reported("the same: bytes written to the disk a row", min(written), "bytes"),
        reported("the same: readers of committed messages stand still", min(held_ms), "ms"),
        reported("the same: it is seen by half", min(half_ms), "ms"),
        reported("the same: from its first stage to its commit", min(taken_s) * 1e3, "ms"),
    ]


def small_epochs(broker: RunningBroker, *, count: int = 300) -> list[Row]:
    """Epochs of one row in each partition: what an epoch costs by itself."""
    create_topic(broker, "drops", PARTITIONS)
    stage = b"".join(
        encode_entry(TopicPartition(TopicName("drops"), number), Lane.NORMAL, memoryview(batch_of(1, ROW)))
        for number in range(PARTITIONS)
    )
    with httpx.Client(base_url=broker.http, timeout=PATIENCE_S) as client:
        generation = client.post("/sinks/small/generations").raise_for_status().json()["generation"]

        def commit(epoch: int) -> None:
            query = {"epoch": epoch, "stage": "a", "generation": generation}
            client.post("/sinks/small/stages", params=query, content=stage).raise_for_status()
            body = {"epoch": epoch, "generation": generation, "stages": ["a"]}
            client.post("/sinks/small/commits", json=body).raise_for_status()

        for epoch in range(20):
            commit(epoch)
        with measuring(broker) as spent:
            for epoch in range(20, 20 + count):
                commit(epoch)
    return [
        reported("an epoch of 4 rows, staged and committed: broker CPU", spent.cpu_s / count * 1e6, "µs"),
        reported("the same: time", spent.wall_s / count * 1e3, "ms"),
    ]


def _stage_of(rows_each: int) -> bytes:
    """What one task writes: some batches for each partition."""
    batch = memoryview(batch_of(BATCH_ROWS, ROW))
    assert rows_each % BATCH_ROWS == 0, f"{rows_each} rows are no whole number of batches"
    return b"".join(
        encode_entry(TopicPartition(LAKE, number), Lane.NORMAL, batch)
        for _ in range(rows_each // BATCH_ROWS)
        for number in range(PARTITIONS)
    )


def _written_bytes(broker: RunningBroker) -> int:
    told = Path(f"/proc/{broker.process.pid}/io").read_text(encoding="ascii")
    return int(dict(line.split(": ") for line in told.splitlines())["write_bytes"])


class _Watch:
    """Publishes single messages beside an epoch, and looks when readers of committed messages see them."""

    def __init__(self, broker: RunningBroker) -> None:
        self._broker = broker
        self._is_over = False
        self._held_ms = 0.0
        """How long a message that was acknowledged was not seen, at the longest."""
        self._grown: list[float] = []
        """When a committed end was seen to grow by more than those."""
        self._has_begun = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self._thread.start()
        self._has_begun.wait(PATIENCE_S)

    def end(self) -> tuple[float, float]:
        """For how long readers stood still, and for how long some of the rows were seen and others not."""
        time.sleep(0.2)
        self._is_over = True
        self._thread.join()
        return self._held_ms, (self._grown[-1] - self._grown[0]) * 1e3 if self._grown else 0.0

    def _look(self) -> None:
        message = memoryview(batch_of(1, ROW))
        since: dict[int, tuple[int, float]] = {}
        ends: dict[int, int] = {}
        with httpx.Client(base_url=self._broker.http, timeout=PATIENCE_S) as client:
            while not self._is_over:
                for number in range(PARTITIONS):
                    if number not in since:
                        entry = encode_entry(TopicPartition(LAKE, number), Lane.NORMAL, message)
                        placed = client.post("/batches", content=entry).raise_for_status().json()["placed"]
                        since[number] = placed[0]["base_offset"], time.perf_counter()
                told = client.post("/offsets", json={"topics": [LAKE]}).raise_for_status().json()
                for number in range(PARTITIONS):
                    self._note(number, told["topics"][LAKE][str(number)]["end"], since, ends)
                self._has_begun.set()

    def _note(self, number: int, end: int, since: dict[int, tuple[int, float]], ends: dict[int, int]) -> None:
        now_s = time.perf_counter()
        if end > ends.get(number, end) + 1:
            self._grown.append(now_s)
        ends[number] = end
        offset, sent_s = since[number]
        self._held_ms = max(self._held_ms, (now_s - sent_s) * 1e3)
        if end > offset:
            del since[number]
