"""Version 2 of the transaction protocol (KIP-890): batches join partitions, each end has a new epoch."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from goqueue.broker.broker import Broker
from goqueue.edge.kafka.apis import APIS, ApiKey
from goqueue.model.ids import ProducerId
from goqueue.model.topics import TopicView
from goqueue.model.transactions import EPOCH_MAX, ProducerEpoch
from tests.doors.kafka import requests
from tests.doors.kafka.conftest import NewTopic
from tests.doors.kafka.door_thread import DoorThread
from tests.doors.kafka.raw_client import RawClient, record_batch
from tests.doors.kafka.test_transactions import committed, fetched

FIRST_JOINING = 12
_names = count(1)


class Writer:
    """A producer that speaks the newest versions: no request but its batches, offsets and ends."""

    def __init__(self, raw: RawClient, topic: TopicView) -> None:
        self.raw = raw
        self.topic = topic.name
        self.topic_id = topic.topic_id
        self.name = f"second {next(_names)}"
        found = self.init()
        self.producer = ProducerEpoch(found.producer_id, found.producer_epoch)
        self.sequences: defaultdict[int, int] = defaultdict(int)

    def init(self, *, current: ProducerEpoch | None = None, enable2_pc: bool = False) -> Any:
        return self.raw.ask(
            ApiKey.INIT_PRODUCER_ID,
            6,
            transactional_id=self.name,
            transaction_timeout=requests.SECOND * 60,
            producer_id=-1 if current is None else current.producer_id,
            producer_epoch=-1 if current is None else current.epoch,
            enable2_pc=enable2_pc,
            keep_prepared_txn=False,
        )

    def put(
        self, value: bytes, partition: int = 0, *, version: int = 13, names_itself: bool = True
    ) -> ErrorCode:
        batch = record_batch(
            value,
            producer_id=self.producer.producer_id,
            producer_epoch=self.producer.epoch,
            base_sequence=self.sequences[partition],
            is_transactional=True,
        )
        request = requests.produce(
            self.topic,
            batch,
            partition=partition,
            acks=-1,
            topic_id=self.topic_id,
            transactional_id=self.name if names_itself else None,
        )
        reply = self.raw.ask(ApiKey.PRODUCE, version, **request)
        code: ErrorCode = reply.responses[0].partition_responses[0].error_code
        self.sequences[partition] += code is ErrorCode.none
        return code

    def pend(self, group: str, offset: int) -> ErrorCode:
        row = SimpleNamespace(
            partition_index=0, committed_offset=offset, committed_leader_epoch=-1, committed_metadata=None
        )
        reply = self.raw.ask(
            ApiKey.TXN_OFFSET_COMMIT,
            5,
            transactional_id=self.name,
            group_id=group,
            producer_id=self.producer.producer_id,
            producer_epoch=self.producer.epoch,
            generation_id=-1,
            member_id="",
            group_instance_id=None,
            topics=(SimpleNamespace(name=self.topic, partitions=(row,)),),
        )
        code: ErrorCode = reply.topics[0].partitions[0].error_code
        return code

    def ask_end(self, *, committed: bool) -> tuple[ErrorCode, ProducerEpoch]:
        """Ask for the end as the producer that this writer believes to be."""
        reply = self.raw.ask(
            ApiKey.END_TXN,
            5,
            transactional_id=self.name,
            producer_id=self.producer.producer_id,
            producer_epoch=self.producer.epoch,
            committed=committed,
        )
        return reply.error_code, ProducerEpoch(reply.producer_id, reply.producer_epoch)

    def end(self, *, committed: bool) -> None:
        """End, and go on as the producer that is told."""
        code, self.producer = self.ask_end(committed=committed)
        assert code is ErrorCode.none
        self.sequences.clear()


NewWriter = Callable[[], Writer]


@pytest.fixture
def new_writer(raw: RawClient, new_topic: NewTopic) -> NewWriter:
    return lambda: Writer(raw, new_topic(partitions=2))


def shown(writer: Writer) -> tuple[int, int]:
    """Where readers of committed messages stop, and how many aborted transactions they pass over."""
    found = fetched(writer.raw, writer.topic)
    return found.last_stable_offset, len(found.aborted_transactions or ())


@pytest.mark.parametrize("version", [3, 4])
def test_clients_are_told_of_the_second_version(raw: RawClient, version: int) -> None:
    reply = raw.ask(ApiKey.API_VERSIONS, version, client_software_name="raw", client_software_version="1")

    [finalized] = reply.finalized_features
    supported = [
        (feature.name, feature.min_version, feature.max_version) for feature in reply.supported_features
    ]
    assert (finalized.name, finalized.max_version_level) == ("transaction.version", 2)
    assert reply.finalized_features_epoch >= 0
    # Clients that ask in version 3 cannot bear a feature that begins at 0.
    assert supported == ([("transaction.version", 0, 2)] if version >= 4 else [])


@pytest.mark.parametrize("version", range(FIRST_JOINING, APIS[ApiKey.PRODUCE].last_version + 1))
def test_a_batch_joins_its_partition(new_writer: NewWriter, version: int) -> None:
    writer = new_writer()

    assert writer.put(b"a", version=version) is ErrorCode.none
    assert writer.put(b"b", version=version) is ErrorCode.none
    assert writer.put(b"c", partition=1, version=version) is ErrorCode.none
    assert shown(writer) == (0, 0)
    writer.end(committed=True)
    assert shown(writer) == (3, 0)


def test_a_batch_in_the_name_of_another_transactional_id_is_refused(new_writer: NewWriter) -> None:
    victim, stranger = new_writer(), new_writer()
    assert victim.put(b"a") is ErrorCode.none
    own = stranger.producer, stranger.sequences

    stranger.producer, stranger.sequences = victim.producer, victim.sequences

    for version in (FIRST_JOINING - 1, FIRST_JOINING, 13):
        assert stranger.put(b"b", version=version) is ErrorCode.invalid_producer_id_mapping
    stranger.producer, stranger.sequences = own
    assert stranger.put(b"c") is ErrorCode.none
    victim.end(committed=True)
    assert shown(victim) == (2, 0)


def test_a_batch_of_an_older_version_joins_nothing(new_writer: NewWriter) -> None:
    writer = new_writer()

    assert writer.put(b"a", version=FIRST_JOINING - 1) is ErrorCode.invalid_txn_state
    assert writer.put(b"a", names_itself=False) is ErrorCode.invalid_txn_state
    assert writer.ask_end(committed=True)[0] is ErrorCode.invalid_txn_state


def test_each_end_gives_the_next_epoch_whose_batches_count_from_nought(new_writer: NewWriter) -> None:
    writer = new_writer()
    told = [writer.producer]
    for is_committed in (True, False, True):
        assert writer.put(b"a") is ErrorCode.none
        writer.end(committed=is_committed)
        told.append(writer.producer)

    assert told == [ProducerEpoch(told[0].producer_id, epoch) for epoch in range(4)]
    assert shown(writer) == (6, 1)


def test_an_end_that_is_asked_for_again_is_answered_the_same(new_writer: NewWriter) -> None:
    writer = new_writer()
    writer.put(b"a")

    first = writer.ask_end(committed=True)
    again = writer.ask_end(committed=True)
    otherwise, _ = writer.ask_end(committed=False)

    assert first == again == (ErrorCode.none, writer.producer._replace(epoch=1))
    assert otherwise is ErrorCode.invalid_txn_state
    assert shown(writer) == (2, 0)


def test_an_end_cannot_be_asked_for_again_once_the_next_transaction_is_open(new_writer: NewWriter) -> None:
    writer = new_writer()
    writer.put(b"a")
    late = writer.producer
    writer.end(committed=True)
    writer.put(b"b")
    writer.producer = late

    assert writer.ask_end(committed=True)[0] is ErrorCode.producer_fenced


def test_nobody_gets_an_epoch_without_having_had_one(new_writer: NewWriter) -> None:
    writer = new_writer()
    writer.put(b"a")
    writer.ask_end(committed=True)
    writer.producer = ProducerEpoch(ProducerId(-1), -1)

    assert writer.ask_end(committed=True) == (ErrorCode.invalid_producer_id_mapping, writer.producer)


def test_a_late_batch_of_the_last_transaction_is_refused(new_writer: NewWriter) -> None:
    writer = new_writer()
    writer.put(b"a")
    late = writer.producer
    writer.end(committed=True)
    writer.producer, current = late, writer.producer

    assert writer.put(b"late") is ErrorCode.invalid_producer_epoch
    assert writer.put(b"late", partition=1) is ErrorCode.invalid_producer_epoch
    assert writer.pend("readers", 1) is ErrorCode.invalid_producer_epoch
    writer.producer = current
    assert writer.ask_end(committed=True)[0] is ErrorCode.invalid_txn_state


def test_an_abort_where_nothing_was_open_gives_the_next_epoch_too(new_writer: NewWriter) -> None:
    writer = new_writer()

    first = writer.ask_end(committed=False)
    again = writer.ask_end(committed=False)
    writer.producer = first[1]
    later = writer.ask_end(committed=False)

    assert first == again
    assert (first[1].epoch, later[1].epoch) == (1, 2)


def test_offsets_join_their_group(new_writer: NewWriter, raw: RawClient) -> None:
    writer = new_writer()
    group = f"readers of {writer.name}"

    assert writer.pend(group, 5) is ErrorCode.none
    assert committed(raw, writer.topic, group) == (-1, ErrorCode.unstable_offset_commit)
    writer.end(committed=True)
    assert committed(raw, writer.topic, group) == (5, ErrorCode.none)
    assert writer.pend(group, 9) is ErrorCode.none
    writer.end(committed=False)
    assert committed(raw, writer.topic, group) == (5, ErrorCode.none)


def test_a_producer_that_lost_the_answer_to_its_end_gets_its_epoch_by_beginning_anew(
    new_writer: NewWriter,
) -> None:
    writer = new_writer()
    writer.put(b"a")
    _, ended = writer.ask_end(committed=True)

    reply = writer.init(current=writer.producer)

    assert (reply.error_code, reply.producer_epoch) == (ErrorCode.none, ended.epoch)


async def use_up_epochs(broker: Broker, name: str) -> ProducerEpoch:
    """As if there had been a great many transactions."""
    journal = await broker.transactions.ensure(name)
    known = journal.transactions.get(name)
    assert known is not None
    last = replace(known, epoch=EPOCH_MAX)
    await journal.submit(last)
    return last.producer


def test_a_producer_that_has_used_up_its_epochs_goes_on_under_a_new_id(
    new_writer: NewWriter, door: DoorThread
) -> None:
    writer = new_writer()
    writer.producer = door.run(use_up_epochs(door.broker, writer.name))
    writer.put(b"a")

    first = writer.ask_end(committed=True)
    again = writer.ask_end(committed=True)

    assert first == again
    assert first[1].producer_id != writer.producer.producer_id
    assert first[1].epoch == 0
    assert writer.put(b"late") is ErrorCode.invalid_producer_id_mapping
    writer.producer = first[1]
    writer.sequences.clear()
    assert writer.put(b"b") is ErrorCode.none
    writer.end(committed=True)
    assert shown(writer) == (4, 0)


def test_transactions_cannot_be_kept_prepared(new_writer: NewWriter) -> None:
    assert new_writer().init(enable2_pc=True).error_code is ErrorCode.unsupported_version


def asked(writer: Writer, *partitions: int, verify_only: bool = False) -> SimpleNamespace:
    return SimpleNamespace(
        transactional_id=writer.name,
        producer_id=writer.producer.producer_id,
        producer_epoch=writer.producer.epoch,
        verify_only=verify_only,
        topics=(SimpleNamespace(name=writer.topic, partitions=partitions),),
    )


def add(raw: RawClient, version: int, *wanted: SimpleNamespace) -> dict[str, list[ErrorCode]]:
    reply = raw.ask(ApiKey.ADD_PARTITIONS_TO_TXN, version, transactions=wanted)
    assert reply.error_code is ErrorCode.none
    return {
        result.transactional_id: [
            row.partition_error_code for topic in result.topic_results for row in topic.results_by_partition
        ]
        for result in reply.results_by_transaction
    }


@pytest.mark.parametrize("version", range(4, APIS[ApiKey.ADD_PARTITIONS_TO_TXN].last_version + 1))
def test_partitions_of_several_transactions_are_added_and_verified_at_once(
    new_writer: NewWriter, raw: RawClient, version: int
) -> None:
    first, second, zombie = new_writer(), new_writer(), new_writer()
    zombie.init()
    missing = ErrorCode.transaction_abortable if version >= 5 else ErrorCode.invalid_txn_state

    added = add(raw, version, asked(first, 0), asked(second, 0, 7), asked(zombie, 0))
    verified = add(raw, version, asked(first, 0, 1, verify_only=True), asked(zombie, 0, verify_only=True))

    assert added == {
        first.name: [ErrorCode.none],
        second.name: [ErrorCode.operation_not_attempted, ErrorCode.unknown_topic_or_partition],
        zombie.name: [ErrorCode.producer_fenced],
    }
    assert verified == {first.name: [ErrorCode.none, missing], zombie.name: [ErrorCode.producer_fenced]}
    assert first.put(b"a", version=11) is ErrorCode.none
