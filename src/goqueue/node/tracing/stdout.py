"""Spans as lines of JSON on standard output, for whoever collects what a container prints."""

import os
from collections.abc import Sequence

from goqueue.node.tracing.outgoing import Outgoing, line_of


class JsonOutput:
    """The target `stdout`.

    Writes past Python's buffered stream: a reader that has stopped reading then holds up this thread only,
    and not the end of the process, which waits for that stream's lock.
    """

    def __init__(self, descriptor: int = 1) -> None:
        self._descriptor = descriptor

    def send(self, spans: Sequence[Outgoing]) -> None:
        text = b"".join(map(line_of, spans))
        while text:
            text = text[os.write(self._descriptor, text) :]

    def close(self) -> None:
        """Standard output stays open: it belongs to the process."""
