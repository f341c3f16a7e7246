"""The clients of a cluster in chaos: those of a storm whose feature several nodes keep, and some of its own.

A feature that nodes learn to keep together joins by its line in ACTORS: an `Actor` works, remembers what it
was told, and looks in the end whether that is true (`tests/storm/actor.py`).
"""

from tests.chaos.actors.placed import PlacedMessages
from tests.chaos.actors.sinks import EpochWriter
from tests.storm.actor import Actor
from tests.storm.actors.delays import DelayedMessages
from tests.storm.actors.http_log import HttpPublisher
from tests.storm.actors.kafka_groups import ClassicGroup, ConsumerGroup
from tests.storm.actors.kafka_logs import IdempotentProducer
from tests.storm.actors.kafka_transactions import Copying, TransferClerk
from tests.storm.actors.queues import QueueWorkers

ACTORS: tuple[type[Actor], ...] = (
    PlacedMessages,
    IdempotentProducer,
    ClassicGroup,
    ConsumerGroup,
    HttpPublisher,
    QueueWorkers,
    TransferClerk,
    Copying,
    DelayedMessages,
    EpochWriter,
)
