"""What is needed to run commands at other nodes: who carries them, and how several are asked side by side."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Protocol

from goqueue.core.cluster.values import Topic
from goqueue.model.cluster import NodeId
from goqueue.model.places import Command


class Waiting(Protocol):
    async def is_worth_another_try(self) -> bool: ...


class Carrier(Protocol):
    """Runs commands at other nodes, and here."""

    me: NodeId

    def leaders(self, topic: Topic) -> Sequence[NodeId | None]:
        """Who leads each partition."""

    async def run_at(self, node: NodeId, command: Command) -> object: ...

    def patience(self) -> Waiting: ...


async def ask(carrier: Carrier, asked: Mapping[NodeId, Command]) -> dict[NodeId, object]:
    """What each node says to its command. Raises what any of them raises."""
    answers = await asyncio.gather(*(carrier.run_at(node, command) for node, command in asked.items()))
    return dict(zip(asked, answers, strict=True))
