"""Where doors stand before verbs: `at_home(broker, verb, command)` is the verb, wherever its command is at
home.
"""

import inspect
from collections.abc import Awaitable, Callable
from typing import TypeVar, cast

from goqueue.broker.access.warden import ASKING
from goqueue.broker.broker import Broker
from goqueue.model.places import Command

C = TypeVar("C", bound=Command)
T = TypeVar("T")


def at_home(broker: Broker, verb: Callable[[Broker, C], Awaitable[T]], command: C) -> Awaitable[T]:
    """What a verb gives, here or from the node that answers for the command's place.

    Raises NotAllowed when whoever asks may not have it run; what they may not see is left out.
    """
    forwarding = broker.forwarding
    if ASKING.get() is not None:
        return _asked(broker, verb, command)
    return verb(broker, command) if forwarding is None else forwarding.run(verb, command)


async def _asked(broker: Broker, verb: Callable[[Broker, C], Awaitable[T]], command: C) -> T:
    broker.warden.admit(command)
    forwarding = broker.forwarding
    reply = await (verb(broker, command) if forwarding is None else forwarding.run(verb, command))
    broker.warden.note_done(command)
    return broker.warden.shown(command, reply)


def here(broker: Broker, verb: Callable[[Broker, C], T], command: C) -> T:
    """What a verb gives that is run at this node, and waited for or not. Raises the same."""
    if ASKING.get() is None:
        return verb(broker, command)
    broker.warden.admit(command)
    reply = verb(broker, command)
    if inspect.isawaitable(reply):
        return cast(T, _shown(broker, command, reply))
    broker.warden.note_done(command)
    return broker.warden.shown(command, reply)


async def _shown(broker: Broker, command: Command, awaited: Awaitable[object]) -> object:
    reply = await awaited
    broker.warden.note_done(command)
    return broker.warden.shown(command, reply)


async def seen_at_home(broker: Broker, verb: Callable[[Broker, C], T], command: C) -> T:
    """The same for a verb that waits for nothing where it is at home."""
    forwarding = broker.forwarding
    if forwarding is None:
        return here(broker, verb, command)

    async def waiting(broker: Broker, command: C) -> T:
        return verb(broker, command)

    return await at_home(broker, waiting, command)
