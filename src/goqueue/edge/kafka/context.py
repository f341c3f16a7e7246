"""What a handler may look at besides its request."""

from dataclasses import dataclass

from goqueue.broker.broker import Broker
from goqueue.edge.kafka.config import KafkaConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The broker, the name by which a client should know it, and what is known of the client."""

    broker: Broker
    config: KafkaConfig
    host: str
    port: int
    client_host: str = ""
    client_id: str = ""
