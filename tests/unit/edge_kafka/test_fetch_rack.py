"""The rack of a reader stands at the end of its fetch, behind what a session is to forget."""

from uuid import UUID

import pytest

from goqueue.edge.kafka.fetch import _FORGOTTEN_MAX, _read_rack
from goqueue.edge.kafka.wire import INT32, NO_TAGS, Reader, count, string


def behind_the_topics(version: int, forgotten: int) -> Reader:
    flexible = version >= 12
    topic = UUID(int=7).bytes if version >= 13 else string("orders", flexible=flexible)
    partitions = count(2, flexible=flexible) + INT32.pack(0) + INT32.pack(1)
    each = topic + partitions + (NO_TAGS if flexible else b"")
    packed = count(forgotten, flexible=flexible) + each * forgotten + string("north", flexible=flexible)
    return Reader(memoryview(packed))


@pytest.mark.parametrize("version", [11, 12, 13, 16])
@pytest.mark.parametrize("forgotten", [0, 1, _FORGOTTEN_MAX])
def test_the_rack_is_found_behind_what_a_session_is_to_forget(version: int, forgotten: int) -> None:
    assert _read_rack(version, behind_the_topics(version, forgotten)) == "north"


@pytest.mark.parametrize("version", [11, 13])
def test_nobody_reads_on_behind_very_many_forgotten_topics(version: int) -> None:
    reader = behind_the_topics(version, _FORGOTTEN_MAX + 1)
    left = reader.left

    assert _read_rack(version, reader) == ""
    assert left - reader.left <= 5
