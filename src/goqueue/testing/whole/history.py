"""What the simulation remembers of a topic: whether it exists, how it is set, and its partitions."""

from typing import NamedTuple
from uuid import UUID

from goqueue.model.ids import TopicName
from goqueue.model.settings import UNLIMITED
from goqueue.model.topics import TopicView
from goqueue.testing.whole.partition_history import Given, PartitionHistory, demand


class Shape(NamedTuple):
    """What the metadata journal must not forget of a topic."""

    partitions: int
    retention_ms: int
    retention_bytes: int
    segment_bytes: int


def shape_of(view: TopicView) -> Shape:
    settings = view.settings
    return Shape(
        len(view.partitions), settings.retention_ms, settings.retention_bytes, settings.segment_bytes
    )


class TopicHistory:
    """One topic, from its creation to its deletion; a new one of the same name has a new history."""

    def __init__(self, name: TopicName) -> None:
        self.name = name
        self.topic_id: UUID | None = None
        self.shapes: set[Shape | None] = {None}
        """What the topic may look like after a crash; None: it may be absent. One member: that is certain."""
        self.given = Given(name)
        self.partitions: list[PartitionHistory] = []

    def may_become(self, shape: Shape | None) -> None:
        """A change was asked for; until it is answered both the old and the new may be found."""
        self.shapes.add(shape)
        if shape is not None:
            given = self.given
            given.retention_ms_min = _shorter(given.retention_ms_min, shape.retention_ms)
            given.retention_bytes_min = _shorter(given.retention_bytes_min, shape.retention_bytes)

    def has_become(self, view: TopicView) -> None:
        """A change was acknowledged, or the topic was found like this after a crash."""
        found = shape_of(view)
        demand(found in self.shapes, f"{self.name} has the settings {found}, none of {self.shapes}")
        demand(self.topic_id in (None, view.topic_id), f"{self.name} has changed its id")
        self.topic_id = view.topic_id
        self.shapes = {found}
        for partition in range(len(self.partitions), found.partitions):
            self.partitions.append(PartitionHistory(self.given, partition))

    def has_gone(self) -> None:
        """The topic was not found after a crash."""
        demand(None in self.shapes, f"{self.name} is gone, though nobody asked for that")


def _shorter(known: int | None, asked: int) -> int | None:
    if asked == UNLIMITED:
        return known
    return asked if known is None else min(known, asked)
