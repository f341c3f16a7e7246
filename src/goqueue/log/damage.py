"""Damage: what a recovery point vouches for is not there. No crash does that; a disk or a person did.

A partition that is damaged is not written to, or offsets would be given out a second time. What is there can
be read; what is lost is told to whoever asks for it, until an operator accepts the loss. A folder that is
another topic's is damage too: nothing of it is shown, and nothing in it is touched but put aside as a whole.
"""

from dataclasses import dataclass
from uuid import UUID

from goqueue.model.ports import Disk


@dataclass(frozen=True, slots=True)
class Damage:
    reason: str
    lost: tuple[tuple[int, int], ...] = ()
    """Runs of offsets that were stored and cannot be read: first, and end. Empty: nothing tells how many."""
    owner: UUID | None = None
    """The topic that the folder belongs to, when that is another one."""

    @property
    def lost_count(self) -> int:
        return sum(end - first for first, end in self.lost)

    def __str__(self) -> str:
        if not self.lost:
            return self.reason
        runs = ", ".join(f"{first} to {end - 1}" for first, end in self.lost)
        return f"{self.reason}; lost are the offsets {runs}"


def of_another(owner: UUID) -> Damage:
    """The folder is not this partition's."""
    return Damage(f"its folder belongs to another topic, which has the id {owner}", owner=owner)


def put_aside(disk: Disk, folder: str, owner: UUID) -> str:
    """Take another topic's folder out of the place of a partition, in one step; returns where it lies now."""
    parent, _, name = folder.rpartition("/")
    aside = f"{name}.of-{owner}"
    while aside in disk.list(parent):
        aside += "-too"
    disk.rename(folder, f"{parent}/{aside}")
    disk.sync_folder(parent)
    return f"{parent}/{aside}"
