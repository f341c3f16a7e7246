"""The routes of bulk readers and writers: frames, offsets, splits, batches, and exactly-once sinks."""

import threading
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from goqueue.broker.topics.verbs import delete_records
from goqueue.broker.write.publish import publish
from goqueue.edge.http.config import HttpConfig
from goqueue.model.commands import Publish
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.messages import Lane, Message
from goqueue.model.settings import BrokerConfig, TopicSettings
from goqueue.model.topics import DeleteRecords
from goqueue.records.batch import encode, open_batch
from goqueue.records.entries import encode_entry
from goqueue.records.frame import scan_frames
from goqueue.records.layout import stamp_producer
from tests.doors.http.running_door import RunningDoor

FRAMES = "/topics/orders/partitions/0/frames"
SPLITS = "/topics/orders/partitions/0/splits"
NO_STOP = 2**63 - 1
FIRST_MS = 1_700_000_000_000


def batch(*values: str) -> memoryview:
    [(body, _)] = encode([Message(value.encode()) for value in values], now_ms=FIRST_MS)
    return body


def entry(*values: str, topic: str = "orders", partition: int = 0, lane: int = Lane.NORMAL) -> bytes:
    return encode_entry(TopicPartition(TopicName(topic), partition), lane, batch(*values))


def store(running: RunningDoor, count: int, *, batches: int = 1) -> None:
    """Put numbered messages into partition 0, a second of their time apart, in batches of `count`."""
    for first in range(0, count * batches, count):
        messages = [
            Message(b"%d" % number, partition=0, timestamp_ms=FIRST_MS + number * 1_000)
            for number in range(first, first + count)
        ]
        running.run(publish(running.broker, Publish(topic=TopicName("orders"), messages=messages)))


def values_in(frames: bytes) -> list[str]:
    """The messages of frames, in order, once every checksum of theirs has been looked at."""
    data = memoryview(bytearray(frames))
    scan = scan_frames(data, stop_offset=NO_STOP)
    assert (scan.problem, scan.consumed_bytes) == ("", len(data))
    bodies = ((data[frame.body_start : frame.body_end], frame.lane) for frame in scan.frames)
    return [(m.value or b"").decode() for body, lane in bodies for m in open_batch(body, lane)]


def offset_of(reply: httpx.Response, which: str) -> int:
    return int(reply.headers[f"x-goqueue-{which}-offset"])


def values_of(client: httpx.Client, partition: int = 0) -> list[str]:
    return values_in(client.get(f"/topics/orders/partitions/{partition}/frames").content)


def refused(reply: httpx.Response) -> tuple[int, str]:
    return reply.status_code, reply.json()["code"]


# Frames.


def test_frames_are_the_bytes_of_the_log_file(tmp_path: Path, running: RunningDoor, orders: str) -> None:
    store(running, 10, batches=5)

    reply = running.client.get(FRAMES)

    assert reply.headers["content-type"] == "application/octet-stream"
    assert reply.content == (tmp_path / "logs/orders/0" / f"{0:020d}.log").read_bytes()
    assert values_in(reply.content) == [str(number) for number in range(50)]
    assert [offset_of(reply, which) for which in ("next", "start", "end")] == [50, 0, 50]


def test_frames_begin_with_the_one_that_holds_the_offset(running: RunningDoor, orders: str) -> None:
    store(running, 10, batches=5)

    reply = running.client.get(FRAMES, params={"offset": 25})

    assert values_in(reply.content)[0] == "20"
    assert offset_of(reply, "next") == 50


@pytest.mark.parametrize("prefix", ["", "/v1"])
@pytest.mark.parametrize("max_bytes", [1, 400, 1_000_000])
def test_the_next_offset_leads_through_the_whole_log(
    running: RunningDoor, orders: str, prefix: str, max_bytes: int
) -> None:
    store(running, 10, batches=5)
    seen: list[str] = []
    offset = 0

    while True:
        reply = running.client.get(prefix + FRAMES, params={"offset": offset, "max_bytes": max_bytes})
        if not reply.content:
            break
        seen += values_in(reply.content)
        offset = offset_of(reply, "next")

    assert seen == [str(number) for number in range(50)]


def test_one_reply_goes_over_the_border_of_segments(tmp_path: Path) -> None:
    settings = BrokerConfig(topic_defaults=TopicSettings(segment_bytes=4096))
    with RunningDoor(tmp_path, broker_config=settings) as running:
        running.client.post("/topics", json={"name": "orders", "num_partitions": 1})
        store(running, 50, batches=20)
        assert len(list((tmp_path / "logs/orders/0").glob("*.log"))) > 3

        assert values_of(running.client) == [str(number) for number in range(1000)]


def test_an_empty_log_gives_no_frames(client: httpx.Client, orders: str) -> None:
    reply = client.get(FRAMES)

    assert (reply.status_code, reply.content, offset_of(reply, "next")) == (200, b"", 0)


def test_a_wait_for_frames_ends_when_one_comes(running: RunningDoor, orders: str) -> None:
    replies: list[httpx.Response] = []
    reader = after_waiting(running, lambda: replies.append(running.client.get(FRAMES + "?wait=20s")))

    store(running, 3)
    reader.join()

    assert values_in(replies[0].content) == ["0", "1", "2"]


def test_a_wait_for_frames_that_never_come_ends_empty(client: httpx.Client, orders: str) -> None:
    reply = client.get(FRAMES, params={"wait": "20ms"})

    assert (reply.status_code, reply.content) == (200, b"")


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        (FRAMES + "?offset=11", 400, "offset_out_of_range"),
        (FRAMES + "?offset=2", 400, "offset_out_of_range"),
        (FRAMES + "?offset=-1", 400, "invalid"),
        (FRAMES + "?wait=soon", 400, "invalid"),
        ("/topics/orders/partitions/9/frames", 404, "partition_not_found"),
        ("/topics/missing/partitions/0/frames", 404, "topic_not_found"),
        ("/topics/__transactions/partitions/0/frames", 404, "topic_not_found"),
    ],
)
def test_frames_that_cannot_be_had_are_refused(
    running: RunningDoor, orders: str, path: str, status: int, code: str
) -> None:
    store(running, 10)
    running.run(
        delete_records(
            running.broker, DeleteRecords(target=TopicPartition(TopicName("orders"), 0), before_offset=5)
        )
    )

    assert refused(running.client.get(path)) == (status, code)


def test_a_corrupt_frame_is_named_and_not_served(tmp_path: Path, running: RunningDoor, orders: str) -> None:
    store(running, 10, batches=2)
    log_file = tmp_path / "logs/orders/0" / f"{0:020d}.log"
    spoilt = bytearray(log_file.read_bytes())
    spoilt[-3] ^= 1
    log_file.write_bytes(spoilt)

    good = running.client.get(FRAMES)
    bad = running.client.get(FRAMES, params={"offset": offset_of(good, "next")})

    assert values_in(good.content) == [str(number) for number in range(10)]
    assert refused(bad) == (500, "corrupt")
    assert bad.json()["offset"] == 10


# Offsets and splits.


def test_offsets_tell_where_partitions_begin_and_end(running: RunningDoor, orders: str) -> None:
    store(running, 10)
    running.run(
        delete_records(
            running.broker, DeleteRecords(target=TopicPartition(TopicName("orders"), 0), before_offset=4)
        )
    )

    told = running.client.post("/offsets", json={"topics": ["orders"]}).json()["topics"]

    assert list(told) == ["orders"]
    assert (told["orders"]["0"]["start"], told["orders"]["0"]["end"]) == (4, 10)
    assert told["orders"]["0"]["size_bytes"] > 0
    assert told["orders"]["2"] == {"start": 0, "end": 0, "size_bytes": 0}


def test_a_pattern_stands_for_whole_names_of_clients_topics(client: httpx.Client, orders: str) -> None:
    client.post("/topics", json={"name": "orders-2"})

    def matching(pattern: str) -> list[str]:
        return list(client.post("/offsets", json={"pattern": pattern}).json()["topics"])

    assert matching("orders") == ["orders"]
    assert matching("(orders|clicks).*") == ["orders", "orders-2"]
    assert matching(".*") == ["orders", "orders-2"]
    assert matching("none") == []


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"topics": ["orders", "missing"]}, 404, "topic_not_found"),
        ({}, 400, "invalid"),
        ({"pattern": "("}, 400, "invalid"),
        ({"pattern": "(a+)+b"}, 400, "invalid"),
        ({"pattern": ".*.*.*.*x"}, 400, "invalid"),
        ({"topics": ["orders"], "past": {"orders": {"one": 1}}}, 400, "invalid"),
        ({"topics": ["orders"], "past": {"orders": {"0": 1}}, "wait": "soon"}, 400, "invalid"),
        ({"topics": "orders"}, 400, "invalid"),
    ],
)
def test_a_senseless_question_for_offsets_is_refused(
    client: httpx.Client, orders: str, body: object, status: int, code: str
) -> None:
    assert refused(client.post("/offsets", json=body)) == (status, code)


def test_offsets_can_be_waited_for(running: RunningDoor, orders: str) -> None:
    past = {"orders": {"0": 0, "1": 0, "2": 0}}
    replies: list[httpx.Response] = []

    def wait() -> None:
        asked = {"pattern": "orders", "past": past, "wait": "20s"}
        replies.append(running.client.post("/offsets", json=asked))

    reader = after_waiting(running, wait)
    store(running, 3)
    reader.join()

    assert replies[0].json()["topics"]["orders"]["0"]["end"] == 3


@pytest.mark.parametrize("past", [{"orders": {"0": 2, "1": 0, "2": 0}}, {"orders": {"0": 3, "1": 0}}])
def test_a_wait_is_over_at_once_when_there_is_more_or_a_partition_is_new(
    running: RunningDoor, orders: str, past: object
) -> None:
    store(running, 3)

    told = running.client.post("/offsets", json={"topics": ["orders"], "past": past, "wait": "20s"})

    assert told.elapsed.total_seconds() < 10
    assert told.json()["topics"]["orders"]["0"]["end"] == 3


def test_a_wait_for_offsets_that_never_come_ends_with_what_there_is(
    client: httpx.Client, orders: str
) -> None:
    past = {"orders": {"0": 0, "1": 0, "2": 0}}

    told = client.post("/offsets", json={"topics": ["orders"], "past": past, "wait": "20ms"})

    assert told.json()["topics"]["orders"]["0"]["end"] == 0


@pytest.mark.parametrize(("second", "offset"), [(-5, 0), (0, 0), (7, 7), (9, 9), (10, 10)])
def test_a_time_leads_to_the_first_offset_of_it_or_to_the_end(
    running: RunningDoor, orders: str, second: int, offset: int
) -> None:
    store(running, 5, batches=2)

    asked = {"topics": ["orders"], "time_ms": FIRST_MS + second * 1_000}
    told = running.client.post("/offsets/at", json=asked)

    assert told.json() == {"topics": {"orders": {"0": offset, "1": 0, "2": 0}}}


def test_splits_are_batch_borders_between_the_ends_of_a_range(tmp_path: Path) -> None:
    settings = BrokerConfig(topic_defaults=TopicSettings(segment_bytes=16 * 1024))
    with RunningDoor(tmp_path, broker_config=settings) as running:
        running.client.post("/topics", json={"name": "orders", "num_partitions": 1})
        store(running, 50, batches=200)

        offsets = running.client.get(SPLITS + "?from=15&until=9990&bytes=20000").json()["offsets"]

    assert offsets == sorted(set(offsets))
    assert (offsets[0], offsets[-1]) == (15, 9990)
    assert all(offset % 50 == 0 for offset in offsets[1:-1])
    assert 3 <= len(offsets) <= 20


@pytest.mark.parametrize(
    ("query", "offsets"),
    [
        ("?from=0&until=50", [0, 50]),
        ("?from=7&until=7", [7]),
        ("?from=0&until=1000&bytes=100000000", [0, 1000]),
        ("?from=3&until=8&bytes=1", [3, 8]),
    ],
)
def test_a_small_range_is_not_cut(running: RunningDoor, orders: str, query: str, offsets: list[int]) -> None:
    store(running, 10, batches=5)

    assert running.client.get(SPLITS + query).json()["offsets"] == offsets


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (SPLITS + "?from=8&until=3", 400),
        (SPLITS + "?from=8", 400),
        (SPLITS + "?from=0&until=3&bytes=0", 400),
        ("/topics/missing/partitions/0/splits?from=0&until=3", 404),
    ],
)
def test_a_senseless_split_is_refused(client: httpx.Client, orders: str, path: str, status: int) -> None:
    assert client.get(path).status_code == status


# Batches.


@pytest.mark.parametrize("acks", ["all", "leader", "none"])
def test_batches_go_to_many_partitions_in_one_request(client: httpx.Client, orders: str, acks: str) -> None:
    body = entry("a", "b") + entry("c", partition=2, lane=Lane.HIGH) + entry("d")

    reply = client.post(f"/batches?acks={acks}", content=body)

    assert reply.json() == {
        "messages": 4,
        "placed": [
            {"topic": "orders", "partition": 0, "base_offset": 0, "count": 2},
            {"topic": "orders", "partition": 2, "base_offset": 0, "count": 1},
            {"topic": "orders", "partition": 0, "base_offset": 2, "count": 1},
        ],
    }
    assert values_of(client) == ["a", "b", "d"]
    found = client.get("/topics/orders/partitions/2/messages").json()["messages"]
    assert [(message["value"], message["priority"]) for message in found] == [("c", "high")]


def with_wrong_crc() -> bytes:
    spoilt = bytearray(entry("bad"))
    spoilt[-2] ^= 1
    return bytes(spoilt)


def numbered(*values: str, sequence: int, is_transactional: bool = False) -> bytes:
    body = batch(*values)
    stamp_producer(
        body, producer_id=5, producer_epoch=0, base_sequence=sequence, is_transactional=is_transactional
    )
    return encode_entry(TopicPartition(TopicName("orders"), 0), Lane.NORMAL, body)


BAD_ENTRIES: list[tuple[bytes, int, str]] = [
    (entry("bad")[:-1], 400, "invalid_batch"),
    (b"\x00", 400, "invalid_batch"),
    (with_wrong_crc(), 400, "wrong_checksum"),
    (numbered("bad", sequence=0, is_transactional=True), 400, "invalid_record"),
    (entry("bad", lane=5), 400, "invalid_batch"),
    (entry("bad", topic="missing"), 404, "topic_not_found"),
    (entry("bad", partition=3), 404, "partition_not_found"),
    (entry("bad", partition=-1), 404, "partition_not_found"),
    (entry("bad", topic="__transactions"), 403, "internal_topic"),
    (b"\x00\x02\xff\xfe" + entry("bad")[8:], 400, "invalid_batch"),
    (
        encode_entry(
            TopicPartition(TopicName("orders"), 0), 2, memoryview(bytes(batch("a")) + bytes(batch("b")))
        ),
        400,
        "invalid_batch",
    ),
]


@pytest.mark.parametrize(("bad", "status", "code"), BAD_ENTRIES)
def test_one_bad_entry_refuses_the_whole_request(
    client: httpx.Client, orders: str, bad: bytes, status: int, code: str
) -> None:
    assert refused(client.post("/batches", content=entry("good") + bad)) == (status, code)
    assert values_of(client) == []


def test_a_numbered_batch_that_comes_again_is_told_by_its_first_place(
    client: httpx.Client, orders: str
) -> None:
    first, second = numbered("a", "b", sequence=0), numbered("c", sequence=2)

    places = [
        [place["base_offset"] for place in client.post("/batches", content=content).json()["placed"]]
        for content in (first, first + second, second)
    ]

    assert places == [[0], [0, 2], [2]]
    assert values_of(client) == ["a", "b", "c"]


def test_a_gap_in_the_numbers_of_a_producer_is_refused(client: httpx.Client, orders: str) -> None:
    client.post("/batches", content=numbered("a", sequence=0))

    assert refused(client.post("/batches", content=numbered("c", sequence=2))) == (400, "out_of_sequence")


def test_what_is_staged_belongs_to_no_producer(client: httpx.Client, orders: str) -> None:
    client.post("/sinks/lake/generations")
    stage = client.post("/sinks/lake/stages?epoch=0&stage=a&generation=1", content=numbered("a", sequence=0))

    assert refused(stage) == (400, "invalid_record")


def test_a_request_needs_an_entry_and_acks_that_exist(client: httpx.Client, orders: str) -> None:
    assert refused(client.post("/batches", content=b"")) == (400, "invalid_batch")
    assert refused(client.post("/batches?acks=some", content=entry("x"))) == (400, "invalid")


def test_what_is_too_large_is_refused(tmp_path: Path) -> None:
    with RunningDoor(tmp_path, HttpConfig(body_bytes=5_000)) as running:
        client = running.client
        client.post("/topics", json={"name": "orders", "settings": {"max.message.bytes": 1_000}})
        generation = take_generation(client)
        for path in ("/batches", stages_path(0, "a", generation)):
            assert refused(client.post(path, content=entry("x" * 2_000))) == (413, "message_too_large")
            assert refused(client.post(path, content=b"x" * 5_001)) == (413, "request_too_large")
            chunks = (b"x" * 1_000 for _ in range(6))
            assert refused(client.post(path, content=chunks)) == (413, "request_too_large")
        assert values_of(client) == []


# Sinks.


def take_generation(client: httpx.Client, sink: str = "lake") -> int:
    reply = client.post(f"/sinks/{sink}/generations")
    assert reply.status_code == 201, reply.text
    return int(reply.json()["generation"])


def stages_path(epoch: int, stage: str, generation: int, sink: str = "lake") -> str:
    return f"/sinks/{sink}/stages?epoch={epoch}&stage={stage}&generation={generation}"


def settle(
    client: httpx.Client, verb: str, epoch: int, generation: int, *stages: str, sink: str = "lake"
) -> httpx.Response:
    body = {"epoch": epoch, "generation": generation, "stages": list(stages)}
    return client.post(f"/sinks/{sink}/{verb}", json=body)


@pytest.mark.parametrize("prefix", ["", "/v1"])
def test_an_epoch_goes_from_its_stages_into_the_log(client: httpx.Client, orders: str, prefix: str) -> None:
    told = client.post(f"{prefix}/sinks/lake/generations")
    first = {"sink": "lake", "generation": 1, "last_epoch": -1, "markers": False}
    assert (told.status_code, told.json()) == (201, first)
    body = entry("a", "b") + entry("c", partition=1)
    staged = client.post(prefix + stages_path(3, "task-0.1", 1), content=body)
    assert (staged.status_code, staged.json()["stage"], staged.json()["messages"]) == (201, "task-0.1", 3)
    client.post(prefix + stages_path(3, "task-1", 1), content=entry("d", lane=Lane.LOW))
    waiting = client.get(f"{prefix}/sinks/lake").json()
    assert [(stage["epoch"], stage["stage"]) for stage in waiting["stages"]] == [
        (3, "task-0.1"),
        (3, "task-1"),
    ]
    assert values_of(client) == []

    committed = settle(client, "commits", 3, 1, "task-0.1", "task-1")

    assert (committed.status_code, committed.json()) == (200, {"epoch": 3, "duplicate": False, "messages": 4})
    assert (values_of(client), values_of(client, 1)) == (["a", "b", "d"], ["c"])
    again = settle(client, "commits", 3, 1, "task-0.1", "task-1")
    assert (again.status_code, again.json()) == (200, {"epoch": 3, "duplicate": True, "messages": 0})
    assert client.get(f"{prefix}/sinks/lake").json() == {
        "sink": "lake",
        "generation": 1,
        "last_epoch": 3,
        "stages": [],
    }
    assert client.post(f"{prefix}/sinks/lake/generations").json()["last_epoch"] == 3


def test_a_run_keeps_its_generation_until_another_follows(client: httpx.Client, orders: str) -> None:
    def take(run: str, writer: str = "query") -> httpx.Response:
        return client.post("/sinks/lake/generations", params={"run": run, "writer": writer})

    taken = [take(run).json()["generation"] for run in ("a", "a", "b")]
    client.post(stages_path(0, "x", 2), content=entry("x"))
    settle(client, "commits", 0, 2, "x")

    assert taken == [1, 1, 2]
    assert (take("a").status_code, take("a").json()["code"]) == (409, "sink_fenced")
    other = take("c", writer="query of a new checkpoint")
    assert (other.status_code, other.json()["code"]) == (409, "sink_of_another")


def test_the_newest_generation_is_the_only_one_that_may_write(client: httpx.Client, orders: str) -> None:
    older = take_generation(client)
    client.post(stages_path(0, "a", older), content=entry("x"))
    newer = take_generation(client)

    assert newer > older
    for reply in (
        client.post(stages_path(0, "b", older), content=entry("x")),
        settle(client, "commits", 0, older, "a"),
        settle(client, "aborts", 0, older, "a"),
    ):
        assert refused(reply) == (409, "sink_fenced")
    assert values_of(client) == []


def test_an_abort_drops_what_is_not_committed(client: httpx.Client, orders: str) -> None:
    generation = take_generation(client)
    for stage in ("a", "b"):
        client.post(stages_path(0, stage, generation), content=entry(stage))

    assert settle(client, "aborts", 0, generation, "b", "c").json() == {"aborted": 1}
    assert refused(settle(client, "commits", 0, generation, "a", "b")) == (404, "stage_not_found")
    assert settle(client, "commits", 0, generation, "a").json()["messages"] == 1
    assert settle(client, "aborts", 0, generation, "a").json() == {"aborted": 0}
    assert values_of(client) == ["a"]


@pytest.mark.parametrize(("bad", "status", "code"), BAD_ENTRIES)
def test_a_bad_entry_is_not_staged(
    client: httpx.Client, orders: str, bad: bytes, status: int, code: str
) -> None:
    generation = take_generation(client)

    staged = client.post(stages_path(0, "a", generation), content=entry("good") + bad)

    assert refused(staged) == (status, code)
    assert client.get("/sinks/lake").json()["stages"] == []


def test_sinks_can_be_listed_and_forgotten(client: httpx.Client, orders: str) -> None:
    take_generation(client, "b")
    take_generation(client, "a")

    assert client.get("/sinks").json() == {"sinks": ["a", "b"]}
    assert client.delete("/sinks/a").json() == {"sink": "a", "deleted": True}
    assert client.get("/sinks").json() == {"sinks": ["b"]}
    assert refused(client.get("/sinks/a")) == (404, "sink_not_found")


def test_a_sink_that_took_no_generation_is_unknown(client: httpx.Client, orders: str) -> None:
    for reply in (
        client.post(stages_path(0, "a", 1), content=entry("x")),
        settle(client, "commits", 0, 1),
        settle(client, "aborts", 0, 1),
        client.get("/sinks/lake"),
        client.delete("/sinks/lake"),
    ):
        assert refused(reply) == (404, "sink_not_found")


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/sinks/a%20b/generations", "invalid_name"),
        ("/sinks/%2e%2e/generations", "invalid_name"),
        (f"/sinks/{'x' * 201}/generations", "invalid_name"),
        ("/sinks/lake/stages?epoch=0&stage=a%2Fb&generation=1", "invalid_name"),
        ("/sinks/lake/stages?epoch=0&stage=..&generation=1", "invalid_name"),
        ("/sinks/lake/stages?epoch=-1&stage=a&generation=1", "invalid"),
        ("/sinks/lake/stages?stage=a&generation=1", "invalid"),
        ("/sinks/lake/stages?epoch=0&generation=1", "invalid"),
        ("/sinks/lake/stages?epoch=0&stage=a", "invalid"),
        ("/sinks/lake/commits", "invalid"),
        ("/sinks/lake/aborts", "invalid"),
    ],
)
def test_senseless_names_and_bodies_are_refused(
    client: httpx.Client, orders: str, path: str, code: str
) -> None:
    take_generation(client)

    assert refused(client.post(path, content=entry("x"))) == (400, code)


def test_a_sink_survives_a_restart(tmp_path: Path) -> None:
    with RunningDoor(tmp_path) as running:
        running.client.post("/topics", json={"name": "orders", "num_partitions": 1})
        generation = take_generation(running.client)
        running.client.post(stages_path(0, "a", generation), content=entry("x"))
    with RunningDoor(tmp_path) as running:
        committed = settle(running.client, "commits", 0, generation, "a")
        assert committed.json() == {"epoch": 0, "duplicate": False, "messages": 1}
        assert values_of(running.client) == ["x"]


def after_waiting(running: RunningDoor, ask: Callable[[], None]) -> threading.Thread:
    """Ask from a thread of its own; returns when the broker holds the request as a waiting one."""
    reader = threading.Thread(target=ask)
    reader.start()
    waiting = threading.Event()
    while not waiting.wait(0.001):
        if running.broker.waiting_reads:
            waiting.set()
    return reader
