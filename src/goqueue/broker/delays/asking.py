"""What a partition's leader must know from the keeper of the delays before it writes a batch."""

from collections.abc import Sequence
from typing import NamedTuple

from goqueue.broker.schemas.check import Unchecked
from goqueue.broker.storage.partition import Partition
from goqueue.core.delays.marks import Marks
from goqueue.model.delays import LaterBatch

ALONE = 0
"""What stands for the partition in marks that speak of no other."""


class Told(NamedTuple):
    """What the keeper has told about batches, and by which time their messages come now or later."""

    marks: Marks
    now_ms: int
    kept: Sequence[int] | None = None
    """The numbers that the delayed messages of the batches begin with; None: they are not kept yet."""


class Unasked(Unchecked):
    """The keeper must be asked first what it has of these producers."""

    def __init__(self, partition: Partition, producer_ids: Sequence[int]) -> None:
        super().__init__()
        self.partition = partition
        self.producer_ids = producer_ids


class Unkept(Unchecked):
    """These must be kept before anything is written."""

    def __init__(self, batches: Sequence[LaterBatch]) -> None:
        super().__init__()
        self.batches = batches
