"""verify: every frame of a topic is read and both its checksums are compared, in parallel."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from goqueue.client.connection import Client, Refused
from goqueue.client.log import frames, splits
from goqueue.model.errors import Corrupt, OffsetOutOfRange
from goqueue.records.frame import scan_frames
from goqueue.spark.jobs.ledger import open_ledger
from goqueue.spark.jobs.ranges import ITEM_BYTES, deal, message_count, remaining
from goqueue.spark.jobs.waves import Planned, Told, run_waves
from goqueue.spark.jobs.work import items_at_once
from goqueue.spark.source.fetch import WINDOW_BYTES
from goqueue.spark.source.offsets import OffsetRange
from goqueue.spark.source.options import SourceOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_EACH_INDEX_ENTRY = 1


class Damage(msgspec.Struct, frozen=True, kw_only=True):
    """Messages that cannot be read any more."""

    offset: int
    """The first of them."""
    end_offset: int
    """Where reading goes on."""
    problem: str


class VerifiedRange(msgspec.Struct, frozen=True, kw_only=True):
    """What was found in one range: a row of the manifest."""

    topic: str
    partition: int
    first_offset: int
    end_offset: int
    frames: int
    messages: int
    size_bytes: int
    damaged: list[Damage]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyJob:
    """What to look through."""

    source: SourceOptions
    manifest: Path
    item_bytes: int = ITEM_BYTES

    def run(self, spark: "SparkSession", *, planned: Planned, told: Told) -> list[VerifiedRange]:
        """Look through everything that this run of the job has not seen yet; all that it found."""
        about = {
            "topics": ",".join(self.source.which.topics) or str(self.source.which.pattern),
            "nodes": ",".join(map(str, self.source.addresses)),
        }
        with open_ledger(self.manifest, job="verify", about=about) as ledger:
            left = remaining(self.source, ledger.positions, item_bytes=self.item_bytes)
            planned(len(left), message_count(left))
            waves = deal(
                left,
                lambda wanted, _: VerifyItem(self.source, wanted),
                count=items_at_once(spark),
                epoch=ledger.epoch + 1,
            )
            run_waves(spark, ledger, waves, told=told)
            return ledger.rows(VerifiedRange)


@dataclass(frozen=True, slots=True)
class VerifyItem:
    """One range, for one task."""

    source: SourceOptions
    wanted: OffsetRange

    def run(self) -> bytes:
        client = self.source.connect()
        try:
            return msgspec.json.encode(self._verified(client))
        finally:
            client.close()

    def _verified(self, client: Client) -> VerifiedRange:
        wanted = self.wanted
        frame_count, messages, size_bytes = 0, 0, 0
        damaged: list[Damage] = []
        for found in self._windows(client):
            if isinstance(found, Damage):
                damaged.append(found)
                continue
            frame_count += found.frames
            messages += found.messages
            size_bytes += found.size_bytes
        return VerifiedRange(
            topic=wanted.topic,
            partition=wanted.partition,
            first_offset=wanted.first_offset,
            end_offset=wanted.end_offset,
            frames=frame_count,
            messages=messages,
            size_bytes=size_bytes,
            damaged=damaged,
        )

    def _windows(self, client: Client) -> Iterator["_Good | Damage"]:
        """Good frames and damage in turn, up to the end of the range."""
        wanted = self.wanted
        offset = wanted.first_offset
        while offset < wanted.end_offset:
            try:
                window = frames(client, wanted.topic, wanted.partition, offset=offset, max_bytes=WINDOW_BYTES)
            except Refused as refused:
                if refused.code == OffsetOutOfRange.code:
                    return  # Deleted by retention since the job was planned, which is no damage.
                if refused.code != Corrupt.code:
                    raise
                # Whole frames before a damaged one are served, so the damage begins where we asked.
                end_offset = self._behind(client, offset)
                yield Damage(offset=offset, end_offset=end_offset, problem=str(refused))
                offset = end_offset
                continue
            scan = scan_frames(memoryview(window.frames), stop_offset=wanted.end_offset)
            good = scan.frames
            yield _Good(
                len(good),
                sum(each.end_offset - each.base_offset for each in good),
                scan.consumed_bytes,
            )
            next_offset = max(good[-1].end_offset if good else offset, offset)
            if scan.problem:
                # The node has checked what it read, so this was damaged on its way or by the node itself.
                end_offset = self._behind(client, next_offset)
                yield Damage(offset=next_offset, end_offset=end_offset, problem=scan.problem)
                next_offset = end_offset
            if max(next_offset, window.next_offset) == offset:
                return  # The log ends here now: the topic was made anew.
            offset = max(next_offset, window.next_offset)

    def _behind(self, client: Client, offset: int) -> int:
        """The next offset at which the index knows a frame."""
        wanted = self.wanted
        if offset + 1 >= wanted.end_offset:
            return wanted.end_offset
        points = splits(
            client,
            wanted.topic,
            wanted.partition,
            first_offset=offset + 1,
            end_offset=wanted.end_offset,
            split_bytes=_EACH_INDEX_ENTRY,
        )
        return points[1]


class _Good(msgspec.Struct, frozen=True):
    frames: int
    messages: int
    size_bytes: int
