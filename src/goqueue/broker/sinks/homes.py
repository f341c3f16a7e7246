"""Which journal keeps a sink: the first one on one node; of several nodes that of the sink's transactions."""

from goqueue.broker.broker import Broker
from goqueue.broker.storage.journal_set import journal_number
from goqueue.broker.transactions.journal import TransactionJournal
from goqueue.model.names import transactional_id_of_sink


def journal_of(broker: Broker, sink: str) -> TransactionJournal:
    """The journal of a sink. Raises NotCoordinator, CoordinatorLoading where another node may have it."""
    if not broker.is_one_of_several:
        return broker.transactions.of_sinks
    journal = broker.transactions.find(transactional_id_of_sink(sink))
    assert journal is not None, "a journal that nodes share is there, or refused"
    return journal


def is_at_home(journal: TransactionJournal, sink: str) -> bool:
    """Whether a journal is that of a sink's transactions. The first one of a folder may know others, too."""
    return journal_number(transactional_id_of_sink(sink)) == journal.partition.source.partition


def coordinated(broker: Broker) -> list[tuple[TransactionJournal, str]]:
    """All sinks that this node answers for, each with its journal."""
    return [
        (journal, name)
        for journal in broker.transactions
        for name in journal.sinks.sinks
        if not broker.is_one_of_several or is_at_home(journal, name)
    ]
