"""Consumer groups: CPU a commit, the journal's size after millions of them, waiting readers, a rebalance."""

import asyncio
import json
import math
import time
import urllib.request
from pathlib import Path
from struct import Struct
from typing import Any

from bench.kafka_rows import create_topic
from bench.measured import Row, Spent, at_most, measuring, reported, resident_mb
from bench.raw_client import RawClient, request
from tests.integration.running_broker import RunningBroker

OFFSET_COMMIT = 8
COMMIT_VERSION = 6
PARTITIONS = 100
Json = dict[str, Any]
_ROW = Struct(">iqih")


def commit_cpu(broker: RunningBroker, *, commits: int = 4_000) -> list[Row]:
    """Commits of 100 partitions each, from several connections, to one group or to one each.

    A client sends the next one when it has the reply, as most do, or many ahead of their replies.
    """
    create_topic(broker, "commits", PARTITIONS)
    rows = []
    for connections, groups, ahead in ((1, 1, 1), (1, 1, 20), (8, 1, 1), (32, 1, 1), (32, 32, 1)):
        spent = _commit(broker, connections, groups, ahead, commits)
        sent = "" if ahead == 1 else f", {ahead} sent ahead"
        rows.append(
            at_most(
                f"offset commits, 100 partitions a request, {connections} connections, {groups} groups"
                f"{sent}: broker CPU a request",
                spent.cpu_s / commits * 1e6,
                "µs",
                120 if groups > 1 else 150,
                f"{commits / spent.wall_s:,.0f} requests/s",
            )
        )
    return rows


def journal_size(broker: RunningBroker, folder: Path, *, partition_commits: int = 5_000_000) -> Row:
    """Partition commits to 1,000 partitions of one group, 100 a request, and what is left on the disk."""
    create_topic(broker, "many", 1000)
    journal = folder / "logs" / "__consumer_offsets"
    largest = 0
    with RawClient(broker.kafka) as client:
        requests = [
            commit_request("heavy", "many", range(first, first + PARTITIONS), offset=0)
            for first in range(0, 1000, PARTITIONS)
        ]
        for n in range(partition_commits // PARTITIONS):
            client.send(requests[n % len(requests)])
            client.receive()
            if not n % 1000:
                largest = max(largest, _size_of(journal))
    deadline = time.monotonic() + 30
    while (size := _size_of(journal)) > 8e6 and time.monotonic() < deadline:
        time.sleep(0.5)
    return at_most(
        f"`__consumer_offsets` after {partition_commits:,} partition commits to 1,000 partitions",
        size / 1e6,
        "MB",
        16,
        f"at most {largest / 1e6:,.0f} MB meanwhile",
    )


def idle_polls(broker: RunningBroker, *, count: int = 10_000, members: int = 100) -> list[Row]:
    """Polls of a shared group that wait for messages which do not come."""
    create_topic(broker, "idle", 1)
    joining = {"client_id": "idle", "topics": ["idle"], "mode": "shared", "session_timeout": "10m"}
    ids = [_post(broker, "/groups/idle/join", joining)["member_id"] for _ in range(members)]
    before_mb = resident_mb(broker)
    paths = [f"/groups/idle/poll?timeout=60s&member_id={ids[n % members]}" for n in range(count)]
    spent, waiting_mb = asyncio.run(_wait_idly(broker, paths))
    return [
        at_most(
            f"{count:,} idle HTTP long polls: resident memory",
            waiting_mb,
            "MB",
            200,
            f"{before_mb:.0f} MB before",
        ),
        at_most(f"{count:,} idle HTTP long polls: CPU of a core", spent.cpu_s / spent.wall_s * 100, "%", 2),
    ]


def rebalance(broker: RunningBroker, *, members: int = 100, partitions: int = 1_000) -> list[Row]:
    """A member joins a cooperative group, and the others let go of what it is to have."""
    create_topic(broker, "moves", partitions)
    joining = {"client_id": "mover", "topics": ["moves"], "session_timeout": "10m"}
    ids = [
        str(_post(broker, "/groups/movers/join/cooperative", joining)["member_id"]) for _ in range(members)
    ]
    _let_rest(broker, ids)
    before = _owned(broker, ids)
    with measuring(broker) as spent:
        newcomer = str(_post(broker, "/groups/movers/join/cooperative", joining)["member_id"])
        rounds = _let_rest(broker, [*ids, newcomer])
    after = _owned(broker, [*ids, newcomer])
    moved = sum(len(before[member] - after[member]) for member in ids)
    what = f"{members} members × {partitions:,} partitions, one joins, cooperative"
    return [
        at_most(
            f"{what}: time until all have settled", spent.wall_s, "s", 1, f"{rounds} rounds of heartbeats"
        ),
        at_most(
            f"{what}: partitions moved",
            moved,
            "partitions",
            math.ceil(partitions / (members + 1)),
            f"{len(after[newcomer])} to the newcomer; {spent.cpu_s * 1e3:.0f} ms of CPU",
        ),
    ]


def lag_of_many(broker: RunningBroker, *, partitions: int = 1_000) -> Row:
    """The lag of a group in many partitions, each with messages to read, never looked up before."""
    create_topic(broker, "behind", partitions)
    messages = [{"value": "x", "partition": n} for n in range(partitions)]
    _post(broker, "/topics/behind/messages", {"messages": messages})
    offsets = {"behind": {str(n): 0 for n in range(partitions)}}
    _post(broker, "/groups/behind/offsets", {"offsets": offsets})
    with measuring(broker) as first:
        lag = _get(broker, "/groups/behind/lag")
    if lag["total"] != partitions:
        raise RuntimeError(f"a lag of {lag['total']}")
    with measuring(broker) as second:
        _get(broker, "/groups/behind/lag")
    return reported(
        f"lag of a group in {partitions:,} partitions, asked for the first time",
        first.wall_s * 1e3,
        "ms",
        f"{second.wall_s * 1e3:.0f} ms when asked again",
    )


def commit_request(group: str, topic: str, partitions: range, *, offset: int) -> bytes:
    """OffsetCommit of a reader that is no member."""
    rows = b"".join(_ROW.pack(partition, offset, -1, -1) for partition in partitions)
    return request(
        OFFSET_COMMIT,
        COMMIT_VERSION,
        _text(group)
        + (-1).to_bytes(4, "big", signed=True)
        + _text("")
        + (1).to_bytes(4, "big")
        + _text(topic)
        + len(partitions).to_bytes(4, "big")
        + rows,
    )


def _commit(broker: RunningBroker, connections: int, groups: int, ahead: int, commits: int) -> Spent:
    clients = [RawClient(broker.kafka) for _ in range(connections)]
    requests = [
        commit_request(f"group-{n % groups}", "commits", range(PARTITIONS), offset=n)
        for n in range(connections)
    ]
    try:
        for client, packed in zip(clients, requests, strict=True):
            client.send(packed)
            client.receive()
        with measuring(broker) as spent:
            for _ in range(commits // connections // ahead):
                for client, packed in zip(clients, requests, strict=True):
                    for _ in range(ahead):
                        client.send(packed)
                for client in clients:
                    for _ in range(ahead):
                        client.receive()
    finally:
        for client in clients:
            client.close()
    return spent


async def _wait_idly(broker: RunningBroker, paths: list[str], *, seconds: float = 10) -> tuple[Spent, float]:
    """Open a connection for each path, and see what they cost while they wait."""
    host, port = broker.http.removeprefix("http://").split(":")
    writers = []
    for path in paths:
        _, writer = await asyncio.open_connection(host, int(port))
        writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
        writers.append(writer)
    await asyncio.sleep(5)
    with measuring(broker) as spent:
        await asyncio.sleep(seconds)
    waiting_mb = resident_mb(broker)
    for writer in writers:
        writer.transport.abort()
    return spent, waiting_mb


def _let_rest(broker: RunningBroker, ids: list[str]) -> int:
    """Heartbeat for everybody until nobody is to let go of anything or to take anything."""
    for rounds in range(1, 10):
        is_at_rest = True
        for member_id in ids:
            told = _post(broker, "/groups/movers/heartbeat/cooperative", {"member_id": member_id})
            is_at_rest = is_at_rest and not told["rebalance_required"]
            if revoked := told.get("partitions_to_revoke"):
                _post(
                    broker,
                    "/groups/movers/revoke",
                    {"member_id": member_id, "revoked_partitions": revoked},
                )
        if is_at_rest:
            return rounds
    raise RuntimeError("the group does not come to rest")


def _owned(broker: RunningBroker, ids: list[str]) -> dict[str, set[int]]:
    assignments = _get(broker, "/groups/movers/cooperative")["member_assignments"]
    return {member_id: {place["partition"] for place in assignments[member_id]} for member_id in ids}


def _post(broker: RunningBroker, path: str, body: object) -> Json:
    asked = urllib.request.Request(broker.http + path, json.dumps(body).encode())
    with urllib.request.urlopen(asked, timeout=60) as reply:
        answer: Json = json.load(reply)
    return answer


def _get(broker: RunningBroker, path: str) -> Json:
    with urllib.request.urlopen(broker.http + path, timeout=60) as reply:
        answer: Json = json.load(reply)
    return answer


def _size_of(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _text(text: str) -> bytes:
    return len(text).to_bytes(2, "big") + text.encode()
