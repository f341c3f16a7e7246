"""The clients of a storm, one module a feature."""

from tests.storm.actor import Actor
from tests.storm.actors.backups import BackupKeeper
from tests.storm.actors.churn import Churn
from tests.storm.actors.delays import DelayedMessages
from tests.storm.actors.http_log import HttpPublisher
from tests.storm.actors.kafka_groups import ClassicGroup, ConsumerGroup
from tests.storm.actors.kafka_logs import IdempotentProducer, LeaderProducer, PlainProducer
from tests.storm.actors.kafka_transactions import Copying, TransferClerk
from tests.storm.actors.lanes import LaneSorter
from tests.storm.actors.queues import QueueWorkers
from tests.storm.actors.receipts import ReceiptClerk
from tests.storm.actors.schemas import SchemaWriter
from tests.storm.actors.shares import ShareMember
from tests.storm.actors.sinks import SinkWriter
from tests.storm.actors.tenants import GreedyTenant

ACTORS: tuple[type[Actor], ...] = (
    IdempotentProducer,
    PlainProducer,
    LeaderProducer,
    ClassicGroup,
    ConsumerGroup,
    HttpPublisher,
    QueueWorkers,
    LaneSorter,
    ShareMember,
    DelayedMessages,
    TransferClerk,
    Copying,
    ReceiptClerk,
    SinkWriter,
    GreedyTenant,
    SchemaWriter,
    BackupKeeper,
    Churn,
)
