"""The frame: 34 bytes that stand before each batch on disk.

A frame names its batch (offset, largest timestamp, lane, length) so that a scan can walk a file
without opening batches. Its CRC-32C covers its own fields and the first 21 bytes of the batch, the
part which the batch's own CRC leaves out: together the two checksums cover every byte that matters.
"""

from struct import Struct
from typing import NamedTuple

from crc32c import crc32c

from goqueue.model.transactions import Marker
from goqueue.records.control import marker_of
from goqueue.records.layout import (
    ATTRIBUTES_POSITION,
    CODEC_MASK,
    CONTROL,
    CRC_END,
    HEADER_BYTES,
    LENGTH_END,
    TRANSACTIONAL,
    BatchHeader,
)

FRAME_MAGIC = b"GQ"
FRAME_VERSION = 2
FLAG_COMPRESSED = 0x01
FLAG_CONTROL = 0x08
FLAG_COMMIT = 0x10
FLAG_TRANSACTIONAL = 0x20

_FRAME = Struct(">2sBBIqqBBHIH")
FRAME_BYTES = _FRAME.size
_FIELDS = Struct(">qqBBHIH")
_PREFIX = Struct(">2sBBI")
_PREFIX_BYTES = _PREFIX.size
_FLAGS_POSITION = 3
_FLAGGED = CODEC_MASK | CONTROL | TRANSACTIONAL
"""Attributes of a batch that its frame has a flag for."""
_BODY_SIZE = Struct(">I")
_BODY_SIZE_POSITION = 28
_CONTINUES_POSITION = 25
_NS_PER_MS = 1_000_000
_LANES = 5
_HEADER_START = Struct(">qiibIhi")
"""As much of a batch's header as a scan looks at."""
_new_frame = tuple.__new__
"""Past the named tuple's own constructor: a log of single messages has a frame for each of them."""
_FRAME_START = FRAME_MAGIC + bytes([FRAME_VERSION])


def encode_frame(
    header: BatchHeader, body: memoryview, *, base_offset: int, lane: int, continues: bool = False
) -> bytes:
    """The frame for a batch whose base offset and leader epoch have been patched already.

    `continues`: the next frame was written in the same step. A crash must not leave one without the other.
    """
    flags = _flags_of(header.attributes, body)
    fields = _FIELDS.pack(base_offset, header.max_timestamp_ms * _NS_PER_MS, lane, continues, 0, len(body), 0)
    checksum = crc32c(body[:CRC_END], crc32c(fields))
    return _PREFIX.pack(FRAME_MAGIC, FRAME_VERSION, flags, checksum) + fields


def _flags_of(attributes: int, body: memoryview) -> int:
    """What a frame says of its batch."""
    flags = (
        (FLAG_COMPRESSED if attributes & CODEC_MASK else 0)
        | (FLAG_CONTROL if attributes & CONTROL else 0)
        | (FLAG_TRANSACTIONAL if attributes & TRANSACTIONAL else 0)
    )
    if flags & FLAG_CONTROL and marker_of(body) is Marker.COMMIT:
        flags |= FLAG_COMMIT
    return flags


def has_own_flags(data: memoryview, body_start: int, body_end: int) -> bool:
    """Whether a frame's flags are those of its batch: no checksum covers them, the batch tells them."""
    attributes = data[body_start + ATTRIBUTES_POSITION]
    if not attributes & _FLAGGED:  # most are plain, and there are thousands of them
        return not data[body_start - FRAME_BYTES + _FLAGS_POSITION]
    return data[body_start - FRAME_BYTES + _FLAGS_POSITION] == _flags_of(
        attributes, data[body_start:body_end] if attributes & CONTROL else data
    )


class Frame(NamedTuple):
    """One checked frame within a piece of a log file. Positions count from the start of that piece."""

    base_offset: int
    end_offset: int
    lane: int
    max_timestamp_ms: int
    leader_epoch: int
    body_start: int
    body_end: int
    continues: bool
    """The next frame belongs to the same append."""


class FrameScan(NamedTuple):
    """What a piece of a log file holds: whole good frames, then perhaps part of one, or a bad one."""

    frames: list[Frame]
    consumed_bytes: int
    """The good frames end here."""
    wanted_bytes: int
    """How many bytes from there would tell more of the frame that is only partly here; 0: none is."""
    problem: str
    """What is wrong with the frame behind the good ones; empty when nothing is."""


def scan_frames(data: memoryview, *, stop_offset: int, count_max: int | None = None) -> FrameScan:
    """Walk over frames, checking each in full; stop before one at or behind `stop_offset`, or at a count."""
    frames: list[Frame] = []
    position, end = 0, len(data)
    while end - position >= FRAME_BYTES:
        if len(frames) == count_max:
            return FrameScan(frames, position, 0, "")
        magic, version, _, checksum, offset, time_ns, lane, continues, _, size, _ = _FRAME.unpack_from(
            data, position
        )
        if magic != FRAME_MAGIC or version != FRAME_VERSION:
            return FrameScan(frames, position, 0, f"no frame of version {FRAME_VERSION} begins here")
        body_start = position + FRAME_BYTES
        body_end = body_start + size
        if size < HEADER_BYTES:
            return FrameScan(frames, position, 0, f"a frame cannot be {size} bytes long")
        if body_start + CRC_END > end:
            return FrameScan(frames, position, FRAME_BYTES + HEADER_BYTES, "")
        fields_crc = crc32c(data[position + _PREFIX_BYTES : body_start])
        if crc32c(data[body_start : body_start + CRC_END], fields_crc) != checksum:
            return FrameScan(frames, position, 0, "the frame does not match its checksum")
        if offset >= stop_offset:
            return FrameScan(frames, position, 0, "")
        if body_end > end:
            return FrameScan(frames, position, FRAME_BYTES + size, "")
        base_offset, length, epoch, _, batch_crc, _, last_delta = _HEADER_START.unpack_from(data, body_start)
        if crc32c(data[body_start + CRC_END : body_end]) != batch_crc:
            return FrameScan(frames, position, 0, "the batch does not match its checksum")
        if (
            base_offset != offset
            or length + LENGTH_END != size
            or lane >= _LANES
            or continues > 1
            or last_delta < 0
        ):
            return FrameScan(frames, position, 0, "frame and batch contradict each other")
        end_offset = offset + last_delta + 1
        frames.append(
            _new_frame(
                Frame,
                (
                    offset,
                    end_offset,
                    lane,
                    time_ns // _NS_PER_MS,
                    epoch,
                    body_start,
                    body_end,
                    continues == 1,
                ),
            )
        )
        position = body_end
    return FrameScan(frames, position, FRAME_BYTES + HEADER_BYTES if position < end else 0, "")


def frame_borders(data: memoryview) -> list[tuple[int, int, int]]:
    """Start, end and flags of each of the whole frames in a piece that has been checked already."""
    borders = []
    position, end = 0, len(data)
    while position < end:
        size = FRAME_BYTES + _BODY_SIZE.unpack_from(data, position + _BODY_SIZE_POSITION)[0]
        borders.append((position, position + size, data[position + _FLAGS_POSITION]))
        position += size
    return borders


def whole_steps(data: memoryview, *, count_max: int) -> tuple[int, int]:
    """Where the last whole step ends in a piece of checked frames, and the offset behind; (0, -1): nowhere.

    A step is what was written in one append: frames that continue, and the one that ends them. Behind so many
    frames no more steps are counted in.
    """
    position, end, count = 0, len(data), 0
    step_end, last_position = 0, -1
    while position < end and (count < count_max or last_position < 0):
        count += 1
        size = FRAME_BYTES + _BODY_SIZE.unpack_from(data, position + _BODY_SIZE_POSITION)[0]
        if not data[position + _CONTINUES_POSITION]:
            step_end, last_position = position + size, position
        position += size
    if last_position < 0:
        return 0, -1
    fields = _HEADER_START.unpack_from(data, last_position + FRAME_BYTES)
    return step_end, fields[0] + fields[-1] + 1


def find_behind(data: memoryview, position: int) -> tuple[int, int] | None:
    """The same behind a bad frame at a position: where that ends, if its head is good, else wherever one is.

    What a message holds may look like a frame; a head that matches its checksum tells that it is none.
    """
    if (head := find_frame(data[position : position + FRAME_BYTES + CRC_END], 0)) and not head[0]:
        position += FRAME_BYTES + _BODY_SIZE.unpack_from(data, position + _BODY_SIZE_POSITION)[0]
        return find_frame(data, position)
    return find_frame(data, position + 1)


def find_frame(data: memoryview, position: int) -> tuple[int, int] | None:
    """Where the next frame begins whose head matches its checksum, and its offset: the way past a bad one."""
    haystack = bytes(data)
    while (position := haystack.find(_FRAME_START, position)) >= 0:
        body_start = position + FRAME_BYTES
        if body_start + CRC_END > len(haystack):
            return None
        checksum, offset = _FRAME.unpack_from(haystack, position)[3:5]
        if crc32c(haystack[position + _PREFIX_BYTES : body_start + CRC_END]) == checksum:
            return position, offset
        position += 1
    return None
