"""Waves into topics: items stage what they have, and one commit of the sink brings in a whole wave, once."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from goqueue.client.connection import Client, Refused
from goqueue.model.errors import Invalid, TopicNotFound
from goqueue.spark.sink import door as sink_door
from goqueue.spark.sink.epochs import Stages, Writing
from goqueue.spark.sink.options import SinkOptions
from goqueue.spark.sink.rows import Packer, Packet

if TYPE_CHECKING:
    from pyarrow import RecordBatch


class StagedItem(msgspec.Struct, frozen=True, kw_only=True):
    """What one item has staged: a row of the manifest."""

    name: str
    """The input that it was made of."""
    messages: int
    stages: list[str]


_decoder = msgspec.json.Decoder(StagedItem)


@dataclass(frozen=True, slots=True, kw_only=True)
class Staging:
    """Under which name and epoch an item stages."""

    options: SinkOptions
    sink: str
    epoch: int

    def stage_packets(self, client: Client, name: str, packets: Iterable[Packet]) -> bytes:
        """Stage all packets of an item; its row."""
        stages = Stages(client, Writing(self.sink, self.epoch, self.sink), task=0)
        for packet in packets:
            stages.add(packet)
        return msgspec.json.encode(StagedItem(name=name, messages=stages.message_count, stages=stages.names))

    def stage_rows(self, name: str, rows: Iterable["RecordBatch"]) -> bytes:
        """Stage rows with the columns of the sink for topics."""
        client = self.options.connect()
        packer = Packer(
            topic=self.options.topic,
            codec=self.options.codec,
            shape_of=lambda topic: sink_door.shape_of(client, topic),
            first_turn=0,
        )
        try:
            return self.stage_packets(client, name, packer.pack(rows))
        finally:
            client.close()


class SinkTarget:
    """A sink of a node that only this run may commit to."""

    def __init__(self, options: SinkOptions, sink: str) -> None:
        self._client = options.connect()
        self._sink = sink
        taken = sink_door.take_generation(self._client, sink)
        self._generation = taken.generation
        self.leaves_markers = taken.markers
        """Whether what is committed takes more offsets than it has messages."""

    def is_committed(self, epoch: int) -> bool:
        state = sink_door.find_sink(self._client, self._sink)
        return state is not None and state.last_epoch >= epoch

    def commit(self, epoch: int, rows: Sequence[bytes]) -> None:
        stages = [name for row in rows for name in _decoder.decode(row).stages]
        if stages:
            sink_door.commit(self._client, self._sink, stages, epoch=epoch, generation=self._generation)


def ensure_topic(options: SinkOptions, *, partition_count: int) -> None:
    """Make the target topic where there is none; refuse one that has too few partitions."""
    assert options.topic is not None, "a job without a target topic was let through"
    client = options.connect()
    try:
        found = sink_door.shape_of(client, options.topic).partition_count
    except Refused as refused:
        if refused.code != TopicNotFound.code:
            raise
        body = {"name": options.topic, "num_partitions": partition_count}
        client.request("POST", "/topics", body=msgspec.json.encode(body))
        return
    finally:
        client.close()
    if found < partition_count:
        raise Invalid(
            f"topic {options.topic} has {found} partitions, and the messages come from {partition_count}: "
            "add partitions, or let the keys choose with --by-key"
        )
