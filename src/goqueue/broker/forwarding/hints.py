"""Who answered: a request that was passed on tells its client where the answer came from.

A door that wants to know opens a note before it handles a request. Whatever is asked of another node in the
course of it, also in tasks that it begins, is written there. One node alone opens none.
"""

from contextvars import ContextVar

from goqueue.core.cluster.metadata import Metadata
from goqueue.model.cluster import NodeId

_NOTE: ContextVar[set[str] | None] = ContextVar("answered_by", default=None)


def open_note() -> set[str]:
    """From now on, where nodes are to be found over HTTP that answer for others in this request."""
    note: set[str] = set()
    _NOTE.set(note)
    return note


def note_answer(image: Metadata, node: NodeId) -> None:
    note = _NOTE.get()
    record = image.nodes.get(node)
    if note is not None and record is not None and record.http:
        note.add(record.http)
