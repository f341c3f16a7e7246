"""Lanes: messages of one batch that ask for different priorities are split, in order."""

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder

from goqueue.model.errors import InvalidRecord
from goqueue.model.messages import Lane, Message
from goqueue.records.batch import BATCH_BYTES, encode, open_batch, split_lanes
from goqueue.records.layout import Codec, check_batches, read_header


def produced(lanes: list[bytes | None], *, codec: Codec = Codec.NONE, sequence: int = 0) -> memoryview:
    """A batch as an idempotent Kafka producer builds it, one message a lane asked for."""
    builder = DefaultRecordBatchBuilder(2, codec, 0, 77, 1, sequence, 1 << 30)
    for index, lane in enumerate(lanes):
        headers = [] if lane is None else [("goqueue-priority", lane)]
        builder.append(index, 1000 + index, b"k", b"value %d" % index, headers)
    return memoryview(builder.build())


def split(batch: memoryview, *, inspect_compressed: bool = False) -> list[tuple[Lane, list[bytes | None]]]:
    parts = split_lanes(batch, read_header(batch), inspect_compressed=inspect_compressed)
    return [(lane, [message.value for message in open_batch(body, lane)]) for body, lane in parts]


def test_a_batch_without_priorities_stays_as_it_is() -> None:
    batch = produced([None, None])

    [(body, lane)] = split_lanes(batch, read_header(batch), inspect_compressed=False)

    assert body is batch
    assert lane is Lane.NORMAL


def test_a_batch_of_one_lane_is_kept_whole_in_that_lane() -> None:
    batch = produced([b"high", b"HIGH", b"1"])

    [(body, lane)] = split_lanes(batch, read_header(batch), inspect_compressed=False)

    assert body is batch
    assert lane is Lane.HIGH


def test_runs_of_one_lane_become_batches_of_their_own_in_order() -> None:
    assert split(produced([None, b"critical", b"critical", b"background", None])) == [
        (Lane.NORMAL, [b"value 0"]),
        (Lane.CRITICAL, [b"value 1", b"value 2"]),
        (Lane.BACKGROUND, [b"value 3"]),
        (Lane.NORMAL, [b"value 4"]),
    ]


def test_split_batches_carry_the_producer_on_with_the_right_sequence() -> None:
    batch = produced([None, b"low", b"low", None], sequence=2**31 - 2)

    parts = split_lanes(batch, read_header(batch), inspect_compressed=False)

    headers = [check_batches(body, max_batch_bytes=1 << 20)[0] for body, _ in parts]
    assert [(h.producer_id, h.producer_epoch, h.base_sequence) for h in headers] == [
        (77, 1, 2**31 - 2),
        (77, 1, 2**31 - 1),
        (77, 1, 1),
    ]


def test_an_unknown_priority_names_the_record() -> None:
    with pytest.raises(InvalidRecord, match="urgent") as raised:
        split(produced([None, b"urgent"]))
    assert raised.value.record_index == 1


def test_the_words_in_a_value_do_not_move_a_message() -> None:
    [(body, _)] = encode([Message(b"tell me about goqueue-priority: high")], now_ms=1)

    assert split(body) == [(Lane.NORMAL, [b"tell me about goqueue-priority: high"])]


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_compressed_batches_pass_unopened_unless_the_topic_asks(codec: Codec) -> None:
    batch = produced([None, b"high"], codec=codec)

    assert [lane for lane, _ in split(batch)] == [Lane.NORMAL]
    assert [lane for lane, _ in split(batch, inspect_compressed=True)] == [Lane.NORMAL, Lane.HIGH]


def test_messages_of_a_publish_are_cut_into_batches_by_lane_and_size() -> None:
    big = Message(b"x" * (BATCH_BYTES // 2 + 1))

    batches = encode([big, big, Message(b"", lane=Lane.LOW)], now_ms=5)

    assert [(lane, len(open_batch(body, lane))) for body, lane in batches] == [
        (Lane.NORMAL, 1),
        (Lane.NORMAL, 1),
        (Lane.LOW, 1),
    ]
