"""Offset commits that a client sends without waiting: begun in turn, safe before they are answered."""

import errno
import os
import struct
import threading
import time
from collections.abc import Iterator

import pytest
from kio.schema.errors import ErrorCode

from goqueue.broker.groups.verbs import describe_group
from goqueue.edge.kafka.apis import ApiKey
from goqueue.model.group_commands import DescribeGroup
from goqueue.model.settings import BrokerConfig, GroupConfig
from goqueue.node.disk import OpenFile
from tests.doors.kafka import group_requests as ask
from tests.doors.kafka import requests
from tests.doors.kafka.conftest import OpenDoor
from tests.doors.kafka.door_thread import DoorThread, sync_by_threads
from tests.doors.kafka.raw_client import PATIENCE_S, RawClient, encode_request

COMMITS = 40


@pytest.fixture
def door(open_door: OpenDoor) -> DoorThread:
    """A door of its own, because its disk is meddled with."""
    return open_door(BrokerConfig(groups=GroupConfig(initial_delay_ms=0)))


@pytest.fixture
def raw(door: DoorThread) -> Iterator[RawClient]:
    with RawClient(door.port) as client:
        client.ask(ApiKey.METADATA, 9, **requests.metadata("orders", create=True))
        reply = client.ask(ApiKey.OFFSET_COMMIT, 8, **ask.commit("readers", "orders", {0: 0}))
        assert reply.topics[0].partitions[0].error_code is ErrorCode.none
        yield client


async def member_count(door: DoorThread, group: str) -> int:
    return len(describe_group(door.broker, DescribeGroup(group=group)).members)


def test_a_request_behind_a_commit_begins_while_the_disk_is_still_at_work(
    door: DoorThread, raw: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    joined = raw.ask(ApiKey.JOIN_GROUP, 3, **ask.join("readers"))
    own = {"member_id": joined.member_id, "generation": joined.generation_id}
    raw.ask(ApiKey.SYNC_GROUP, 3, **ask.sync("readers", joined.member_id, joined.generation_id))
    disk_works = threading.Event()
    really_sync = OpenFile.sync

    def slow_sync(file: OpenFile) -> None:
        assert disk_works.wait(PATIENCE_S)
        really_sync(file)

    sync_by_threads(monkeypatch)
    monkeypatch.setattr(OpenFile, "sync", slow_sync)

    asked = [
        raw.send(ApiKey.OFFSET_COMMIT, 8, **ask.commit("readers", "orders", {0: 7}, **own)),
        raw.send(ApiKey.LEAVE_GROUP, 3, **ask.leave("readers", joined.member_id)),
    ]
    deadline = time.monotonic() + PATIENCE_S / 2
    while door.run(member_count(door, "readers")):
        assert time.monotonic() < deadline, "the member does not leave"
    disk_works.set()

    answered = [raw.receive_with_id(ApiKey.OFFSET_COMMIT, 8), raw.receive_with_id(ApiKey.LEAVE_GROUP, 3)]
    assert [correlation_id for correlation_id, _ in answered] == asked
    assert answered[0][1].topics[0].partitions[0].error_code is ErrorCode.none


def test_commits_sent_one_behind_the_other_share_an_fsync_and_the_last_one_holds(
    raw: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    frames = [
        encode_request(ApiKey.OFFSET_COMMIT, 8, number, **ask.commit("readers", "orders", {0: number}))
        for number in range(COMMITS)
    ]
    frames.append(encode_request(ApiKey.OFFSET_FETCH, 7, COMMITS, **ask.fetch("readers", {"orders": (0,)})))
    syncs: list[None] = []
    really_sync = OpenFile.sync

    def counted_sync(file: OpenFile) -> None:
        syncs.append(None)
        really_sync(file)

    sync_by_threads(monkeypatch)
    monkeypatch.setattr(OpenFile, "sync", counted_sync)

    raw.socket.sendall(b"".join(struct.pack(">i", len(frame)) + frame for frame in frames))

    answered = [raw.receive_with_id(ApiKey.OFFSET_COMMIT, 8)[0] for _ in range(COMMITS)]
    assert answered == list(range(COMMITS))
    fetched = raw.receive(ApiKey.OFFSET_FETCH, 7)
    assert fetched.topics[0].partitions[0].committed_offset == COMMITS - 1
    assert len(syncs) < COMMITS / 2


def test_a_commit_that_the_disk_fails_is_refused(raw: RawClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing_sync(_file: OpenFile) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    sync_by_threads(monkeypatch)
    monkeypatch.setattr(OpenFile, "sync", failing_sync)

    reply = raw.ask(ApiKey.OFFSET_COMMIT, 8, **ask.commit("readers", "orders", {0: 7, 1: 8}))

    refused = [partition.error_code for partition in reply.topics[0].partitions]
    assert len(refused) == 2
    assert ErrorCode.none not in refused
