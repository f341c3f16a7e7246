"""Replies that are of several kinds, as they travel between nodes.

What came of a publish is an entry a message, of four kinds. Most are places: these travel as three columns,
and the others by their indexes, each with the name of its kind.
"""

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from goqueue.edge.peer.calls import Shape
from goqueue.model.commands import Placed, Published, Quarantined
from goqueue.model.delays import Postponed
from goqueue.model.errors import GoQueueError
from goqueue.model.messages import Lane

_LANES = tuple(Lane)
_new_placed = tuple.__new__
"""Past the named tuple's own constructor: a thousand places come at a time."""


class _Postponed(Struct, tag="postponed", array_like=True):
    postponed: Postponed


class _Quarantined(Struct, tag="quarantined", array_like=True):
    quarantined: Quarantined


class _Refused(Struct, tag="refused", array_like=True):
    error: GoQueueError


class WirePublished(Struct, array_like=True):
    partitions: list[int]
    offsets: list[int]
    lanes: list[int]
    others: dict[int, _Postponed | _Quarantined | _Refused]
    """By the index of the message; what stands in the columns there means nothing."""


def published_to_wire(published: Published) -> WirePublished:
    if set(map(type, published)) == {Placed}:
        return WirePublished(*zip(*published, strict=True), {})  # type: ignore[call-arg]  # as nearly always
    wire = WirePublished([], [], [], {})
    for index, outcome in enumerate(published):
        if isinstance(outcome, Placed):
            partition, offset, lane = outcome
        else:
            partition, offset, lane = -1, -1, Lane.NORMAL
            wire.others[index] = _other(outcome)
        wire.partitions.append(partition)
        wire.offsets.append(offset)
        wire.lanes.append(lane)
    return wire


def published_from_wire(wire: WirePublished) -> Published:
    lanes = map(_LANES.__getitem__, wire.lanes)
    columns = zip(wire.partitions, wire.offsets, lanes, strict=True)
    published: Published = [_new_placed(Placed, place) for place in columns]
    for index, other in wire.others.items():
        match other:
            case _Postponed():
                published[index] = other.postponed
            case _Quarantined():
                published[index] = other.quarantined
            case _Refused():
                published[index] = other.error
    return published


def shapes(replies: Iterable[tuple[type, Any]]) -> list[Shape]:
    """The shapes of commands that are passed on, each with the type of its reply."""
    return [
        Shape(command, WirePublished, published_to_wire, published_from_wire)
        if reply is Published
        else Shape(command, reply)
        for command, reply in replies
    ]


def _other(outcome: Postponed | Quarantined | GoQueueError) -> _Postponed | _Quarantined | _Refused:
    match outcome:
        case Postponed():
            return _Postponed(outcome)
        case Quarantined():
            return _Quarantined(outcome)
        case _:
            return _Refused(outcome)
