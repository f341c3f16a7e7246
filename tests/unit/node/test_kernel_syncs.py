"""Syncs that the kernel does by itself end as those of a thread do, and threads do them where it cannot."""

import asyncio
import errno
import platform
from collections.abc import Iterator
from pathlib import Path

import pytest

from goqueue.node.disk import DiskPlacedFile
from goqueue.node.kernel_syncs import KernelSyncs, open_kernel_syncs
from goqueue.node.threads import WorkerThreads


@pytest.fixture
def workers() -> Iterator[WorkerThreads]:
    workers = WorkerThreads(count=2)
    yield workers
    workers.close()


@pytest.fixture
def file(tmp_path: Path) -> Iterator[DiskPlacedFile]:
    file = DiskPlacedFile(tmp_path / "commit")
    file.write(0, b"a round")
    yield file
    file.close()


async def opened() -> KernelSyncs:
    kernel = open_kernel_syncs(asyncio.get_running_loop())
    if kernel is None:
        pytest.skip(f"this kernel takes no such orders ({platform.platform()})")
    return kernel


def test_a_file_is_synced_without_a_thread(workers: WorkerThreads, file: DiskPlacedFile) -> None:
    async def main() -> None:
        (await opened()).close()
        for _ in range(100):
            await workers.sync(file)

    asyncio.run(main())

    assert not workers._workers


def test_more_at_once_than_the_kernel_was_asked_to_hold_go_to_threads(
    workers: WorkerThreads, file: DiskPlacedFile
) -> None:
    async def main() -> None:
        await asyncio.gather(*(workers.sync(file) for _ in range(100)))

    asyncio.run(main())


def test_a_sync_that_nobody_waits_for_any_more_does_no_harm(file: DiskPlacedFile) -> None:
    async def main() -> None:
        kernel = await opened()
        kernel.begin(file.descriptor).cancel()
        await kernel.begin(file.descriptor)
        kernel.close()

    asyncio.run(main())


def test_a_closed_file_is_an_error_and_the_next_one_is_synced(
    workers: WorkerThreads, file: DiskPlacedFile, tmp_path: Path
) -> None:
    closed = DiskPlacedFile(tmp_path / "closed")
    closed.close()

    async def main() -> None:
        with pytest.raises(OSError) as caught:
            await workers.sync(closed)
        assert caught.value.errno == errno.EBADF
        await workers.sync(file)

    asyncio.run(main())


def test_what_the_disk_says_reaches_whoever_waits(file: DiskPlacedFile) -> None:
    async def main() -> None:
        kernel = await opened()
        done = kernel.begin(file.descriptor)
        [number] = kernel._waiting
        kernel.end(number, -errno.EIO)  # no disk that fails is at hand
        with pytest.raises(OSError) as caught:
            await done
        assert caught.value.errno == errno.EIO
        kernel.close()

    asyncio.run(main())


@pytest.mark.parametrize("missing", ["call", "order"])
def test_where_the_kernel_cannot_threads_do_it(
    workers: WorkerThreads, file: DiskPlacedFile, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EINVAL, "unknown")

    if missing == "call":
        monkeypatch.setattr(platform, "machine", lambda: "another")
    else:
        monkeypatch.setattr(KernelSyncs, "begin", refuse)

    async def main() -> None:
        await workers.sync(file)
        await workers.sync(file)

    asyncio.run(main())

    assert len(workers._workers) == 1
