"""Who answered: a request that was passed on tells its client where the answer came from.

A door that wants to know opens a note before it handles a request. Whatever is asked of another node in the
course of it, also in tasks that it begins, is written there. One node alone opens none.
"""

from contextvars import ContextVar
from typing import NamedTuple

from goqueue.core.cluster.metadata import Metadata
from goqueue.model.cluster import NodeId


class _Note(NamedTuple):
    listener: str
    addresses: set[str]


_NOTE: ContextVar[_Note | None] = ContextVar("answered_by", default=None)


def open_note(listener: str) -> set[str]:
    """From now on, where nodes are to be found over HTTP that answer for others in this request.

    Whoever came through a listener is told of those of the same name.
    """
    note = _Note(listener, set())
    _NOTE.set(note)
    return note.addresses


def note_answer(image: Metadata, node: NodeId) -> None:
    note = _NOTE.get()
    record = image.nodes.get(node)
    if note is not None and record is not None and (address := record.http_at(note.listener)):
        note.addresses.add(address)
