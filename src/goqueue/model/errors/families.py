"""What the caller can do next: the families that all errors belong to, and what concerns no one part."""

from collections.abc import Iterator

_HERE = __name__.rpartition(".")[0] + "."


class GoQueueError(Exception):
    """A caller's mistake or misfortune. Bugs of ours are AssertionErrors instead."""

    code: str


class Invalid(GoQueueError):
    """Fix the request."""

    code = "invalid"


class NotFound(GoQueueError):
    """What was named is not here."""

    code = "not_found"


class Denied(GoQueueError):
    """The caller may not do this."""

    code = "denied"


class Fenced(GoQueueError):
    """The caller's view is out of date: refresh it."""

    code = "fenced"


class Busy(GoQueueError):
    """Later."""

    code = "busy"


class Unavailable(GoQueueError):
    """Elsewhere, or later."""

    code = "unavailable"


class Corrupt(GoQueueError):
    """Stop and look: stored bytes are not what was written."""

    code = "corrupt"

    def __init__(
        self, text: str, *, topic: str = "", partition: int = -1, offset: int = -1, next_offset: int = -1
    ) -> None:
        super().__init__(text)
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.next_offset = next_offset
        """Where messages go on behind what is spoilt; -1: nobody can tell."""


class InvalidName(Invalid):
    """A name that breaks the rule for names: the text says how. Choose another."""

    code = "invalid_name"


class RequestTooLarge(Invalid):
    """A request above the limit of the doors."""

    code = "request_too_large"


class UnsupportedMediaType(Invalid):
    """A web page sends something that does not say to be JSON or bytes."""

    code = "unsupported_media_type"


class HostDenied(Denied):
    """A request for a name that the HTTP door does not have: use its address, or list the name."""

    code = "host_denied"


class OriginDenied(Denied):
    """A request of a web page that is not of a listed origin."""

    code = "origin_denied"


class NotSupported(Invalid):
    """A request that this version does not serve."""

    code = "not_supported"


class ShuttingDown(Unavailable):
    """The broker is stopping: try again when it is back."""

    code = "shutting_down"

    def __init__(self) -> None:
        super().__init__("the broker is stopping; try again later or elsewhere")


class JobOverran(Invalid):
    """Work that was asked for takes more time or memory than one request may: ask for less."""

    code = "job_overran"


class WorkshopBusy(Busy):
    """Too much work waits for the helper processes: try again in a moment."""

    code = "workshop_busy"

    def __init__(self, waiting: int) -> None:
        super().__init__(f"{waiting} jobs wait for the helper processes: try again in a moment")
        self.waiting = waiting


class JobLost(Unavailable):
    """The helper process that did the work has ended: try again."""

    code = "job_lost"


def every_error(above: type[GoQueueError] = GoQueueError) -> Iterator[type[GoQueueError]]:
    """The tree below an error, each followed by its members; not what other rooms derive from it."""
    for error in above.__subclasses__():
        if error.__module__.startswith(_HERE):
            yield error
            yield from every_error(error)
