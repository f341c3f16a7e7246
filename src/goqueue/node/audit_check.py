"""`python -m goqueue.node.audit_check FOLDER`: whether the audit log of a data folder is whole, as JSON.

`goqueue-admin audit verify` is the way for people. The broker may be running: lines are only ever added.
"""

import sys
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

import msgspec

from goqueue.broker.access.audit import FOLDER, SUFFIX
from goqueue.core.access.audit_chain import problems_in

_WELL, _BROKEN, _NOT_FOUND = 0, 1, 3


class Checked(msgspec.Struct):
    """What was found."""

    files: int
    lines: int
    problems: list[str]


def main(arguments: Sequence[str]) -> int:
    """0: nobody has touched it; 1: somebody has; 3: there is none."""
    [folder] = arguments
    paths = sorted(Path(folder, FOLDER).glob(f"*{SUFFIX}"))
    if not paths:
        print(f"{folder} has no audit log: turn it on with GOQUEUE_AUDIT_ENABLED=true", file=sys.stderr)
        return _NOT_FOUND
    count = 0

    def lines() -> Iterator[bytes]:
        nonlocal count
        for line in chain.from_iterable(map(_whole_lines, paths)):
            count += 1
            yield line

    problems = problems_in(lines())
    sys.stdout.buffer.write(msgspec.json.encode(Checked(len(paths), count, problems)) + b"\n")
    return _BROKEN if problems else _WELL


def _whole_lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from (line for line in file if line.endswith(b"\n"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
