"""The walks along a chain of records: each finds the same places."""

from itertools import pairwise

import numpy as np
import pytest

from goqueue.model.errors import InvalidRecord
from goqueue.model.messages import Message
from goqueue.records.layout import HEADER_BYTES
from goqueue.records.varints import read_varint
from goqueue.records.walk import LOCK_STEP_CHAINS, find_records
from tests.unit.spark.framed import batch

MANY = LOCK_STEP_CHAINS + 20


def records_of(sizes: list[int]) -> bytes:
    return bytes(batch([Message(bytes(size)) for size in sizes])[HEADER_BYTES:])


def walked(batches: list[list[int]]) -> tuple[list[int], list[int]]:
    """What the walk finds, and what a step by step reading finds."""
    pieces = [records_of(sizes) for sizes in batches]
    data = b"".join(pieces)
    edges = np.cumsum([0, *map(len, pieces)]).tolist()
    naive = []
    for (position, end), sizes in zip(pairwise(edges), batches, strict=True):
        for _ in sizes:
            naive.append(position)
            size, body = read_varint(data, position)
            position = body + size
        assert position == end
    raw = np.frombuffer(data, np.uint8)
    return find_records(raw, edges[:-1], edges[1:], [len(sizes) for sizes in batches]).tolist(), naive


@pytest.mark.parametrize(
    "batches",
    [
        pytest.param([[100] * 3_000], id="one size"),
        pytest.param([[100] * 50 + [101] * 50 + [20_000] * 10], id="a few sizes"),
        pytest.param([[n * 37 % 160 for n in range(500)]] * 3, id="varying"),
        pytest.param([[n * 7 % 11 * 3_000 for n in range(30)]], id="sizes of one to three bytes"),
        pytest.param([[n % 90 for n in range(20)]] * MANY, id="many small batches"),
        pytest.param([[n * 37 % 160 for n in range(1 + b)] for b in range(MANY)], id="more and more records"),
        pytest.param([[n * 37 % 160 for n in range(300)]] * MANY, id="many batches of varying sizes"),
        pytest.param([[9_000, 5, 70]] * MANY, id="many batches with long records"),
        pytest.param([[100] * 200] * 5 + [[n * 37 % 160 for n in range(200)]] * 5, id="even, then varying"),
        pytest.param([[100] * 200] * 6, id="the same again and again"),
        pytest.param([[9_000] * 20] * 6, id="the same, with sizes of three bytes"),
        pytest.param([[100] * 50 + [90] * 50, [90] * 50 + [100] * 50] * 3, id="as long, but not the same"),
        pytest.param([[0]], id="a single record"),
    ],
)
def test_every_record_is_found(batches: list[list[int]]) -> None:
    found, expected = walked(batches)

    assert found == expected


@pytest.mark.parametrize("first", [b"\x03", b"\x7e", b"\xff\xff\xff\xff\x0f"])
def test_a_size_that_leads_out_of_the_batch_is_refused(first: bytes) -> None:
    raw = np.frombuffer(first + bytes(20), np.uint8)

    with pytest.raises(InvalidRecord):
        find_records(raw, [0], [len(raw)], [3])
