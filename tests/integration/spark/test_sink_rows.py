"""A task's rows as requests: whose size is bounded, and in which no row is lost or out of order."""

import pyarrow as pa
import pytest
from aiokafka.record.default_records import DefaultRecordBatch

from goqueue.model.errors import Invalid
from goqueue.records.entries import read_entries
from goqueue.records.layout import Codec
from goqueue.spark.sink import rows as sink_rows
from goqueue.spark.sink.door import TopicShape
from goqueue.spark.sink.rows import Packer, Packet

pytestmark = pytest.mark.slow

COUNTS = {"orders": 1, "clicks": 2}


def packer(topic: str | None = "orders", first_turn: int = 0) -> Packer:
    return Packer(
        topic=topic, codec=Codec.NONE, shape_of=lambda name: TopicShape(COUNTS[name]), first_turn=first_turn
    )


def rows(**columns: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


def values_in(packets: list[Packet]) -> dict[tuple[str, int], list[bytes]]:
    found: dict[tuple[str, int], list[bytes]] = {}
    for packet in packets:
        count = 0
        for target, _, body in read_entries(memoryview(packet.body)):
            values = [record.value for record in DefaultRecordBatch(bytes(body))]
            found.setdefault((target.topic, target.partition), []).extend(values)
            count += len(values)
        assert count == packet.message_count
    return found


def test_no_rows_make_no_packet() -> None:
    assert list(packer().pack([])) == []
    assert list(packer().pack([rows(value=pa.array([], pa.binary()))])) == []


def test_rows_go_to_the_topic_they_name_else_to_that_of_the_write() -> None:
    batch = rows(
        value=pa.array([b"a", b"b", b"c", b"d"]), topic=pa.array(["clicks", None, "clicks", "orders"])
    )

    [packet] = packer().pack([batch])

    assert values_in([packet]) == {
        ("clicks", 0): [b"a"],
        ("clicks", 1): [b"c"],
        ("orders", 0): [b"b", b"d"],
    }


def test_a_row_without_any_topic_is_refused() -> None:
    batch = rows(value=pa.array([b"a"]), topic=pa.array([None], pa.string()))

    with pytest.raises(Invalid, match="a row has no topic"):
        list(packer(topic=None).pack([batch]))


def test_turns_go_on_from_batch_to_batch_and_begin_where_the_task_does() -> None:
    batches = [rows(value=pa.array([b"a"])), rows(value=pa.array([b"b"])), rows(value=pa.array([b"c"]))]

    packets = list(packer(topic="clicks", first_turn=1).pack(batches))

    assert values_in(packets) == {("clicks", 1): [b"a", b"c"], ("clicks", 0): [b"b"]}


def test_a_large_share_becomes_several_packets_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sink_rows, "PACKET_BYTES", 10_000)
    values = [b"%04d" % number * 50 for number in range(1_000)]
    batches = [rows(value=pa.array(values[first : first + 20])) for first in range(0, 1_000, 20)]

    packets = list(packer().pack(batches))

    assert len(packets) > 10
    assert max(len(packet.body) for packet in packets) < 20_000
    assert values_in(packets) == {("orders", 0): values}
