"""A broker that breaks its word, as a process, so that a storm can be seen to catch it.

It forgets some of the acks that it answers.
"""

from random import Random
from typing import Any

from goqueue.broker.queue import settle
from goqueue.model.delivery import Action
from goqueue.node.main import main

FORGOTTEN_SHARE = 0.2


def break_word() -> None:
    chance, events = Random(1), settle._events

    def some_events(broker: Any, command: Any, *more: Any) -> Any:
        is_forgotten = command.action is Action.ACK and chance.random() < FORGOTTEN_SHARE
        return [] if is_forgotten else events(broker, command, *more)

    settle._events = some_events  # type: ignore[assignment]  # that is the point


if __name__ == "__main__":
    break_word()
    main()
