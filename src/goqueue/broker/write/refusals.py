"""Refused messages are told of, whichever way they came: counted by the error's code, and traced."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from goqueue.broker.broker import Broker
from goqueue.model.errors import GoQueueError


@contextmanager
def telling_refusals(broker: Broker, topics: Iterable[str]) -> Iterator[None]:
    """An error in here means that a message, or a batch of them, was not taken for each of some topics."""
    try:
        yield
    except GoQueueError as error:
        for topic in topics:
            broker.telemetry.refused(topic, error.code, str(error), time_us=broker.clock.wall_us())
        raise
