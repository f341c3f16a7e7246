"""How a job's work is dealt out: waves without gaps, and what happens when the topic is not as it was."""

from dataclasses import dataclass

import pytest

from goqueue.client.log import Extent
from goqueue.model.errors import Invalid, NotFound
from goqueue.spark.jobs.ranges import deal, resumed_at
from goqueue.spark.source.offsets import OffsetRange, Place

PLACE = Place("orders", "0")


@dataclass(frozen=True)
class Item:
    """An item that only remembers what it is for."""

    wanted: OffsetRange
    epoch: int

    def run(self) -> bytes:
        raise NotImplementedError


def ranges(partition: int, count: int) -> list[OffsetRange]:
    return [OffsetRange("orders", partition, first, first + 10, 0) for first in range(0, count * 10, 10)]


def test_partitions_take_turns_and_keep_their_order() -> None:
    waves = deal(ranges(0, 4) + ranges(1, 1), Item, count=2, epoch=7)

    taken = [[(item.wanted.partition, item.wanted.first_offset) for item in wave.items] for wave in waves]  # type: ignore[attr-defined]  # they are Items
    assert taken == [[(0, 0), (1, 0)], [(0, 10), (0, 20)], [(0, 30)]]
    assert [wave.epoch for wave in waves] == [7, 8, 9]
    assert [wave.positions for wave in waves] == [
        {"orders/0": 10, "orders/1": 10},
        {"orders/0": 30},
        {"orders/0": 40},
    ]


def test_nothing_to_do_makes_no_wave() -> None:
    assert deal([], Item, count=2, epoch=0) == []


def test_a_job_goes_on_where_it_stopped() -> None:
    assert resumed_at(PLACE, Extent(0, 100), 0, {"orders/0": 40}, strict=True) == 40
    assert resumed_at(PLACE, Extent(0, 100), 60, {"orders/0": 40}, strict=True) == 40
    assert resumed_at(PLACE, Extent(0, 100), 20, {}, strict=True) == 20
    assert resumed_at(PLACE, Extent(60, 100), 60, {"orders/0": 40}, strict=False) == 60


def test_messages_deleted_before_they_were_done_are_told() -> None:
    with pytest.raises(NotFound, match="orders/0 begins at offset 60 now; the job had come to 40"):
        resumed_at(PLACE, Extent(60, 100), 60, {"orders/0": 40}, strict=True)


def test_a_topic_that_was_made_anew_is_not_taken_for_the_old_one() -> None:
    with pytest.raises(Invalid, match="the topic was made anew"):
        resumed_at(PLACE, Extent(0, 30), 0, {"orders/0": 40}, strict=False)
