"""The doors of a node: opened in order, told about, closed together."""

import asyncio
import errno
from typing import NamedTuple, Protocol

from goqueue.broker.broker import Broker
from goqueue.edge.authentication import Authenticator, TokenReader
from goqueue.edge.http.door import HttpDoor
from goqueue.edge.kafka.door import KafkaDoor
from goqueue.edge.listening import Listener
from goqueue.edge.tls import ServerTls
from goqueue.node import config_table as table
from goqueue.node.config import NodeConfig
from goqueue.node.config_doors import ListenerConfig
from goqueue.node.config_table import Setting
from goqueue.node.config_values import Address


class Door(Protocol):
    async def stop(self) -> None:
        """Take no new work, send the replies under way, close."""


class ListeningDoor(Door, Protocol):
    async def start(self, host: str, port: int, listener: Listener) -> int:
        """Listen, at one more address; gives the port that was bound. Raises OSError."""


class OpenDoor(NamedTuple):
    name: str
    address: Address
    """Where it listens."""
    door: Door
    listener: str = ""
    """By which name other nodes know it."""
    advertised: Address | None = None


class DoorBlocked(OSError):
    """A door could not listen where it was told to."""


async def open_doors(broker: Broker, config: NodeConfig, tls: ServerTls | None) -> list[OpenDoor]:
    """Open every door the configuration names; when one fails, those already open are closed again.

    A door that listens at several addresses is told of several times.
    """
    asks = config.asks_who or broker.config.access.is_asked
    known = Authenticator(broker, config.auth, _tokens(broker, config)) if asks else None
    wanted: list[tuple[str, ListeningDoor, tuple[ListenerConfig, ...], Setting[object]]] = [
        ("kafka", KafkaDoor(broker, config.kafka, known), config.kafka_listeners, table.KAFKA_LISTENERS),
        ("http", HttpDoor(broker, config.http, known), config.http_listeners, table.HTTP_LISTENERS),
    ]
    opened: list[OpenDoor] = []
    for name, door, listeners, setting in wanted:
        for listener in listeners:
            address = listener.address
            try:
                port = await door.start(address.host, address.port, _listener(listener, tls))
            except OSError as error:
                await close_doors(opened)
                raise DoorBlocked(why_blocked(name, address, setting, error)) from error
            bound = Address(address.host, port)
            opened.append(OpenDoor(name, bound, door, listener.name, listener.advertised))
    return opened


async def close_doors(doors: list[OpenDoor]) -> None:
    """Close all doors at the same time: each may wait for replies that are under way."""
    await asyncio.gather(*(door.stop() for door in {opened.door: None for opened in doors}))


def _tokens(broker: Broker, config: NodeConfig) -> TokenReader | None:
    if config.tokens is None:
        return None
    # It needs a package that others need not have.
    from goqueue.node.issuer import open_tokens

    return open_tokens(broker, config.tokens)


def _listener(config: ListenerConfig, tls: ServerTls | None) -> Listener:
    return Listener(
        name=config.name,
        protocol=config.protocol,
        tls=tls if config.protocol.has_tls else None,
        advertised_host=None if config.advertised is None else config.advertised.host,
        advertised_port=None if config.advertised is None else config.advertised.port,
    )


def why_blocked(name: str, address: Address, setting: Setting[object], error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        why, then = "another program listens there", "stop it, or choose another port"
    elif error.errno == errno.EACCES:
        why, then = "this user may not listen there", "choose a port from 1024 on"
    else:
        why, then = error.strerror or str(error), "choose an address of this machine"
    return f"the {name} door cannot listen on {address}: {why}; {then} with {setting.variable}"
