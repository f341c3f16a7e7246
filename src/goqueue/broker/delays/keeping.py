"""What other nodes give to the keeper of the delays."""

from goqueue.broker.broker import Broker
from goqueue.broker.delays.verbs import postpone
from goqueue.model.delays import KeepDelayed, Postponed
from goqueue.model.errors import AnswerLost, GoQueueError, TopicNotFound


async def keep_delayed(broker: Broker, command: KeepDelayed) -> list[Postponed]:
    """Keep messages until they are due; returns when they are committed."""
    await broker.agreement.reached(command.revision)
    if broker.metadata.topic(command.topic).topic_id != command.topic_id:
        raise TopicNotFound(command.topic)
    postponed, submitted = postpone(broker, command.topic, command.messages)
    try:
        await submitted
    except GoQueueError as error:
        # Whoever leads the journal next may have them: were they sent once more, they could come twice.
        raise AnswerLost(broker.config.node_id, str(error)) from error
    return postponed
