"""GoQueue: a Kafka-like log and a work queue in one server."""

__version__ = "0.1.0"
