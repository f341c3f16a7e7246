"""The chain of audit lines: each holds the digest of the one before, so none can be changed or taken out.

A line is a JSON object. Its `digest` is over all of the line that stands before it, the digest of the line
before included. Whoever can rewrite all that follows can still rewrite history: keep the newest digest, or
the lines themselves, somewhere else as well.
"""

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

import msgspec

from goqueue.model.audit import AuditEvent

BEGINNING = "0" * 32
_DIGEST_BYTES = 16
_SEAL = b',"digest":"'
_END = b'"}'
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class Chain:
    """Where the chain of one node ends."""

    def __init__(self, number: int = 0, digest: str = BEGINNING) -> None:
        self.number = number
        self.digest = digest

    def link(self, event: AuditEvent, *, time: str, node: str) -> bytes:
        """The next line, without the end of it."""
        fields = {"number": self.number + 1, "timestamp": time, "node": node, "previous": self.digest}
        body = _encode(fields | event._asdict())[:-1]
        self.number += 1
        self.digest = _digest(body)
        return body + _SEAL + self.digest.encode() + _END


def last_link(line: bytes) -> Chain:
    """The chain behind its last line. Raises ValueError where that is no line of a chain."""
    fields = _fields(line)
    return Chain(int(fields["number"]), str(fields["digest"]))


def problems_in(lines: Iterable[bytes]) -> list[str]:
    """What is wrong with lines that should be one chain: nothing, when nobody has touched them."""
    problems = []
    expected: Chain | None = None
    for place, line in enumerate(lines, 1):
        try:
            fields = _fields(line)
        except ValueError:
            problems.append(f"line {place} is no line of an audit log")
            expected = None
            continue
        number, previous = int(fields["number"]), str(fields["previous"])
        if expected is not None and (number, previous) != (expected.number + 1, expected.digest):
            problems.append(f"line {place}: number {number} does not follow number {expected.number}")
        if _digest(line.rstrip(b"\n").rpartition(_SEAL)[0]) != fields["digest"]:
            problems.append(f"line {place}: number {number} was changed")
        expected = Chain(number, str(fields["digest"]))
    return problems


def _fields(line: bytes) -> dict[str, Any]:
    try:
        fields = _decode(line)
        int(fields["number"])
        str(fields["previous"]), str(fields["digest"])
    except (msgspec.DecodeError, KeyError, TypeError) as error:
        raise ValueError(f"not a line of an audit log: {line[:60]!r}") from error
    return fields


def _digest(body: bytes) -> str:
    return blake2b(body, digest_size=_DIGEST_BYTES).hexdigest()
