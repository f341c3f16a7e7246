"""The walk of a work-item job: wave after wave, each noted in the manifest before the next begins."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from goqueue.spark.jobs.ledger import Ledger
from goqueue.spark.jobs.work import WorkItem, do_items

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Wave:
    """Items that are done together, and how far the job has come when they are."""

    epoch: int
    items: Sequence[WorkItem]
    positions: Mapping[str, int]


class Target(Protocol):
    """Where waves are committed beside the manifest: a lake table, or a sink of a node."""

    def is_committed(self, epoch: int) -> bool:
        """Whether an epoch is there."""

    def commit(self, epoch: int, rows: Sequence[bytes]) -> None:
        """Bring in what the items of an epoch have made."""


Planned = Callable[[int, int], None]
"""Hears, before the first wave, how many items and messages there are to do."""
Told = Callable[[int, Sequence[bytes]], None]
"""Hears of every wave that is done: how many items it had, and their rows."""


def resume(ledger: Ledger, target: Target) -> None:
    """Find out what became of a wave in which an earlier run was stopped."""
    if ledger.pending_epoch is not None:
        ledger.finish(is_done=target.is_committed(ledger.pending_epoch))


def run_waves(
    spark: "SparkSession",
    ledger: Ledger,
    waves: Iterable[Wave],
    *,
    told: Told,
    target: Target | None = None,
) -> None:
    """Do all waves. What is done stays done, whenever the run ends."""
    for wave in waves:
        rows = do_items(spark, wave.items)
        if target is None:
            ledger.note(wave.epoch, wave.positions, rows)
        else:
            ledger.prepare(wave.epoch, wave.positions, rows)
            target.commit(wave.epoch, rows)
            ledger.finish(is_done=True)
        told(len(wave.items), rows)
