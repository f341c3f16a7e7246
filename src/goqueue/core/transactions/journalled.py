"""What a journal of `__transactions` keeps: transactional ids, and sinks.

One node has all its sinks in the first journal. Of several nodes each sink is where its transactions are, so
that an epoch and the decision of its transaction are one event.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from goqueue.core.transactions import sinks as sink_events
from goqueue.core.transactions import transactions as transaction_events
from goqueue.core.transactions.sinks import EpochCommitted, Sinks, StateReset
from goqueue.core.transactions.transactions import Transaction, TransactionForgotten, Transactions


@dataclass(frozen=True, slots=True)
class EpochDecided:
    """The transaction that holds an epoch of a sink will be committed, and with it the epoch is."""

    decision: Transaction
    epoch: EpochCommitted


Event = sink_events.Event | transaction_events.Event | EpochDecided
EVENT_TYPES: dict[str, type[Event]] = {
    **sink_events.EVENT_TYPES,
    **transaction_events.EVENT_TYPES,
    EpochDecided.__name__: EpochDecided,
}


class Journalled:
    """Two machines behind one `apply`."""

    def __init__(self) -> None:
        self.sinks = Sinks()
        self.transactions = Transactions()

    def apply(self, event: Event, *, ahead_ms: int = 0) -> None:
        match event:
            case StateReset():
                self.sinks.apply(event)
                self.transactions.apply(event)
            case Transaction() | TransactionForgotten():
                self.transactions.apply(event, ahead_ms=ahead_ms)
            case EpochDecided():
                self.transactions.apply(event.decision, ahead_ms=ahead_ms)
                self.sinks.apply(event.epoch)
            case _:
                self.sinks.apply(event)

    def whole_state(self) -> Iterable[Event]:
        """Events that lead from nothing to the present state, the first one being the reset of both."""
        yield from self.sinks.whole_state()
        yield from self.transactions
