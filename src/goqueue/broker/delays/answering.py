"""Whether a change of what is delayed can be answered for."""

from collections.abc import Awaitable

from goqueue.broker.broker import Broker
from goqueue.model.errors import AnswerLost, GoQueueError


async def answered(broker: Broker, committed: Awaitable[None]) -> None:
    """Return when something that was submitted is committed.

    Where another node has become the keeper meanwhile it may have it, or not: were the command run once more
    there, a message could be kept twice, or one that is cancelled seem never to have been. Raises AnswerLost.
    """
    try:
        await committed
    except GoQueueError as error:
        if not broker.is_one_of_several:
            raise
        raise AnswerLost(broker.config.node_id, str(error)) from error
