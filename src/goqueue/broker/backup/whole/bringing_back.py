"""Bringing a whole backup back: into an empty folder, on which a broker then starts as after a power cut.

Everything is checked while it is copied. A folder counts as restored when its last file is there: the
metadata journal, without which no broker begins.
"""

from collections.abc import Callable, Sequence
from uuid import UUID

from goqueue.broker.backup.whole.catalogue import Catalogue
from goqueue.broker.storage.data_folder import LOGS_FOLDER
from goqueue.log.aborted_index import AbortedIndex
from goqueue.log.commit_log import COMMIT_FOLDER
from goqueue.log.cutting import let_go_points
from goqueue.log.recovery import find_bases, recover
from goqueue.model.errors import Corrupt
from goqueue.model.ports import Disk
from goqueue.model.whole_backups import CopiedFile, Manifest, PartitionCut

Told = Callable[[int], None]
"""Hears how many bytes more are done."""
_METADATA = f"{LOGS_FOLDER}/__metadata/"


def check(catalogue: Catalogue, manifest: Manifest, tell: Told) -> list[str]:
    """Read all objects back; what is wrong with any of them."""
    problems = []
    for file in manifest.files:
        for extent in file.extents:
            try:
                tell(len(catalogue.read(extent)))
            except Corrupt as error:
                problems.append(f"{file.path}: {error}")
    return problems


def bring_back(catalogue: Catalogue, manifest: Manifest, disk: Disk, tell: Told) -> None:
    """Raises Corrupt when a byte is not what it was; nothing in the folder counts then."""
    last = [file for file in manifest.files if file.path.startswith(_METADATA)]
    first = [file for file in manifest.files if not file.path.startswith(_METADATA)]
    _write_all(catalogue, first, disk, tell)
    for partition in manifest.partitions:
        if not partition.folder.startswith(_METADATA):
            _cut(disk, partition)
    disk.make_folder(COMMIT_FOLDER)  # empty: all is in the files of the partitions
    _write_all(catalogue, last, disk, tell)
    for partition in manifest.partitions:
        if partition.folder.startswith(_METADATA):
            _cut(disk, partition)


def _write_all(catalogue: Catalogue, files: Sequence[CopiedFile], disk: Disk, tell: Told) -> None:
    for file in files:
        _write(catalogue, file, disk, tell)
    for folder in {file.path.rpartition("/")[0] for file in files}:
        disk.sync_folder(folder)


def _write(catalogue: Catalogue, copied: CopiedFile, disk: Disk, tell: Told) -> None:
    disk.make_folder(copied.path.rpartition("/")[0])
    file = disk.open(copied.path)
    try:
        for extent in copied.extents:
            file.append([catalogue.read(extent)])
            tell(extent.size)
        file.sync()
    finally:
        file.close()


def _cut(disk: Disk, partition: PartitionCut) -> None:
    """Take away what its files hold beyond the moment, as a start does after a power cut."""
    folder, end_offset = partition.folder, partition.end_offset
    disk.make_folder(folder)
    topic_id = UUID(partition.topic_id)
    if find_bases(disk, folder):
        let_go_points(
            disk,
            folder,
            end_offset,
            start_offset=partition.start_offset,
            gaps=partition.gaps,
            topic_id=topic_id,
        )
    recovered = recover(
        disk,
        folder,
        restore_producers=lambda _: None,
        on_batch=lambda *_: None,
        aborted=AbortedIndex(disk, folder),
        end_limit=end_offset,
    )
    found = recovered.active.end_offset if recovered.active is not None else end_offset
    for segment in recovered.segments:
        segment.close()
    if recovered.damage is not None or found != end_offset:
        why = recovered.damage.reason if recovered.damage is not None else f"it ends at {found}"
        raise Corrupt(f"{folder} of the backup cannot be cut at offset {end_offset}: {why}")
