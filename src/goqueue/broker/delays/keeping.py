"""What other nodes give to the keeper of the delays."""

from goqueue.broker.broker import Broker
from goqueue.broker.delays.answering import answered
from goqueue.broker.delays.verbs import postpone
from goqueue.model.delays import KeepDelayed, Postponed
from goqueue.model.errors import TopicNotFound


async def keep_delayed(broker: Broker, command: KeepDelayed) -> list[Postponed]:
    """Keep messages until they are due; returns when they are committed."""
    await broker.agreement.reached(command.revision)
    if broker.metadata.topic(command.topic).topic_id != command.topic_id:
        raise TopicNotFound(command.topic)
    postponed, submitted = postpone(broker, command.topic, command.messages)
    await answered(broker, submitted)
    return postponed
