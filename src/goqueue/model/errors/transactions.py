"""Errors about producers with a number, and transactions."""

from goqueue.model.errors.families import Busy, Fenced, Invalid, NotFound, Unavailable


class OutOfSequence(Fenced):
    """An idempotent producer skipped a sequence number: something before it is missing."""

    code = "out_of_sequence"


class DuplicateSequence(Fenced):
    """An old batch came again, too old to tell where it was stored; it is in the log."""

    code = "duplicate_sequence"


class ProducerFenced(Fenced):
    """A newer epoch of the same producer has taken over."""

    code = "producer_fenced"


class InvalidTransactionTimeout(Invalid):
    """A time-out for transactions that is not above 0, or above the broker's limit."""

    code = "invalid_transaction_timeout"


class TransactionNotFound(NotFound):
    """There is no transaction by that id."""

    code = "transaction_not_found"

    def __init__(self, transaction: str) -> None:
        super().__init__(f"there is no transaction {transaction}")
        self.transaction = transaction


class ProducerNotFound(NotFound):
    """No producer of that id holds the transactional id: initialise one first."""

    code = "producer_not_found"

    def __init__(self, producer_id: int, transactional_id: str = "") -> None:
        whose = f" of {transactional_id}" if transactional_id else ""
        super().__init__(f"producer {producer_id}{whose} is not known: initialise one first")
        self.producer_id = producer_id


class InvalidTransactionState(Fenced):
    """The transaction is not in a state for this: none is open, or one is already."""

    code = "invalid_transaction_state"


class NotVerified(Unavailable):
    """Whether the transaction of a batch is open could not be asked; nothing was written: try again."""

    code = "not_verified"

    def __init__(self, topic: str, partition: int, reason: str) -> None:
        super().__init__(f"the transaction that writes to {topic}/{partition} cannot be asked for: {reason}")
        self.topic = topic
        self.partition = partition


class NotKept(Unavailable):
    """The keeper of the delays did not say whether it has a batch's delayed messages: send it again."""

    code = "not_kept"

    def __init__(self, topic: str, partition: int, reason: str) -> None:
        super().__init__(f"what comes later to {topic}/{partition} may not be kept: {reason}")
        self.topic = topic
        self.partition = partition


class TransactionBusy(Busy):
    """The last transaction of this id is still being finished: try again at once."""

    code = "transaction_busy"

    def __init__(self, transactional_id: str) -> None:
        super().__init__(f"the last transaction of {transactional_id} is being finished")
        self.transactional_id = transactional_id


class OffsetsUnstable(Busy):
    """Offsets of the group are part of a transaction that is not decided: ask again."""

    code = "offsets_unstable"

    def __init__(self, group: str) -> None:
        super().__init__(f"a transaction holds offsets of group {group} that are not decided")
        self.group = group
