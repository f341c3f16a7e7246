"""Sinks of a node that was alone, in the journals where several nodes look for them.

They are copied and not moved: until the folder is a cluster's, the lone node goes on with its first journal,
and the next try copies what is there then. A cluster passes over what it finds in a journal of others.
"""

from goqueue.broker.broker import Broker
from goqueue.broker.sinks.homes import is_at_home
from goqueue.broker.sinks.stages import Stage, checksum_of
from goqueue.broker.storage.journal_set import JOURNAL_COUNT
from goqueue.broker.transactions.journal import SINKS_JOURNAL, TransactionJournal
from goqueue.core.transactions.journalled import Event
from goqueue.core.transactions.sinks import StageKept
from goqueue.model.errors import CannotJoin


async def spread_sinks(broker: Broker) -> None:
    """Write each sink of the first journal to its own, with the checksums of what is staged."""
    machine = broker.transactions.of_sinks.sinks
    for sink in machine.sinks.values():
        if sink.prepared is not None:
            raise CannotJoin(f"epoch {sink.prepared.epoch} of sink {sink.name} is not finished; see the log")
    opened = {journal.partition.source.partition for journal in broker.transactions}
    if machine.sinks or machine.passed_generation:
        await broker.transactions.open(set(range(JOURNAL_COUNT)) - opened)
    for journal in broker.transactions:
        events = [] if journal.partition.source.partition == SINKS_JOURNAL else _copied(broker, journal)
        for name in machine.sinks:
            if is_at_home(journal, name):
                events += [await _kept(broker, stage) for stage in broker.sinks.stages.of_sink(name)]
        if events:
            await journal.submit(*events)


def _copied(broker: Broker, journal: TransactionJournal) -> list[Event]:
    """What makes a journal's sinks those of the first one; an earlier try may have left others."""
    machine = broker.transactions.of_sinks.sinks
    events: list[Event] = [
        journal.sinks.forget(name) for name in journal.sinks.sinks if name not in machine.sinks
    ]
    if machine.passed_generation:
        events.append(machine.passed())
    for name in machine.sinks:
        if is_at_home(journal, name):
            events += machine.state_of(name)
    return events


async def _kept(broker: Broker, stage: Stage) -> StageKept:
    def read_checksum() -> int:
        return checksum_of(broker.sinks.stages.read(stage))

    return StageKept(
        stage.name.sink, stage.name.epoch, stage.name.stage_id, await broker.threads.run(read_checksum)
    )
