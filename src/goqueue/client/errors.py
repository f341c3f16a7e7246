"""What goes wrong with a call, sorted by what its caller can do next.

The families are the house's own (`goqueue.model.errors`): `except NotFound` catches a node's word and the
client's own alike. What a node has said is also a `Refused`, with its code and status; `code` is stable.
"""

from collections.abc import Iterator

import msgspec

from goqueue.model.errors import (
    Busy,
    Corrupt,
    Denied,
    Fenced,
    GoQueueError,
    Invalid,
    NotFound,
    Unavailable,
)

_CONFLICT = 409
_SHOWN_BYTES = 200


class Refused(Exception):
    """A node's no. `code` and the text are the node's own."""

    code: str

    def __init__(self, text: str, *, code: str, status: int, retry_after_s: float | None = None) -> None:
        super().__init__(text)
        self.code = code
        self.status = status
        self.retry_after_s = retry_after_s
        """When to try again, if the node has told."""

    def __reduce__(self) -> tuple[object, ...]:
        # Exceptions are unpickled by their positional arguments, and here there is but one.
        return _unpickled, (type(self), str(self), self.code, self.status, self.retry_after_s)


class RefusedInvalid(Refused, Invalid):
    """Fix the request."""


class RefusedDenied(Refused, Denied):
    """Ask with a key that may do this."""


class RefusedNotFound(Refused, NotFound):
    """What was named is not there."""


class RefusedFenced(Refused, Fenced):
    """The caller's view is out of date: poll, join or begin again."""


class RefusedBusy(Refused, Busy):
    """Later; `retry_after_s` says when."""


class Conflict(RefusedBusy):
    """What is there stands in the way: a topic of that name, members of the group."""


class RefusedUnavailable(Refused, Unavailable):
    """The node cannot do it now."""


class RefusedCorrupt(Refused, Corrupt):
    """The node has found stored bytes that are not what was written."""

    __init__ = Refused.__init__


class NobodyAnswers(Unavailable):
    """No node gave a reply. A call that changes something may have been carried out all the same."""


class NotTrusted(Unavailable):
    """Who answers there does not prove to be a node: nobody the client trusts vouches for it by that name."""


class UnreadableReply(Unavailable):
    """Something else than a broker of this version answers there."""


def refusal(status: int, body: bytes, retry_after: str | None) -> Refused:
    """The error that a reply of 400 or more stands for."""
    try:
        told = _decoder.decode(body)
    except msgspec.MsgspecError:
        told = _ErrorBody()
    text = told.error or f"status {status}: {body[:_SHOWN_BYTES]!r}"
    kind = kind_of(told.code, status)
    # The body tells it to the millisecond, the header in whole seconds.
    later_ms = told.retry_after_ms
    retry_after_s = _seconds(retry_after) if later_ms is None else later_ms / 1_000
    return kind(text, code=told.code or str(status), status=status, retry_after_s=retry_after_s)


def kind_of(code: str, status: int) -> type[Refused]:
    """By the node's code, whose family the house knows; by the status where it is another's."""
    family = _FAMILY_OF_CODE.get(code) or _FAMILY_OF_STATUS.get(status)
    if family is Busy and status == _CONFLICT:
        return Conflict
    return Refused if family is None else _REFUSED[family]


class _ErrorBody(msgspec.Struct):
    error: str = ""
    code: str = ""
    retry_after_ms: int | None = None


_decoder = msgspec.json.Decoder(_ErrorBody)


_REFUSED: dict[type[GoQueueError], type[Refused]] = {
    Invalid: RefusedInvalid,
    Denied: RefusedDenied,
    NotFound: RefusedNotFound,
    Fenced: RefusedFenced,
    Busy: RefusedBusy,
    Unavailable: RefusedUnavailable,
    Corrupt: RefusedCorrupt,
}
_FAMILY_OF_STATUS: dict[int, type[GoQueueError]] = {
    400: Invalid,
    401: Denied,
    403: Denied,
    404: NotFound,
    405: Invalid,
    409: Fenced,
    413: Invalid,
    422: Invalid,
    429: Busy,
    503: Unavailable,
    507: Unavailable,
}


def _codes(error: type[GoQueueError]) -> Iterator[str]:
    yield error.code
    for below in error.__subclasses__():
        yield from _codes(below)


_FAMILY_OF_CODE = {code: family for family in _REFUSED for code in _codes(family)}


def _seconds(retry_after: str | None) -> float | None:
    """The header may also hold a date, which no node of ours sends."""
    return float(retry_after) if retry_after and retry_after.isdecimal() else None


def _unpickled(
    kind: type[Refused], text: str, code: str, status: int, retry_after_s: float | None
) -> Refused:
    return kind(text, code=code, status=status, retry_after_s=retry_after_s)
