"""A family of metrics: its name, its labels, what it says, and how it is read."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from goqueue.core.telemetry.histogram import Histogram

if TYPE_CHECKING:
    from goqueue.broker.measures.view import View

Labels = tuple[str, ...]
Sample = tuple[Labels, float | Histogram]
"""The values of the labels, and the value."""

TOPIC = ("topic",)
GROUP = ("consumer_group",)
PAIR = ("topic", "consumer_group")


class Kind(Enum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Family:
    name: str
    kind: Kind
    labels: Labels
    help: str
    read: Callable[["View"], Iterable[Sample]]
    by_partition: bool = False
    """Whether each partition is told of, by one label more, where the settings ask for that."""

    def labels_in(self, view: "View") -> Labels:
        return (*self.labels, "partition") if self.by_partition and view.by_partition else self.labels


def counter(name: str, labels: Labels, text: str, read: Callable[["View"], Iterable[Sample]]) -> Family:
    return Family(name, Kind.COUNTER, labels, text, read)


def gauge(
    name: str,
    labels: Labels,
    text: str,
    read: Callable[["View"], Iterable[Sample]],
    *,
    by_partition: bool = False,
) -> Family:
    return Family(name, Kind.GAUGE, labels, text, read, by_partition)


def histogram(name: str, labels: Labels, text: str, read: Callable[["View"], Iterable[Sample]]) -> Family:
    return Family(name, Kind.HISTOGRAM, labels, text, read)


def one(value: Callable[["View"], float]) -> Callable[["View"], Iterable[Sample]]:
    """A family with a single value and no labels."""
    return lambda view: (((), value(view)),)
