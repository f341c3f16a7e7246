"""append: record batches that a client built go into the log as they are."""

from functools import partial

from goqueue.broker.broker import Broker
from goqueue.broker.delays.asking import Told
from goqueue.broker.schemas.check import Looked, look, look_long
from goqueue.broker.tenants.quotas import take_batches
from goqueue.broker.transactions.joining import verify
from goqueue.broker.transactions.writes import Unverified, admit_batches
from goqueue.broker.write.asking import take_in_at_last
from goqueue.broker.write.incoming import Incoming, admit_partition, in_lanes, read_incoming
from goqueue.broker.write.preparing import prepare, prepare_now
from goqueue.broker.write.take_in import take_in
from goqueue.model.commands import Append, Appended
from goqueue.model.schemas import SchemaValidation


def append(broker: Broker, command: Append) -> Appended:
    """Admit, read, check, join, count, take in. Offsets are fixed on return; `committed` may follow.

    Raises Unchecked, before anything is done, where the topic's schemas take time to be heard, or another
    node must be asked of the transaction or the delays: then `append_when_checked` does the same.
    """
    return _append(broker, command, None, None)


def _append(
    broker: Broker,
    command: Append,
    prepared: Incoming | None,
    looked: Looked | None,
    told: Told | None = None,
) -> Appended:
    partition = admit_partition(broker, command.target, command.acks)
    settings = partition.log.settings
    incoming = read_incoming(command.batches, settings) if prepared is None else prepared
    if prepared is None and partition.asks_of_batches:
        incoming = prepare_now(broker, incoming, settings)
    if settings.schema_validation is SchemaValidation.NONE:
        looked = None
    elif looked is None:
        looked = look(broker, command.target.topic, settings, in_lanes(incoming))
    admit_batches(
        broker,
        partition,
        incoming.headers,
        may_join=command.may_join,
        transactional_id=command.transactional_id,
    )
    if partition.account is not None and told is None:  # else they are counted already
        take_batches(broker, partition.account, incoming.headers, incoming.bodies, size=len(command.batches))
    return take_in(broker, partition, incoming, command.acks, looked, told=told)


async def append_when_checked(broker: Broker, command: Append) -> Appended:
    """The same where it takes time to check the messages or the producer; offsets are fixed on return."""
    while True:
        settings = admit_partition(broker, command.target, command.acks).log.settings
        prepared = looked = None
        if settings.asks_of_batches:
            prepared = await prepare(broker, read_incoming(command.batches, settings), settings)
        if settings.schema_validation is not SchemaValidation.NONE:
            batches = in_lanes(prepared or read_incoming(command.batches, settings))
            looked = await look_long(broker, command.target.topic, settings, batches)
        if broker.partition(command.target).log.settings is not settings:
            continue  # it has been changed a moment ago
        try:
            return await take_in_at_last(broker, looked, partial(_append, broker, command, prepared))
        except Unverified as unverified:
            await verify(broker, unverified)
