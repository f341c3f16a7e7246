"""The requests of transactions in every version that is advertised, and what they refuse."""

from collections.abc import Callable
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from goqueue.edge.kafka.apis import APIS, ApiKey
from tests.doors.kafka import requests
from tests.doors.kafka.conftest import NewTopic
from tests.doors.kafka.raw_client import RawClient, record_batch

PRODUCE_VERSION = 11
FETCH_VERSION = 11
READ_COMMITTED = 1
_names = count(1)


def versions(key: ApiKey, *, last: int | None = None) -> pytest.MarkDecorator:
    """Those that are advertised, or up to `last`: test_transactions_v2 has the rest."""
    api = APIS[key]
    end = (api.last_version if last is None else last) + 1
    return pytest.mark.parametrize("version", range(api.first_version, end))


class Writer:
    """A transactional producer, one request at a time."""

    def __init__(self, raw: RawClient, topic: str, name: str | None = None) -> None:
        self.raw = raw
        self.topic = topic
        self.name = name or f"writer {next(_names)}"
        self._sequences = count()
        found = self.init()
        self.producer_id, self.epoch = found.producer_id, found.producer_epoch

    def init(self, *, version: int = 4, producer_id: int = -1, epoch: int = -1) -> Any:
        return self.raw.ask(
            ApiKey.INIT_PRODUCER_ID,
            version,
            transactional_id=self.name,
            transaction_timeout=requests.SECOND * 60,
            producer_id=producer_id,
            producer_epoch=epoch,
        )

    def add(self, *partitions: int, version: int = 3, topic: str | None = None) -> list[ErrorCode]:
        touched = (SimpleNamespace(name=topic or self.topic, partitions=partitions),)
        reply = self.raw.ask(
            ApiKey.ADD_PARTITIONS_TO_TXN,
            version,
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=touched,
        )
        [found] = reply.results_by_topic_v3_and_below
        return [result.partition_error_code for result in found.results_by_partition]

    def add_group(self, group: str, version: int = 3) -> ErrorCode:
        return self._about(ApiKey.ADD_OFFSETS_TO_TXN, version, group_id=group)

    def end(self, *, committed: bool, version: int = 3) -> ErrorCode:
        return self._about(ApiKey.END_TXN, version, committed=committed)

    def pend(self, group: str, offset: int, version: int = 3) -> ErrorCode:
        row = SimpleNamespace(
            partition_index=0,
            committed_offset=offset,
            committed_leader_epoch=-1,
            committed_metadata=None,
        )
        reply = self.raw.ask(
            ApiKey.TXN_OFFSET_COMMIT,
            version,
            transactional_id=self.name,
            group_id=group,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            generation_id=-1,
            member_id="",
            group_instance_id=None,
            topics=(SimpleNamespace(name=self.topic, partitions=(row,)),),
        )
        code: ErrorCode = reply.topics[0].partitions[0].error_code
        return code

    def put(self, value: bytes, partition: int = 0) -> ErrorCode:
        batch = record_batch(
            value,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=next(self._sequences),
            is_transactional=True,
        )
        request = requests.produce(
            self.topic, batch, partition=partition, acks=-1, transactional_id=self.name
        )
        reply = self.raw.ask(ApiKey.PRODUCE, PRODUCE_VERSION, **request)
        code: ErrorCode = reply.responses[0].partition_responses[0].error_code
        return code

    def _about(self, key: ApiKey, version: int, **fields: object) -> ErrorCode:
        reply = self.raw.ask(
            key,
            version,
            transactional_id=self.name,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            **fields,
        )
        code: ErrorCode = reply.error_code
        return code


NewWriter = Callable[..., Writer]


@pytest.fixture
def new_writer(raw: RawClient, new_topic: NewTopic) -> NewWriter:
    def create(name: str | None = None, topic: str | None = None) -> Writer:
        return Writer(raw, topic or new_topic(partitions=2).name, name)

    return create


def fetched(raw: RawClient, topic: str, version: int = FETCH_VERSION) -> Any:
    request = requests.fetch(topic, 0, isolation_level=READ_COMMITTED)
    return raw.ask(ApiKey.FETCH, version, **request).responses[0].partitions[0]


@versions(ApiKey.ADD_PARTITIONS_TO_TXN, last=3)
def test_partitions_are_added_in_every_version(new_writer: NewWriter, version: int) -> None:
    writer = new_writer()

    assert writer.add(0, 1, version=version) == [ErrorCode.none, ErrorCode.none]
    assert writer.put(b"a") is ErrorCode.none


@versions(ApiKey.END_TXN)
def test_a_transaction_ends_in_every_version(new_writer: NewWriter, version: int) -> None:
    writer = new_writer()
    writer.add(0)

    assert writer.end(committed=True, version=version) is ErrorCode.none
    assert writer.end(committed=True, version=version) is ErrorCode.none  # asked once more after a lost reply
    assert writer.end(committed=False, version=version) is ErrorCode.invalid_txn_state


@versions(ApiKey.ADD_OFFSETS_TO_TXN)
def test_groups_are_added_in_every_version(new_writer: NewWriter, version: int) -> None:
    assert new_writer().add_group("readers", version=version) is ErrorCode.none


@versions(ApiKey.TXN_OFFSET_COMMIT, last=4)
def test_offsets_are_pended_in_every_version(new_writer: NewWriter, raw: RawClient, version: int) -> None:
    writer = new_writer()
    group = f"readers {version}"
    assert writer.pend(group, 5, version=version) is ErrorCode.invalid_txn_state
    writer.add_group(group)

    assert writer.pend(group, 5, version=version) is ErrorCode.none
    assert committed(raw, writer.topic, group) == (-1, ErrorCode.unstable_offset_commit)
    writer.end(committed=True)
    assert committed(raw, writer.topic, group) == (5, ErrorCode.none)


def committed(raw: RawClient, topic: str, group: str) -> tuple[int, ErrorCode]:
    wanted = (SimpleNamespace(name=topic, partition_indexes=(0,)),)
    reply = raw.ask(ApiKey.OFFSET_FETCH, 7, group_id=group, topics=wanted, require_stable=True)
    [found] = reply.topics[0].partitions
    return found.committed_offset, found.error_code


@versions(ApiKey.FETCH)
def test_fetch_lists_what_was_aborted(
    raw: RawClient, new_topic: NewTopic, new_writer: NewWriter, version: int
) -> None:
    topic = new_topic()
    writer = new_writer(topic=topic.name)
    writer.add(0)
    writer.put(b"aborted")
    request = requests.fetch(topic.name, 0, topic_id=topic.topic_id, isolation_level=READ_COMMITTED)
    [held_back] = raw.ask(ApiKey.FETCH, version, **request).responses[0].partitions
    writer.end(committed=False)
    raw.ask(ApiKey.LIST_OFFSETS, 7, **requests.list_offsets(topic.name, -1))  # the marker is on the disk

    [found] = raw.ask(ApiKey.FETCH, version, **request).responses[0].partitions

    assert (held_back.last_stable_offset, held_back.high_watermark) == (0, 1)
    assert (found.last_stable_offset, found.high_watermark) == (2, 2)
    [aborted] = found.aborted_transactions
    assert (aborted.producer_id, aborted.first_offset) == (writer.producer_id, 0)


def test_a_partition_that_was_not_added_cannot_be_written_to(new_writer: NewWriter) -> None:
    writer = new_writer()
    writer.add(0)

    assert writer.put(b"a", partition=1) is ErrorCode.invalid_txn_state
    assert writer.end(committed=True) is ErrorCode.none
    assert writer.put(b"a") is ErrorCode.invalid_txn_state


def test_a_topic_that_is_not_there_spoils_the_whole_request(new_writer: NewWriter) -> None:
    writer = new_writer()

    assert writer.add(0, 7) == [ErrorCode.operation_not_attempted, ErrorCode.unknown_topic_or_partition]
    assert writer.end(committed=True) is ErrorCode.invalid_txn_state


def test_an_older_epoch_is_fenced_everywhere(new_writer: NewWriter) -> None:
    zombie = new_writer()
    zombie.add(0)
    zombie.put(b"open")
    successor = new_writer(zombie.name, zombie.topic)

    assert (successor.producer_id, successor.epoch) == (zombie.producer_id, zombie.epoch + 1)
    assert zombie.put(b"late") is ErrorCode.invalid_producer_epoch
    assert zombie.add(0) == [ErrorCode.producer_fenced]
    assert zombie.add(0, version=1) == [ErrorCode.invalid_producer_epoch]
    assert zombie.end(committed=True) is ErrorCode.producer_fenced
    assert zombie.pend("readers", 1) is ErrorCode.invalid_producer_epoch
    assert fetched(zombie.raw, zombie.topic).last_stable_offset == 2


def test_a_producer_that_asks_for_its_next_epoch_gets_the_same_one_again(new_writer: NewWriter) -> None:
    writer = new_writer()

    first = writer.init(producer_id=writer.producer_id, epoch=writer.epoch)
    again = writer.init(producer_id=writer.producer_id, epoch=writer.epoch)
    later = writer.init(producer_id=writer.producer_id, epoch=first.producer_epoch)
    too_late = writer.init(producer_id=writer.producer_id, epoch=writer.epoch)

    assert (first.producer_epoch, again.producer_epoch, later.producer_epoch) == (1, 1, 2)
    assert too_late.error_code is ErrorCode.producer_fenced


def test_a_time_out_above_the_limit_is_refused(raw: RawClient) -> None:
    reply = raw.ask(
        ApiKey.INIT_PRODUCER_ID, 1, transactional_id="slow", transaction_timeout=requests.SECOND * 901
    )

    assert reply.error_code is ErrorCode.invalid_transaction_timeout


def test_tools_see_who_holds_what_open_and_can_end_it(new_writer: NewWriter, raw: RawClient) -> None:
    writer = new_writer()
    writer.add(0, 1)
    writer.put(b"open")

    [described] = raw.ask(
        ApiKey.DESCRIBE_TRANSACTIONS, 0, transactional_ids=(writer.name,)
    ).transaction_states
    listed = raw.ask(
        ApiKey.LIST_TRANSACTIONS, 1, state_filters=("Ongoing",), producer_id_filters=(), duration_filter=0
    ).transaction_states
    [unknown] = raw.ask(ApiKey.DESCRIBE_TRANSACTIONS, 0, transactional_ids=("no such",)).transaction_states

    assert (described.transaction_state, described.producer_id) == ("Ongoing", writer.producer_id)
    assert [(topic.topic, topic.partitions) for topic in described.topics] == [(writer.topic, (0, 1))]
    assert writer.name in [found.transactional_id for found in listed]
    assert unknown.error_code is ErrorCode.transactional_id_not_found
    assert producers(writer) == [(writer.producer_id, writer.epoch, 0, 0)]

    assert mark(writer, committed=True) is ErrorCode.invalid_txn_state
    assert mark(writer, committed=False) is ErrorCode.none
    assert producers(writer) == [(writer.producer_id, writer.epoch + 1, -1, -1)]
    assert writer.end(committed=True) is ErrorCode.producer_fenced


def producers(writer: Writer) -> list[tuple[int, int, int, int]]:
    wanted = (SimpleNamespace(name=writer.topic, partition_indexes=(0,)),)
    reply = writer.raw.ask(ApiKey.DESCRIBE_PRODUCERS, 0, topics=wanted)
    return [
        (found.producer_id, found.producer_epoch, found.last_sequence, found.current_txn_start_offset)
        for found in reply.topics[0].partitions[0].active_producers
    ]


def mark(writer: Writer, *, committed: bool) -> ErrorCode:
    marker = SimpleNamespace(
        producer_id=writer.producer_id,
        producer_epoch=writer.epoch,
        transaction_result=committed,
        topics=(SimpleNamespace(name=writer.topic, partition_indexes=(0,)),),
        coordinator_epoch=0,
    )
    reply = writer.raw.ask(ApiKey.WRITE_TXN_MARKERS, 1, markers=(marker,))
    code: ErrorCode = reply.markers[0].topics[0].partitions[0].error_code
    return code
