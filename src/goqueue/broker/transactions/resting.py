"""The journal of a transactional id whose last transaction has come to its end, and steps in it."""

from goqueue.broker.broker import Broker
from goqueue.broker.storage.journal import Submitted
from goqueue.broker.transactions.ends import finish
from goqueue.broker.transactions.journal import TransactionJournal
from goqueue.core.transactions.transactions import Transaction
from goqueue.model.errors import ShuttingDown, TransactionBusy


async def at_rest(broker: Broker, transactional_id: str) -> TransactionJournal:
    """The journal of an id, when its last transaction has been finished."""
    if not broker.is_open:
        raise ShuttingDown
    journal = await broker.transactions.ensure(transactional_id)
    lock = broker.transactions.lock(transactional_id)
    known = journal.transactions.get(transactional_id)
    if known is not None and known.state.is_prepared:
        await broker.carry_out(finish(broker, transactional_id), lock)
    if broker.is_one_of_several and lock.locked():
        # It is being decided, which takes calls: what is added meanwhile would never hear of it.
        raise TransactionBusy(transactional_id)
    return journal


def keep_step(journal: TransactionJournal, added: Transaction) -> Submitted:
    """Write a step, if it is one. If not, somebody may have written the same a moment ago."""
    is_known = added is journal.transactions.get(added.transactional_id)
    return journal.submit() if is_known else journal.submit(added)
