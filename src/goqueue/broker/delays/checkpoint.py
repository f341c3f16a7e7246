"""The checkpoint of the delays: what a restart begins from, in one small file.

It names the runs and says up to which offset of `__delayed` they hold all entries; what lies behind is read
back from the log. And it keeps what has been delivered to each partition, and where in that partition's own
log to look for deliveries that came later.
"""

from base64 import b64decode, b64encode
from struct import Struct
from uuid import UUID

import msgspec
from crc32c import crc32c

from goqueue.broker.delays.runs import RunName
from goqueue.broker.storage.data_folder import CHECKPOINT_FILE, DELAYS_FOLDER
from goqueue.core.delays.delivered import Step
from goqueue.core.delays.held import HeldMessage
from goqueue.core.delays.marks import Mark
from goqueue.model.errors import Corrupt
from goqueue.model.ports import Disk

_PATH = f"{DELAYS_FOLDER}/{CHECKPOINT_FILE}"
_CHECKSUM = Struct(">I")


class TargetState(msgspec.Struct, array_like=True):
    """A partition that delayed messages go to."""

    topic_id: UUID
    partition: int
    steps: list[Step]
    scan_offset: int
    """Every delivery before this offset of the partition's log is in `steps`."""


class Totals(msgspec.Struct):
    """Counts since the beginning."""

    scheduled: int = 0
    cancelled: int = 0
    dropped: int = 0
    delay_ms_sum: int = 0


class Checkpoint(msgspec.Struct):
    entries_offset: int = 0
    """The runs hold the entries of everything before it."""
    end_offset: int = 0
    """The totals count everything before it."""
    runs: list[RunName] = []
    targets: list[TargetState] = []
    dead: str = ""
    moved: list[tuple[int, int]] = []
    marks: list[Mark] = []
    held: list[HeldMessage] = []
    schedules: list[str] = []
    totals: Totals = msgspec.field(default_factory=Totals)


_decoder = msgspec.json.Decoder(Checkpoint)
"""Made here, before there are threads: see `event_codec`."""


def save_checkpoint(disk: Disk, data: bytes) -> None:
    """Replace the checkpoint. Waits for the disk."""
    disk.replace(_PATH, data)


def load_checkpoint(disk: Disk) -> Checkpoint:
    """The last checkpoint; Corrupt when there is none, or one that cannot be read. Waits for the disk."""
    disk.make_folder(DELAYS_FOLDER)
    data = disk.read_whole(_PATH)
    if data is None:
        raise Corrupt(f"{_PATH} is not there")
    body = data[_CHECKSUM.size :]
    if _CHECKSUM.pack(crc32c(body)) != data[: _CHECKSUM.size]:
        raise Corrupt(f"{_PATH} does not match its checksum")
    return _decoder.decode(body)


def encode_checkpoint(checkpoint: Checkpoint) -> bytes:
    body = msgspec.json.encode(checkpoint)
    return _CHECKSUM.pack(crc32c(body)) + body


def as_text(data: bytes) -> str:
    return b64encode(data).decode()


def from_text(text: str) -> bytes:
    return b64decode(text)
