"""How many headers the records of a large batch say they have, before anything is built for them.

A header without a name and a value takes two bytes in a batch and some ninety when it is opened: a batch of
six kilobytes, compressed, could take gigabytes. Records of small batches cannot say so many.
"""

from goqueue.model.errors import InvalidRecord
from goqueue.records.varints import read_varint

HEADERS_MAX = 4_000_000
LARGE_BYTES = 4 * 1024 * 1024
"""What has fewer bytes has fewer headers than there may be."""


def check_headers(records: memoryview, count: int) -> None:
    """Refuse so many records that say they have more headers than there may be.

    Where records are no records this ends early: the decoder stops at the same place and names it.
    """
    if len(records) <= LARGE_BYTES:
        return
    found = position = 0
    try:
        for _ in range(count):
            length, start = read_varint(records, position)
            position = start + length
            found += _headers_of(records, start)
            if found > HEADERS_MAX:
                raise InvalidRecord(f"the records of a batch have more than {HEADERS_MAX} headers")
    except IndexError:
        return


def _headers_of(records: memoryview, start: int) -> int:
    """The number of headers in the record whose attributes are at `start`."""
    _, position = read_varint(records, start + 1)  # its time
    _, position = read_varint(records, position)  # its offset
    for _ in ("key", "value"):
        length, position = read_varint(records, position)
        position += max(length, 0)
    return read_varint(records, position)[0]
