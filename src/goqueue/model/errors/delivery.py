"""Errors about messages that are out with a consumer."""

from goqueue.model.errors.families import Fenced, Invalid, NotFound


class InvalidReceipt(Invalid):
    """A receipt handle that no poll has given out: its shape is wrong."""

    code = "invalid_receipt"

    def __init__(self, text: str) -> None:
        super().__init__(f"{text[:100]!r} is not a receipt handle")


class ReceiptNotFound(NotFound):
    """A receipt of a delivery that is not known (any more)."""

    code = "receipt_not_found"

    def __init__(self, receipt: object) -> None:
        super().__init__(f"receipt {receipt} is not known")


class LeaseLost(Fenced):
    """The lease ran out, or the message was given back: poll again."""

    code = "lease_lost"

    def __init__(self, receipt: object) -> None:
        super().__init__(f"the lease of receipt {receipt} has ended; its message is delivered again")


class AlreadySettled(Fenced):
    """The message was settled before: it can only be acknowledged once more."""

    code = "already_settled"

    def __init__(self, receipt: object) -> None:
        super().__init__(f"the message of receipt {receipt} is settled")


class RecordNotHeld(Fenced):
    """A share consumer settles what it does not have, or no longer."""

    code = "record_not_held"


class ShareSessionNotFound(NotFound):
    """The broker knows of no such share session: open one with epoch 0."""

    code = "share_session_not_found"


class ShareSessionStale(Fenced):
    """A request of a share session came out of turn: open another one."""

    code = "share_session_stale"
