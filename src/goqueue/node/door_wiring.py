"""The doors of a node: opened in order, told about, closed together."""

import asyncio
import errno
from typing import NamedTuple, Protocol

from goqueue.broker.broker import Broker
from goqueue.edge.http.door import HttpDoor
from goqueue.edge.kafka.door import KafkaDoor
from goqueue.node import config_table as table
from goqueue.node.config import NodeConfig
from goqueue.node.config_table import Setting
from goqueue.node.config_values import Address


class Door(Protocol):
    async def start(self, host: str, port: int) -> int:
        """Listen; gives the port that was bound. Raises OSError."""

    async def stop(self) -> None:
        """Take no new work, send the replies under way, close."""


class OpenDoor(NamedTuple):
    name: str
    address: Address
    door: Door


class DoorBlocked(OSError):
    """A door could not listen where it was told to."""


async def open_doors(broker: Broker, config: NodeConfig) -> list[OpenDoor]:
    """Open every door the configuration names; when one fails, those already open are closed again."""
    wanted: list[tuple[str, Door, Address | None, Setting[Address | None]]] = [
        ("kafka", KafkaDoor(broker, config.kafka), config.kafka_listener, table.KAFKA_LISTENER),
        ("http", HttpDoor(broker, config.http), config.http_listener, table.HTTP_LISTENER),
    ]
    opened: list[OpenDoor] = []
    for name, door, address, setting in wanted:
        if address is None:
            continue
        try:
            port = await door.start(address.host, address.port)
        except OSError as error:
            await close_doors(opened)
            raise DoorBlocked(why_blocked(name, address, setting, error)) from error
        opened.append(OpenDoor(name, Address(address.host, port), door))
    return opened


async def close_doors(doors: list[OpenDoor]) -> None:
    """Close all doors at the same time: each may wait for replies that are under way."""
    await asyncio.gather(*(opened.door.stop() for opened in doors))


def why_blocked(
    name: str, address: Address, setting: Setting[Address | None] | Setting[Address], error: OSError
) -> str:
    if error.errno == errno.EADDRINUSE:
        why, then = "another program listens there", "stop it, or choose another port"
    elif error.errno == errno.EACCES:
        why, then = "this user may not listen there", "choose a port from 1024 on"
    else:
        why, then = error.strerror or str(error), "choose an address of this machine"
    return f"the {name} door cannot listen on {address}: {why}; {then} with {setting.variable}"
