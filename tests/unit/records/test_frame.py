"""Frames: the 34 bytes before each batch on disk, as the design lays them out."""

from crc32c import crc32c

from goqueue.model.messages import Message
from goqueue.records.batch import encode
from goqueue.records.frame import FRAME_BYTES, encode_frame, scan_frames
from goqueue.records.layout import patch, read_header

NO_STOP = 2**63 - 1


def framed(base_offset: int, *values: bytes, lane: int = 2) -> bytes:
    [(body, _)] = encode([Message(value) for value in values], now_ms=1_700_000_000_123)
    patch(body, base_offset=base_offset, leader_epoch=3)
    return encode_frame(read_header(body), body, base_offset=base_offset, lane=lane) + bytes(body)


def test_a_frame_lies_on_disk_as_the_design_says() -> None:
    data = framed(5, b"hello", lane=1)

    assert FRAME_BYTES == 34
    assert data[0:2] == b"GQ"
    assert data[2] == 2
    assert data[3] == 0
    assert int.from_bytes(data[4:8], "big") == crc32c(data[8:34] + data[34 : 34 + 21])
    assert int.from_bytes(data[8:16], "big") == 5
    assert int.from_bytes(data[16:24], "big") == 1_700_000_000_123 * 1_000_000
    assert (data[24], data[25]) == (1, 0)
    assert data[26:28] == b"\0\0"
    assert int.from_bytes(data[28:32], "big") == len(data) - 34
    assert data[32:34] == b"\0\0"


def test_a_scan_finds_whole_frames_and_tells_how_much_the_next_one_needs() -> None:
    data = framed(0, b"a", b"b") + framed(2, b"c")
    whole = len(framed(0, b"a", b"b"))

    scan = scan_frames(memoryview(data)[:-1], stop_offset=NO_STOP)

    assert [(f.base_offset, f.end_offset, f.leader_epoch) for f in scan.frames] == [(0, 2, 3)]
    assert (scan.consumed_bytes, scan.wanted_bytes, scan.problem) == (whole, len(data) - whole, "")


def test_a_scan_stops_before_the_offset_it_may_not_pass() -> None:
    data = framed(0, b"a") + framed(1, b"b")

    scan = scan_frames(memoryview(data), stop_offset=1)

    assert [frame.base_offset for frame in scan.frames] == [0]
    assert scan.problem == ""


def test_no_flipped_bit_goes_unseen() -> None:
    first, second = framed(0, b"first"), framed(1, b"second")
    for position in range(len(first), len(first) + len(second)):
        data = bytearray(first + second)
        data[position] ^= 0x10

        scan = scan_frames(memoryview(data), stop_offset=NO_STOP)

        # The flags byte alone is outside both checksums; it repeats what the batch's attributes say.
        is_flags = position == len(first) + 3
        assert [frame.base_offset for frame in scan.frames] == ([0, 1] if is_flags else [0])
        assert is_flags or scan.problem or scan.wanted_bytes


def test_a_tail_of_zeros_is_no_frame() -> None:
    scan = scan_frames(memoryview(framed(0, b"a") + bytes(100)), stop_offset=NO_STOP)

    assert len(scan.frames) == 1
    assert scan.problem
