"""Memory of frames is used again, but never while somebody looks at it."""

import pytest

from goqueue.edge.kafka.frame_memory import LARGEST_KEPT_BYTES, SMALLEST_KEPT_BYTES, FrameMemory
from goqueue.model.settings import MiB


@pytest.mark.parametrize(
    "size", [1, SMALLEST_KEPT_BYTES, MiB - 1, LARGEST_KEPT_BYTES, LARGEST_KEPT_BYTES + 1]
)
def test_a_frame_has_the_size_asked_for_and_can_be_written(size: int) -> None:
    frame = FrameMemory().take(size)

    frame[-1:] = b"x"

    assert len(frame) == size
    assert not frame.readonly


def test_memory_that_was_given_back_is_used_for_the_next_frame_of_its_size() -> None:
    memory = FrameMemory()
    first = memory.take(MiB - 5)
    buffer = first.obj
    memory.give_back(first)

    second = memory.take(MiB - 100)

    assert second.obj is buffer
    assert len(second) == MiB - 100
    assert memory.kept_bytes == 0


def test_memory_that_somebody_still_looks_at_is_not_used_again() -> None:
    memory = FrameMemory()
    frame = memory.take(MiB)
    frame[:4] = b"kept"
    batch = frame[:4]
    memory.give_back(frame)

    memory.take(MiB)[:4] = b"next"

    assert bytes(batch) == b"kept"


def test_no_more_is_kept_than_allowed() -> None:
    memory = FrameMemory(kept_bytes_max=2 * MiB)
    frames = [memory.take(MiB) for _ in range(5)]

    for frame in frames:
        memory.give_back(frame)

    assert memory.kept_bytes == 2 * MiB


@pytest.mark.parametrize("size", [SMALLEST_KEPT_BYTES - 1, LARGEST_KEPT_BYTES + 1])
def test_small_and_large_frames_are_left_to_the_allocator(size: int) -> None:
    memory = FrameMemory()

    memory.give_back(memory.take(size))

    assert memory.kept_bytes == 0
