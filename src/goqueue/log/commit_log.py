"""The commit log: what many partitions have written becomes safe with one fdatasync.

Partition files are where messages live. A round takes the new bytes of every partition that somebody waits
for, writes them here one behind the other, and asks the disk once. The partitions' own files are synced
later, off the way of those who wait, and then the oldest file here is used again. After a crash `redo` puts
into the partitions what their files may lack.

The invariant: a round is written when the one before is on the disk, and never behind one that failed: then
a new file is begun, which says by its first number that what the failed file holds from there on counts for
nothing. So what is found is what was answered for, and perhaps the one round that nobody was told of.
"""

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from errno import ENOSPC
from itertools import groupby
from operator import itemgetter
from uuid import UUID

from goqueue.log.commit_rounds import (
    ROUND_HEADER_BYTES,
    SPOILT,
    FoundPiece,
    FoundRounds,
    Piece,
    encode_first,
    encode_round,
    next_salt,
    round_bytes,
    scan_rounds,
    voiding,
)
from goqueue.model.errors import CommitLogDamaged
from goqueue.model.ports import Disk, PlacedFile
from goqueue.model.settings import KiB, MiB

log = logging.getLogger(__name__)

COMMIT_FOLDER = "commit"
_SPARE = "spare"
_NAME = re.compile(r"[0-9]{20}")
_NO_LIMIT = 2**63 - 1
PieceBytes = tuple[FoundPiece, bytes]
_Place = tuple[int, FoundPiece]
"""The number of a file, and a piece in it."""
_SHARE_OF_DISK = 64
"""A file takes one part in so many of what is free: on a small disk messages come first."""
_FILE_BYTES_MIN = 64 * KiB
_FIRST_FILE_BYTES = 1 * MiB


class NoRoomForRound(OSError):
    """The commit log cannot take a round now: the partitions' own files must be synced instead."""

    def __init__(self, reason: str) -> None:
        super().__init__(ENOSPC, reason)


class CommitLog:
    """Its files, oldest first. What reads or writes them waits for the disk: call it from threads.

    What writes (`commit`, `seal`, `cut`, `clear`) is the flusher's business, one after the other. A small
    round can be written on the loop as well: `write` it, sync the file it names, `confirm` it or `give_up`.
    """

    def __init__(self, disk: Disk, *, draw_salt: Callable[[], int], file_bytes: int, files_max: int) -> None:
        self._disk = disk
        self._draw_salt = draw_salt
        self._file_bytes = file_bytes
        self._files_max = files_max
        self._numbers: list[int] = []
        self._active: PlacedFile | None = None
        self._active_bytes = 0
        self._position = 0
        self._salt = 0
        self._next_round = 1
        self._next_file = 1
        self._begun_count = 0
        self._found: dict[str, list[_Place]] | None = None
        """While the broker starts: what the last life has left, by folder."""
        self._is_failed = False
        """What the last file holds at its end is unknown, and no newer file says so yet."""
        self.is_new = True
        """There was no folder of it: after the first start of a broker that means loss."""
        self._written_bytes = 0
        """How much the round has that was written last, and perhaps not confirmed."""
        self.round_count = 0
        self.written_bytes = 0

    @property
    def is_on(self) -> bool:
        """Whether it takes rounds at all."""
        return self._files_max > 0

    @property
    def round_bytes_max(self) -> int:
        return self._file_bytes // 4

    @property
    def next_number(self) -> int:
        """The file that the next round goes to, unless it has to begin another."""
        return self._next_file if self._active is None else self._numbers[-1]

    def has_before(self, number: int) -> bool:
        """Whether there are older files than this one."""
        return bool(self._numbers) and self._numbers[0] < number

    def holds(self, folder: str) -> bool:
        """While the broker starts: whether there is anything of a partition here."""
        return self._found is not None and folder in self._found

    @property
    def paths(self) -> list[str]:
        """Its files, oldest first."""
        return [_path(number) for number in self._numbers]

    def check(self) -> None:
        """Raises CommitLogDamaged when a round is missing that is no torn end. Changes nothing."""
        _check(self._scan())

    def open(self, *, is_damage_accepted: bool = False) -> None:
        """See what an earlier life has left. Raises CommitLogDamaged.

        Nothing of it is used again before `cut`. New rounds go to a new file.
        """
        files = list(self._scan())
        if not is_damage_accepted:
            _check(files)
        self._found = {}
        self.is_new = COMMIT_FOLDER not in self._disk.list("")
        if self.is_new:
            return
        rounds = None
        for number, rounds in files:
            self._numbers.append(number)
            self._next_round = rounds.end_round
            for piece in rounds.pieces:
                self._found.setdefault(piece.folder, []).append((number, piece))
        if rounds is not None:
            self._keep(self._numbers[-1], rounds.end_position)
        for number in set(self._names()).difference(self._numbers):
            self._disk.remove(_path(number))  # it was being made when the process ended
        self._disk.sync_folder(COMMIT_FOLDER)
        self._next_file = max(self._numbers, default=0) + 1

    def make_folder(self) -> None:
        """Nobody misses it: it may be made, if it is not there."""
        self._disk.make_folder(COMMIT_FOLDER)

    def _keep(self, number: int, end_position: int) -> None:
        """Make sure that the disk has what was found: a killed process had perhaps not waited for it."""
        file = self._disk.open_placed(_path(number))
        try:
            # Written anew, since of a sync that failed the OS keeps nothing that a second one would try.
            file.write(0, file.read(0, end_position))
            file.sync()
        finally:
            file.close()

    def end_start(self) -> None:
        """All partitions are open, and what was found has been put into their files."""
        self._found = None

    def left_of(self, folder: str) -> list[PieceBytes]:
        """While the broker starts: what the last life has left of a partition, in the order of writing."""
        return self._with_bytes([] if self._found is None else self._found.get(folder, []))

    def pieces_of(self, folder: str) -> list[PieceBytes]:
        """What lies here of a partition now. Reads all of the commit log."""
        return self._with_bytes(
            (number, piece)
            for number, rounds in self._scan()
            for piece in rounds.pieces
            if piece.folder == folder
        )

    def _with_bytes(self, places: Iterable[_Place]) -> list[PieceBytes]:
        found: list[PieceBytes] = []
        for number, own in groupby(places, key=itemgetter(0)):
            file = self._disk.open_existing(_path(number))
            try:
                found += [(piece, file.read(piece.start, piece.end - piece.start)) for _, piece in own]
            finally:
                file.close()
        return found

    def void(self, folder: str, topic_id: UUID) -> None:
        """Never put back what lies here of a partition: its own files have it, and are about to be cut.

        OSError: that cannot be had now, and the partition must not be cut. This may take one file more than
        there should be: whoever cuts has nobody else to turn to.
        """
        if self._numbers:
            self.commit([voiding(folder, topic_id)], files_max=len(self._numbers) + 1)

    def commit(self, pieces: Sequence[Piece], *, files_max: int | None = None) -> int:
        """Make a round safe; the number of the file that holds it.

        NoRoomForRound: sync the partitions' own files instead. A round that failed may be on the disk or not;
        that is no harm, since it says what those files say, as long as nobody cuts them before `seal`.
        """
        needed = round_bytes(pieces)
        if self._active is None or self._position + needed > self._active_bytes:
            self._begin_file(needed, files_max)
        if not self._is_written(pieces, needed):
            # A new file says that the old one's end counts for nothing, and takes the same round.
            self._begin_file(needed, files_max)
            if not self._is_written(pieces, needed):
                raise NoRoomForRound("two files of the commit log have failed, one behind the other")
        return self._numbers[-1]

    def write(self, pieces: Sequence[Piece], needed: int) -> PlacedFile | None:
        """Write a round; the file that is to be synced then. None: `commit` has to see to it.

        `needed`: what `round_bytes` says of it.
        """
        if self._active is None or self._position + needed > self._active_bytes:
            return None
        data = encode_round(pieces, salt=self._salt, round_number=self._next_round)
        try:
            self._active.write(self._position, data)
        except OSError as error:
            self.give_up(error)
            return None
        self._written_bytes = len(data)
        return self._active

    def confirm(self) -> int:
        """The disk has the round that was written last; the number of the file that holds it."""
        self._position += self._written_bytes
        self._next_round += 1
        self.round_count += 1
        self.written_bytes += self._written_bytes
        return self._numbers[-1]

    def give_up(self, error: BaseException) -> None:
        """The round that was written last has failed: nothing more is written to this file."""
        log.error("commit_log_failed file=%s reason=%s", _path(self._numbers[-1]), error)
        self._is_failed = True
        self._drop_active()

    def seal(self) -> None:
        """See to it that a failed round is never found: then what it holds may be cut from partitions."""
        if self._is_failed:
            self._begin_file(0)

    def cut(self, first_needed: int) -> None:
        """Everything before this file is in the partitions' own files, safely: use the files again."""
        while self._numbers and self._numbers[0] < first_needed:
            path = _path(self._numbers[0])
            if _SPARE in self._disk.list(COMMIT_FOLDER):
                self._disk.remove(path)
            else:
                self._spoil(path)
                self._disk.rename(path, f"{COMMIT_FOLDER}/{_SPARE}")
            # One by one, or a power cut could bring back an older file and not a newer one.
            self._disk.sync_folder(COMMIT_FOLDER)
            del self._numbers[0]

    def _spoil(self, path: str) -> None:
        """Under its next name a file must not look as if it had been begun, before it is."""
        file = self._disk.open_placed(path)
        try:
            file.write(0, SPOILT)
            file.sync()
        finally:
            file.close()

    def clear(self) -> None:
        """All of it is in the partitions' own files. Waits for the disk."""
        self.close()
        self.cut(self._next_file)

    def close(self) -> None:
        self._drop_active()

    def _begin_file(self, room_bytes: int, files_max: int | None = None) -> None:
        """Begin another file, which ends what the one before may hold."""
        if len(self._numbers) >= (self._files_max if files_max is None else files_max):
            raise NoRoomForRound("all files of the commit log are in use")
        number = self._next_file
        self._next_file += 1
        try:
            file = self._allocated(number)
            try:
                salt = next_salt(file.read(0, ROUND_HEADER_BYTES)) or self._draw_salt()
                first = encode_first(file_number=number, salt=salt, round_number=self._next_round)
                size = file.size()
                if len(first) + room_bytes > size:
                    raise NoRoomForRound("a round is larger than a file of the commit log")
                file.write(0, first)
                file.sync()
                self._disk.sync_folder(COMMIT_FOLDER)
            except OSError:
                file.close()
                raise
        except OSError as error:
            with suppress(OSError):
                self._disk.remove(_path(number))
            if isinstance(error, NoRoomForRound):
                raise
            raise NoRoomForRound(f"no file of the commit log can be begun: {error}") from error
        self._drop_active()
        self._active, self._active_bytes, self._position = file, size, len(first)
        self._salt = salt
        self._is_failed = False
        self._next_round += 1
        self._numbers.append(number)

    def _is_written(self, pieces: Sequence[Piece], needed: int) -> bool:
        """Write a round and wait for the disk."""
        file = self.write(pieces, needed)
        if file is None:
            return False
        try:
            file.sync()
        except OSError as error:
            self.give_up(error)
            return False
        self.confirm()
        return True

    def _allocated(self, number: int) -> PlacedFile:
        """A file under its name, with its room on the disk."""
        path = _path(number)
        has_spare = _SPARE in self._disk.list(COMMIT_FOLDER)
        if has_spare:
            self._disk.rename(f"{COMMIT_FOLDER}/{_SPARE}", path)
        # A broker that does little keeps little, and on a small disk messages come first.
        size = min(self._file_bytes, _FIRST_FILE_BYTES << min(self._begun_count, 16))
        if not has_spare:
            size = min(size, self._disk.space().free_bytes // _SHARE_OF_DISK)
            if size < min(self._file_bytes, _FILE_BYTES_MIN):
                raise NoRoomForRound("the disk is nearly full")
        self._begun_count += 1
        file = self._disk.open_placed(path)
        try:
            file.allocate(max(size, file.size()))
        except OSError:
            file.close()
            raise
        return file

    def _drop_active(self) -> None:
        if self._active is not None:
            self._active.close()
            self._active = None

    def _scan(self) -> Iterator[tuple[int, FoundRounds]]:
        """Every file that was begun, with its rounds."""
        files = [(number, self._read(number)) for number in self._names()]
        begun: list[tuple[int, memoryview, int]] = []
        for number, data in files:
            first = scan_rounds(data, file_number=number, before_round=0)
            if first is not None:
                # One that begins no earlier than the next was given up as soon as it was begun.
                begun = [known for known in begun if known[2] < first.first_round]
                begun.append((number, data, first.first_round))
        for at, (number, data, _) in enumerate(begun):
            before_round = begun[at + 1][2] if at + 1 < len(begun) else _NO_LIMIT
            rounds = scan_rounds(data, file_number=number, before_round=before_round)
            assert rounds is not None, "its first round has been read"
            yield number, rounds

    def _names(self) -> list[int]:
        return [int(name) for name in self._disk.list(COMMIT_FOLDER) if _NAME.fullmatch(name)]

    def _read(self, number: int) -> memoryview:
        file = self._disk.open_existing(_path(number))
        try:
            return memoryview(file.read(0, file.size()))
        finally:
            file.close()


def _check(files: Iterable[tuple[int, FoundRounds]]) -> None:
    """Raises CommitLogDamaged when a round is missing that is no torn end."""
    due = None
    for number, rounds in files:
        if due not in (None, rounds.first_round):
            raise CommitLogDamaged(_path(number), f"round {due} is missing")
        if rounds.is_damaged:
            raise CommitLogDamaged(_path(number), f"round {rounds.end_round} is missing")
        due = rounds.end_round


def is_commit_file(name: str) -> bool:
    """Whether a file in the folder of the commit log is one of its own."""
    return name == _SPARE or _NAME.fullmatch(name) is not None


def _path(number: int) -> str:
    return f"{COMMIT_FOLDER}/{number:020d}"
