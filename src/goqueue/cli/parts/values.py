"""Values of options as people type them: sizes, and NAME=VALUE that may be repeated."""

import re
from collections.abc import Iterable

from goqueue.cli.parts.exit_codes import WrongCommand

_SIZE = re.compile(r"(\d{1,15})\s*([KMGT]I?)?B?", re.ASCII | re.IGNORECASE)
_UNITS = "KMGT"


def parse_size(text: str) -> int:
    """Bytes, in steps of 1024: 512, 64KB, 10gb, 1GiB."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise WrongCommand(f"{text!r} is not a size like 512B, 64KB or 10GB")
    return int(match[1]) << 10 * (_UNITS.index(match[2][0].upper()) + 1 if match[2] else 0)


def pairs(texts: Iterable[str], *, what: str) -> list[tuple[str, str]]:
    """Names and values, in the order given."""
    found = []
    for text in texts:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise WrongCommand(f"{what} is NAME=VALUE, not {text!r}")
        found.append((name, value))
    return found
