"""The bug that the commit mark ended, planted: readers see what is written before the disk has it."""

import asyncio

import pytest

from goqueue.broker.storage.partition import Partition


def show_what_is_written(patch: pytest.MonkeyPatch) -> None:
    """Let the mark be where the log is written to; acks=all still waits for the disk."""

    def committed(self: Partition, end_offset: int) -> "asyncio.Future[None] | None":
        if end_offset <= self.log.flushed_offset:
            return None
        return self._wait_for_mark(end_offset, None)

    written_end = property(lambda self: self._log.end_offset, lambda *_: None)
    patch.setattr(Partition, "commit_mark", written_end, raising=False)
    patch.setattr(Partition, "committed", committed)
    patch.setattr(Partition, "hurry", lambda self: None)  # nobody waits for what is seen already
    patch.setattr(Partition, "commit_written", lambda self: None)
