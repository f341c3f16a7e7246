"""Words between nodes: who is at the other end, how a connection ended, what came back of a call."""

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from goqueue.model.cluster import Incarnation, NodeId
from goqueue.model.settings import MiB

SESSION_UNSENT_BYTES_MAX = 8 * MiB
"""Frames of one session that wait to go out. Who has more to send waits, so that a slow follower costs this
much.
"""
LINK_UNSENT_BYTES_MAX = 64 * MiB
"""The same of all that waits for one connection."""


class Peer(NamedTuple):
    """A node as it registered: one that starts again is another peer."""

    node: NodeId
    incarnation: Incarnation


class Neighbour(NamedTuple):
    """Where a registered node is to be found, and as what."""

    incarnation: Incarnation
    host: str
    port: int


class Pace(Enum):
    """Two connections lead to a node, so that those who have far to go do not hold up the others."""

    LIVE = 0
    """Calls, and followers that are in sync or nearly so."""
    CATCH_UP = 1
    """Followers that have far to go. What is sent here is throttled."""


class Loss(Enum):
    """How a connection ended, or why there is none."""

    REFUSED = "refused"
    """Nobody listens at its address: the process is gone, or its machine's network is."""
    RESET = "reset"
    """The other side has ended it; mostly because its process has."""
    SILENT = "silent"
    """Nothing was heard for too long: the machine or the network may be gone, or the process stands still."""
    CUT = "cut"
    """Ended here: the peer is not who is registered, spoke nonsense, or took nothing for too long."""


class Answered(NamedTuple):
    """What came of a command: the verb's reply, and bytes beside it that nobody needs to look into."""

    reply: object
    tail: Sequence[bytes | bytearray | memoryview] = ()


def host_and_port(address: str) -> tuple[str, int]:
    """Where a node says that its door for peers is: an IPv6 host stands in brackets."""
    host, _, port = address.rpartition(":")
    return host.removeprefix("[").removesuffix("]"), int(port)
