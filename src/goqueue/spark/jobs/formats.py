"""The kinds of files that messages are exported to and imported from."""

from enum import StrEnum
from pathlib import Path

from goqueue.model.errors import Invalid


class FileFormat(StrEnum):
    """A kind of file, named as its ending."""

    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"


class Compression(StrEnum):
    """How Parquet files are compressed."""

    ZSTD = "zstd"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    NONE = "none"


_ENDINGS = {str(each): each for each in FileFormat} | {"json": FileFormat.JSONL, "ndjson": FileFormat.JSONL}


def file_format(path: Path) -> FileFormat:
    """What a file holds, by the ending of its name."""
    ending = path.suffix.removeprefix(".").lower()
    if ending not in _ENDINGS:
        raise Invalid(f"{path} does not end with .jsonl, .csv or .parquet")
    return _ENDINGS[ending]
