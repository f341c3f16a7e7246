"""Numbers of varying length, many at a time: as one at a time would read them."""

import numpy as np
import pytest

from goqueue.model.errors import InvalidRecord
from goqueue.records.varints import fold, read_varint, read_varints, varint_columns, varint_sizes


def written(numbers: list[int]) -> tuple[bytes, list[int]]:
    """The numbers as bytes, one behind the other, and where each begins."""
    folded = fold(np.array(numbers, np.int64))
    sizes = varint_sizes(folded)
    columns = varint_columns(folded, sizes)
    rows = [bytes(int(byte[at]) for byte, is_there in columns if is_there[at]) for at in range(len(numbers))]
    return b"".join(rows), (np.cumsum(sizes) - sizes).tolist()


@pytest.mark.parametrize(
    "numbers",
    [
        pytest.param([0, -1, 1, 63, -64], id="one byte"),
        pytest.param([64, 100, -65, 8_191, -8_192], id="two bytes"),
        pytest.param([5, 100, -3, 8_000, 0], id="one and two bytes"),
        pytest.param([0, 100, 8_192, -8_193, 2**20, 7], id="up to three bytes"),
        pytest.param([2**63 - 1, -(2**63), 0, 2**31, -(2**31)], id="up to ten bytes"),
    ],
)
def test_many_numbers_are_read_as_one_by_one(numbers: list[int]) -> None:
    data, starts = written(numbers)

    found, after = read_varints(np.frombuffer(data, np.uint8), np.array(starts))

    assert found.tolist() == numbers
    assert list(zip(found.tolist(), after.tolist(), strict=True)) == [
        read_varint(data, start) for start in starts
    ]


@pytest.mark.parametrize("data", [b"\x80", b"\x01\x80\x80", b"\x02\xff\xff\xff"], ids=bytes.hex)
def test_a_number_that_the_buffer_cuts_off_is_noticed(data: bytes) -> None:
    with pytest.raises(IndexError):
        read_varints(np.frombuffer(data, np.uint8), np.array([min(1, len(data) - 1)]))


def test_a_number_without_an_end_is_refused() -> None:
    with pytest.raises(InvalidRecord, match="more than ten bytes"):
        read_varints(np.frombuffer(b"\xff" * 20, np.uint8), np.array([0]))
