"""The outside of a message between nodes: sixteen bytes, then its body.

All numbers are big-endian: length of the body `u32`, kind `u8`, flags `u8`, reserved `u16`, id `u64` (of a
session or of a call). Flags and reserved bytes are 0 in this protocol. Whatever is not as it says here ends
the connection: between nodes there is no client whose mistake could be forgiven.
"""

from enum import IntEnum
from struct import Struct

from goqueue.model.settings import KiB, MiB

PROTOCOL = 1
"""Both sides speak the lower one of what they tell in their HELLO."""
PROTOCOL_MIN = 1

HEAD = Struct(">IBBHQ")
HELLO_BYTES_MAX = 4 * KiB
"""What somebody may say before it is known who that is."""
MESSAGE_BYTES_MAX = 128 * MiB
"""Twice the largest request that doors take as they come, so that it can be passed on whatever it is wrapped
in.
"""
ID_MAX = (1 << 64) - 1


class Kind(IntEnum):
    HELLO = 1
    PROOF = 2
    IDLE = 3
    """Nothing to say, and alive."""
    FOLLOW = 4
    FOLLOWING = 5
    FRAMES = 6
    ACK = 7
    END = 8
    """The session is over."""
    CALL = 9
    REPLY = 10
    ERROR = 11
    CANCEL = 12
    """Nobody waits for the answer to this call any more."""


KINDS = frozenset(kind.value for kind in Kind)
FIRST_KINDS = frozenset((Kind.HELLO.value, Kind.PROOF.value))
"""What may be said before it is known who speaks, and never again."""


class Malformed(Exception):
    """What came is no message of this protocol."""


def head_of(kind: int, number: int, size: int) -> bytes:
    """The sixteen bytes before a body of so many."""
    assert size <= MESSAGE_BYTES_MAX, f"a message of {size} bytes"
    return HEAD.pack(size, kind, 0, 0, number)


def checked_head(received: memoryview, position: int, *, is_known: bool) -> tuple[int, int, int]:
    """Size of the body, kind and id of what begins there. `is_known`: the other side has said who it is."""
    size, kind, flags, reserved, number = HEAD.unpack_from(received, position)
    size_max = MESSAGE_BYTES_MAX if is_known else HELLO_BYTES_MAX
    if size > size_max:
        raise Malformed(f"a message of {size} bytes where {size_max} are the most")
    if kind not in KINDS:
        raise Malformed(f"a message of kind {kind}")
    if flags or reserved:
        raise Malformed(f"a message with flags {flags} and {reserved} in the reserved bytes")
    if (kind in FIRST_KINDS) is is_known:
        raise Malformed(f"{Kind(kind).name} {'behind' if is_known else 'before'} the greeting")
    return size, kind, number
