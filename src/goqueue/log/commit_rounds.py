"""The bytes of the commit log: rounds of pieces, each round written and found whole or not at all.

A round is a header with a checksum over all of it, and pieces: stretches of bytes with the place in a
partition's file where they belong. Every header repeats the salt of its file, which is another one at each
use: what an earlier use has left in it, or what a message pretends to be, is never taken for a round.
"""

from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple
from uuid import UUID

from crc32c import crc32c

NO_TOPIC = UUID(int=0)
"""As the journals of the broker have it, which are no topic's."""
_MAGIC = b"GQCL"
_HEADER = Struct(">4sI")
_FIELDS = Struct(">IQQ")
_PIECE = Struct(">H16sQQQI")
ROUND_HEADER_BYTES = _HEADER.size + _FIELDS.size
_FILE_NUMBER = Struct(">Q")
SPOILT = bytes(len(_MAGIC))
"""Written over the start of a file, it makes it one that was never begun."""


class Piece(NamedTuple):
    """Bytes of a partition's log and where they lie: in which segment, from which position on."""

    folder: str
    topic_id: UUID
    """A topic that was deleted and made anew has the same folder and another id."""
    segment_base: int
    position: int
    end_offset: int
    """Behind the last message in it."""
    data: bytes


def voiding(folder: str, topic_id: UUID) -> Piece:
    """A piece without bytes: what rounds before it hold of that partition is not put back any more."""
    return Piece(folder, topic_id, 0, 0, 0, b"")


class FoundPiece(NamedTuple):
    """A piece that a scan has met: its bytes are those from `start` to `end` of the commit log's file."""

    folder: str
    topic_id: UUID
    segment_base: int
    position: int
    end_offset: int
    start: int
    end: int

    @property
    def is_voiding(self) -> bool:
        return self.start == self.end


class FoundRounds(NamedTuple):
    """What a scan of one file has found."""

    first_round: int
    end_round: int
    """The number that the next round would have."""
    pieces: list[FoundPiece]
    end_position: int
    is_damaged: bool
    """Behind a round that is bad another one is good. No crash does that: each waits for the one before."""


def encode_first(*, file_number: int, salt: int, round_number: int) -> bytes:
    """What stands at the start of a file: a round without pieces that names the file."""
    return _encode(_FILE_NUMBER.pack(file_number), salt, round_number)


def next_salt(header: bytes) -> int:
    """A salt that no round in a file has which began with this header once; 0: take any."""
    salt: int = _FIELDS.unpack_from(header, _HEADER.size)[1]
    return (salt + 1) % 2**64 if salt else 0


def encode_round(pieces: Sequence[Piece], *, salt: int, round_number: int) -> bytes:
    """All bytes of a round."""
    parts: list[bytes] = []
    for folder, topic_id, segment_base, position, end_offset, data in pieces:
        name = folder.encode()
        parts += (
            _PIECE.pack(len(name), topic_id.bytes, segment_base, position, end_offset, len(data)),
            name,
            data,
        )
    return _encode(b"".join(parts), salt, round_number)


def round_bytes(pieces: Sequence[Piece]) -> int:
    """How many bytes a round of these pieces takes, or a little more."""
    return ROUND_HEADER_BYTES + sum(
        [_PIECE.size + 4 * len(piece.folder) + len(piece.data) for piece in pieces]
    )


def scan_rounds(data: memoryview, *, file_number: int, before_round: int) -> FoundRounds | None:
    """The rounds of a file up to the first bad one; None: the file was never begun.

    `before_round`: where the next file begins. What lies behind that number here has failed.
    """
    first = _read_round(data, 0, None)
    if first is None or bytes(data[ROUND_HEADER_BYTES : first.end]) != _FILE_NUMBER.pack(file_number):
        return None
    pieces: list[FoundPiece] = []
    position, due = first.end, first.number + 1
    while due < before_round:
        found = _read_round(data, position, first.salt)
        if found is None or found.number != due:
            break
        pieces += _pieces(data, position + ROUND_HEADER_BYTES, found.end)
        position, due = found.end, due + 1
    is_damaged = due < before_round and _goes_on(data, position, first.salt, due)
    return FoundRounds(first.number, due, pieces, position, is_damaged)


class _Round(NamedTuple):
    salt: int
    number: int
    end: int


def _encode(body: bytes, salt: int, round_number: int) -> bytes:
    fields = _FIELDS.pack(len(body), salt, round_number)
    return b"".join((_HEADER.pack(_MAGIC, crc32c(body, crc32c(fields))), fields, body))


def _read_round(data: memoryview, position: int, salt: int | None) -> _Round | None:
    """The round at a place, if there is a good one there, and one of this use of the file."""
    start = position + ROUND_HEADER_BYTES
    if start > len(data):
        return None
    magic, checksum = _HEADER.unpack_from(data, position)
    fields = data[position + _HEADER.size : start]
    length, found_salt, number = _FIELDS.unpack(fields)
    if magic != _MAGIC or start + length > len(data) or salt not in (None, found_salt):
        return None
    if crc32c(data[start : start + length], crc32c(fields)) != checksum:
        return None
    return _Round(found_salt, number, start + length)


def _pieces(data: memoryview, position: int, end: int) -> list[FoundPiece]:
    found = []
    while position < end:
        name_bytes, topic_id, segment_base, file_position, end_offset, size = _PIECE.unpack_from(
            data, position
        )
        position += _PIECE.size
        folder = bytes(data[position : position + name_bytes]).decode()
        position += name_bytes
        found.append(
            FoundPiece(
                folder,
                UUID(bytes=topic_id),
                segment_base,
                file_position,
                end_offset,
                position,
                position + size,
            )
        )
        position += size
    return found


def _goes_on(data: memoryview, position: int, salt: int, due: int) -> bool:
    """Whether a later round of this use of the file is good."""
    whole = bytes(data)
    while (position := whole.find(_MAGIC, position + 1)) >= 0:
        found = _read_round(data, position, salt)
        if found is not None and found.number > due:
            return True
    return False
