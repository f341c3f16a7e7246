"""What a journal of `__transactions` keeps: transactional ids, and in the first of them the sinks too."""

from collections.abc import Iterable

from goqueue.core.transactions import sinks as sink_events
from goqueue.core.transactions import transactions as transaction_events
from goqueue.core.transactions.sinks import Sinks, StateReset
from goqueue.core.transactions.transactions import Transaction, TransactionForgotten, Transactions

Event = sink_events.Event | transaction_events.Event
EVENT_TYPES: dict[str, type[Event]] = {**sink_events.EVENT_TYPES, **transaction_events.EVENT_TYPES}


class Journalled:
    """Two machines behind one `apply`."""

    def __init__(self, sinks: Sinks) -> None:
        self.sinks = sinks
        self.transactions = Transactions()

    def apply(self, event: Event, *, ahead_ms: int = 0) -> None:
        match event:
            case StateReset():
                self.sinks.apply(event)
                self.transactions.apply(event)
            case Transaction() | TransactionForgotten():
                self.transactions.apply(event, ahead_ms=ahead_ms)
            case _:
                self.sinks.apply(event)

    def whole_state(self) -> Iterable[Event]:
        """Events that lead from nothing to the present state, the first one being the reset of both."""
        yield from self.sinks.whole_state()
        yield from self.transactions
