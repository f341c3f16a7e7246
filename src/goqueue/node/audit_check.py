"""`python -m goqueue.node.audit_check FOLDER`: whether the audit log of a data folder is whole, as JSON.

With `-` for the folder the lines are read from the standard input, as the topic has them: each node's are a
chain of their own, and one that came twice counts once. `goqueue-admin audit verify` is the way for people.
The broker may be running: lines are only ever added.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

import msgspec

from goqueue.broker.access.audit import FOLDER, SUFFIX
from goqueue.core.access.audit_chain import problems_in

_WELL, _BROKEN, _NOT_FOUND = 0, 1, 3
_REPEATED_MAX = 500
"""So many lines are published at once."""


class _Line(msgspec.Struct):
    node: str


_decode = msgspec.json.Decoder(_Line).decode


class Checked(msgspec.Struct):
    """What was found."""

    files: int
    lines: int
    problems: list[str]


def main(arguments: Sequence[str]) -> int:
    """0: nobody has touched it; 1: somebody has; 3: there is none."""
    [folder] = arguments
    if folder == "-":
        return _tell(_check_topic(sys.stdin.buffer))
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
    return _tell(Checked(len(paths), count, problems))


def _tell(checked: Checked) -> int:
    sys.stdout.buffer.write(msgspec.json.encode(checked) + b"\n")
    return _BROKEN if checked.problems else _WELL


def _check_topic(lines: Iterable[bytes]) -> Checked:
    chains: dict[str, list[bytes]] = {}
    count = 0
    for line in lines:
        count += 1
        chain_of_node = chains.setdefault(_node_of(line), [])
        # A node that ended in the middle of publishing does it again.
        if line not in chain_of_node[-_REPEATED_MAX:]:
            chain_of_node.append(line)
    problems = [
        f"node {node}: {problem}" if node else problem
        for node, chain_of_node in sorted(chains.items())
        for problem in problems_in(chain_of_node)
    ]
    return Checked(len(chains), count, problems)


def _node_of(line: bytes) -> str:
    try:
        return _decode(line).node
    except msgspec.DecodeError:
        return ""


def _whole_lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from (line for line in file if line.endswith(b"\n"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
