"""Receipts of a transaction that other nodes have given out: pledged by calls, and settled so when it ends.

The transaction's record has a receipt before its lease waits for the transaction: were it the other way
round, a crash between the two would hide the message for nobody. That it waits is in the journal of the lease
then, for whoever coordinates the group next. A receipt names one lease alone, so what comes twice, or late,
changes nothing that it should not.
"""

import logging
from collections.abc import Sequence

from goqueue.broker.broker import Broker
from goqueue.broker.queue.settle import settle
from goqueue.broker.transactions.leaders import calls
from goqueue.core.transactions.transactions import Transaction
from goqueue.model.delivery import Action, Settle
from goqueue.model.errors import AlreadySettled, Invalid, LeaseLost, NotFound
from goqueue.model.transactions import Marker

log = logging.getLogger(__name__)
_OVER = (LeaseLost, AlreadySettled, NotFound, Invalid)
"""What was refused so is out no more, and will never be again."""


async def pledge_afar(broker: Broker, receipts: Sequence[str]) -> None:
    """Messages stay with their consumers until the transaction has ended; raises what one is refused with."""
    command = Settle(action=Action.EXTEND, receipts=receipts, is_pledge=True, is_own=True)
    outcome = await calls(broker).run(settle, command)
    for error in outcome.refusals.values():
        raise error


async def settle_afar(broker: Broker, known: Transaction) -> None:
    """Acknowledge what was consumed, or let others have it at once; raises where that must be tried again."""
    action = Action.ACK if known.marker is Marker.COMMIT else Action.NACK
    reason = "its transaction was aborted"
    command = Settle(action=action, receipts=known.receipts, reason=reason, is_own=True)
    outcome = await calls(broker).run(settle, command)
    for place, error in outcome.refusals.items():
        if not isinstance(error, _OVER):
            raise error
        log.warning("receipt_not_settled receipt=%s reason=%s", known.receipts[place], error)
