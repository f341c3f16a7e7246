"""Redo: what the commit log holds of a partition is put into its files, before they are read.

A piece is bytes and their place, so doing it twice is doing it once. What a recovery point vouches for needs
no piece: it was synced before. Nothing is ever cut here: behind a piece may lie what was synced directly. A
piece without bytes says that those before it count for nothing: the log was about to be cut, and its own
files had everything (`log/cutting.py`).
"""

from collections.abc import Sequence
from uuid import UUID

from goqueue.log.commit_log import PieceBytes
from goqueue.log.segment import LOG_SUFFIX
from goqueue.log.snapshot import vouched_offset
from goqueue.model.ports import Disk


def redo(disk: Disk, folder: str, topic_id: UUID, pieces: Sequence[PieceBytes]) -> int | None:
    """Bring a partition's files to what was committed. Waits for the disk; does not sync.

    Returns the offset before which all was committed, as far as the pieces tell; None: they tell nothing. A
    piece that would leave a hole is passed over: opening finds that the log ends before that offset.
    """
    vouched_end = vouched_offset(disk, folder)
    own = [
        (piece, data)
        for piece, data in _since_voided([found for found in pieces if found[0].topic_id == topic_id])
        if vouched_end is None or piece.end_offset > vouched_end
    ]
    names = set(disk.list(folder))
    for piece, data in own:
        name = f"{piece.segment_base:020d}{LOG_SUFFIX}"
        if piece.position and name not in names:
            continue
        names.add(name)
        file = disk.open_placed(f"{folder}/{name}")
        try:
            if file.size() >= piece.position:
                # Also when the bytes are there: after an fsync that failed the OS may show bytes that the
                # disk does not have, and never write them again by itself.
                file.write(piece.position, data)
        finally:
            file.close()
    return max((piece.end_offset for piece, _ in own), default=None)


def _since_voided(own: Sequence[PieceBytes]) -> Sequence[PieceBytes]:
    """The pieces of a partition that still count."""
    voided = [at for at, (piece, _) in enumerate(own) if piece.is_voiding]
    return own[voided[-1] + 1 :] if voided else own
