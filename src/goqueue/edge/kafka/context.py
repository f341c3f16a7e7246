"""What a handler may look at besides its request."""

from dataclasses import dataclass

from goqueue.broker.broker import Broker
from goqueue.edge.kafka.config import KafkaConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The broker, and the name by which this connection's client should know it."""

    broker: Broker
    config: KafkaConfig
    host: str
    port: int
