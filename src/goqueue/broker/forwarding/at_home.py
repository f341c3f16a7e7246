"""Where doors stand before verbs: `at_home(broker, verb, command)` is the verb, wherever its command is at
home.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from goqueue.broker.broker import Broker
from goqueue.model.places import Command

C = TypeVar("C", bound=Command)
T = TypeVar("T")


def at_home(broker: Broker, verb: Callable[[Broker, C], Awaitable[T]], command: C) -> Awaitable[T]:
    """What a verb gives, here or from the node that answers for the command's place."""
    forwarding = broker.forwarding
    return verb(broker, command) if forwarding is None else forwarding.run(verb, command)


async def seen_at_home(broker: Broker, verb: Callable[[Broker, C], T], command: C) -> T:
    """The same for a verb that waits for nothing where it is at home."""
    forwarding = broker.forwarding
    if forwarding is None:
        return verb(broker, command)

    async def waiting(broker: Broker, command: C) -> T:
        return verb(broker, command)

    return await forwarding.run(waiting, command)
