"""Deliveries of delayed messages as the leader of their partition takes them from the keeper.

A keeper says how far it knows the partition's log. Behind that there must be no delivery: one that is there
was made by a call whose answer was lost, or by another keeper, and the one who asks has to look first. So a
call that comes twice, or very late, appends nothing. A keeper that was replaced is refused: by whoever heard
of its successor, or was elected behind it and so knows that one from the image.
"""

from typing import TYPE_CHECKING, NamedTuple

from goqueue.broker.appending import append_once
from goqueue.broker.delays.scan import find_deliveries
from goqueue.log.partition_log import CheckedBatch, storage_error
from goqueue.model.delays import DeliverDue, DeliveredFound, FindDelivered, NoteDeliveries
from goqueue.model.errors import Fenced, NotLeader, TopicNotFound
from goqueue.model.ids import TopicName
from goqueue.records.layout import read_header

if TYPE_CHECKING:  # the broker is made with the keeper, which asks these verbs of others
    from goqueue.broker.broker import Broker
    from goqueue.broker.storage.partition import Partition

DELAYED_TOPIC = TopicName("__delayed")
JOURNAL = 0
"""There is one in a cluster, too: see ADR 45."""


class Received(NamedTuple):
    """What a leader knows of the deliveries to a partition, in one leadership."""

    leader_epoch: int
    keeper_epoch: int
    end_offset: int | None = None
    """There is none behind it; None: nobody has looked."""


async def find_delivered(broker: "Broker", command: FindDelivered) -> DeliveredFound:
    """What was delivered from an offset on, as far as it is committed."""
    partition = _heard(broker, command)
    partition_log = partition.log
    # What is in the log must be safe before it is counted; what comes meanwhile lies behind the end.
    end_offset = partition_log.end_offset
    committed = partition.committed(end_offset)
    if committed is not None:
        await committed
    if command.from_offset is None:
        return DeliveredFound((), end_offset)
    try:
        steps, _ = await broker.threads.run(
            find_deliveries, partition_log, command.from_offset, command.delayed_end, end_offset
        )
    except OSError as error:
        raise storage_error(error, f"look for deliveries in {command.target}") from error
    return DeliveredFound(steps, end_offset)


async def deliver_due(broker: "Broker", command: DeliverDue) -> int:
    """Append messages that have fallen due; returns the end of the log, when they are committed."""
    partition = _heard(broker, command)
    await _look_once(broker, command, partition)
    partition = _heard(broker, command)
    received = broker.delays.received[command.target]
    if received.end_offset is None or received.end_offset > command.known_offset:
        raise Fenced(f"{command.target} has got delayed messages that the keeper does not know of")
    bodies = [memoryview(bytearray(body)) for body in command.batches]
    batches = [
        CheckedBatch(read_header(body), body, lane) for body, lane in zip(bodies, command.lanes, strict=True)
    ]
    base_offset, _ = append_once(partition, batches)
    end_offset = partition.log.end_offset
    broker.delays.received[command.target] = received._replace(end_offset=end_offset)
    broker.telemetry.of(partition.source).due(base_offset, list(command.numbers), broker.clock.wall_us())
    committed = partition.committed(end_offset)
    if committed is not None:
        await committed
    return end_offset


async def note_deliveries(broker: "Broker", command: NoteDeliveries) -> None:
    """At the keeper: have in the journal all that was delivered to a partition by now."""
    async with broker.delays.noted(command.target):
        pass


async def _look_once(broker: "Broker", command: DeliverDue, partition: "Partition") -> None:
    """In each leadership: is there a delivery behind what the keeper knows?"""
    known = broker.delays.received[command.target]
    if known.end_offset is not None:
        return
    end_offset = partition.log.end_offset
    try:
        steps, _ = await broker.threads.run(
            find_deliveries, partition.log, command.known_offset, 0, end_offset
        )
    except OSError as error:
        raise storage_error(error, f"look for deliveries in {command.target}") from error
    # Somebody else may have looked meanwhile, and delivered.
    now = broker.delays.received.get(command.target)
    if now is not None and now.leader_epoch == known.leader_epoch and now.end_offset is None:
        found_offset = end_offset if steps else command.known_offset
        broker.delays.received[command.target] = now._replace(end_offset=found_offset)


def _heard(broker: "Broker", command: FindDelivered | DeliverDue) -> "Partition":
    """The partition, if this node leads it and no newer keeper is known."""
    topic = broker.metadata.topic(command.target.topic)
    if topic.topic_id != command.topic_id:
        raise TopicNotFound(command.target.topic)
    partition = broker.partition(command.target)
    partition.admit_write()
    if partition.copies is not None:
        partition.copies.admit_all()
    if not partition.is_leader:
        raise NotLeader(*command.target)
    received = broker.delays.received.get(command.target)
    if received is None or received.leader_epoch != partition.leader_epoch:
        received = Received(partition.leader_epoch, _agreed_epoch(broker))
    keeper_epoch = max(received.keeper_epoch, _agreed_epoch(broker))
    if command.keeper_epoch < keeper_epoch:
        raise Fenced(f"the delays have another keeper since epoch {keeper_epoch}")
    broker.delays.received[command.target] = received._replace(keeper_epoch=command.keeper_epoch)
    return partition


def _agreed_epoch(broker: "Broker") -> int:
    """The epoch of the keeper that is known here."""
    topic = broker.metadata.topics.get(DELAYED_TOPIC)
    return 0 if topic is None else broker.metadata.record(topic, JOURNAL).epoch
