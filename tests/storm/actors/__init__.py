"""The clients of a storm, one module a feature."""

from tests.storm.actor import Actor
from tests.storm.actors.delays import DelayedMessages
from tests.storm.actors.http_log import HttpPublisher
from tests.storm.actors.kafka_groups import ClassicGroup, ConsumerGroup
from tests.storm.actors.kafka_logs import IdempotentProducer, LeaderProducer, PlainProducer
from tests.storm.actors.queues import QueueWorkers

ACTORS: tuple[type[Actor], ...] = (
    IdempotentProducer,
    PlainProducer,
    LeaderProducer,
    ClassicGroup,
    ConsumerGroup,
    HttpPublisher,
    QueueWorkers,
    DelayedMessages,
)
