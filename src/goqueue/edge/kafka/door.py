"""The Kafka door: listens, at one address or several, lets clients in, and closes in good order."""

import asyncio
import logging

from goqueue.broker.broker import Broker
from goqueue.edge.admission import Admission
from goqueue.edge.authentication import Authenticator
from goqueue.edge.kafka.config import KafkaConfig
from goqueue.edge.kafka.context import Context
from goqueue.edge.kafka.frame_memory import FrameMemory
from goqueue.edge.kafka.protocol import KafkaProtocol
from goqueue.edge.kafka.sasl import Sasl
from goqueue.edge.kafka.share_sessions import ShareSessions
from goqueue.edge.limited_log import LimitedLog
from goqueue.edge.listening import PLAIN_LISTENER, Listener
from goqueue.model.identity import ANONYMOUS

logger = logging.getLogger(__name__)

_BACKLOG = 1_024
_WILDCARDS = ("", "0.0.0.0", "::")  # noqa: S104 - compared with, not bound to
_LOOK_INTERVAL_S = 60.0
"""How often connections are looked at at least, and how late it is told what the log left out."""
_LOOKS_PER_IDLE_TIME = 4


class KafkaDoor:
    """All Kafka clients of a node."""

    def __init__(
        self, broker: Broker, config: KafkaConfig, authenticator: Authenticator | None = None
    ) -> None:
        """`authenticator`: who says who is there; needed where a listener asks."""
        self._broker = broker
        self._authenticator = authenticator
        self._identities_seen = 0
        self._config = config
        self.memory = FrameMemory(held_bytes_max=config.held_bytes_max)
        self._share_sessions = ShareSessions()
        self.log = LimitedLog(logger)
        self._clients: set[KafkaProtocol] = set()
        self._strangers: set[KafkaProtocol] = set()
        """Those of them that are asked who they are, and have not said it."""
        self._admission = Admission(config.connections, "kafka", broker.counters.connections_refused)
        self._servers: list[asyncio.Server] = []
        self._is_stopping = False
        self._all_left = asyncio.Event()
        self._look: asyncio.TimerHandle | None = None

    async def start(self, host: str, port: int, listener: Listener = PLAIN_LISTENER) -> int:
        """Listen, at one more address; gives the port that was bound. Raises OSError."""
        entrance = Entrance(self, listener, host)
        server = await asyncio.get_running_loop().create_server(
            lambda: KafkaProtocol(entrance),
            host or None,
            port,
            backlog=_BACKLOG,
            ssl=listener.context,
            ssl_handshake_timeout=listener.handshake_s,
        )
        entrance.port = int(server.sockets[0].getsockname()[1])
        if not self._servers:
            self._look_later()
            self._broker.agreement.listeners.append(self._look_at_identities)
            self._broker.counters.connections["kafka"] = lambda: self.client_count
        self._servers.append(server)
        return entrance.port

    async def stop(self) -> None:
        """Let nobody in, begin nothing, send the replies under way within the time set, close."""
        if not self._servers:
            return
        self._is_stopping = True
        for server in self._servers:
            server.close()
        if self._look is not None:
            self._look.cancel()
        for client in list(self._clients):
            client.stop()
        if self._clients:
            try:
                await asyncio.wait_for(self._all_left.wait(), self._config.stop_ms / 1_000)
            except TimeoutError:
                for client in list(self._clients):
                    client.abort("kafka_connection_cut", "stopping")
                await self._all_left.wait()
        self.log.tell_suppressed()
        for server in self._servers:
            await server.wait_closed()
        self._servers.clear()

    @property
    def client_count(self) -> int:
        return len(self._clients)

    @property
    def unsent_bytes(self) -> int:
        """Replies that wait for their clients to take them."""
        return sum(client.unsent_bytes for client in self._clients)

    def admit(self, client: KafkaProtocol) -> str | None:
        """Let one more in; why not, if there is no room for it."""
        if self._is_stopping:
            return "stopping"
        is_stranger = client.sasl is not None
        if (refusal := self._admission.enter(client.address, is_stranger=is_stranger)) is not None:
            return refusal.value
        self._clients.add(client)
        if is_stranger:
            self._strangers.add(client)
        return None

    def know(self, client: KafkaProtocol) -> None:
        """A client has said who it is, or never will."""
        if client in self._strangers:
            self._strangers.remove(client)
            self._admission.know(client.address)

    def context_for(
        self, transport: asyncio.Transport, listener: Listener, reached: tuple[str, int]
    ) -> Context:
        """What this client's requests may look at."""
        host, port = reached
        return Context(
            broker=self._broker,
            config=self._config,
            host=listener.advertised_host or host,
            port=listener.advertised_port or port,
            listener=listener.name,
            principal=listener.principal(transport) or ANONYMOUS,
            client_host=str((transport.get_extra_info("peername") or ("",))[0]),
            share_sessions=self._share_sessions,
            sasl=self._sasl(listener, transport),
        )

    def _sasl(self, listener: Listener, transport: asyncio.Transport) -> Sasl | None:
        if not listener.protocol.asks_who:
            return None
        assert self._authenticator is not None, "a listener that asks has somebody to ask"
        return Sasl(self._authenticator, str((transport.get_extra_info("peername") or ("",))[0]))

    def _look_at_identities(self) -> None:
        """Users or keys may have changed: who would not be let in now is hung up on."""
        if self._identities_seen != self._broker.identities.changes:
            self._identities_seen = self._broker.identities.changes
            self._hang_up_on_strangers()

    def _hang_up_on_strangers(self) -> None:
        for client in list(self._clients):
            if client.is_shut_out:
                client.abort("kafka_connection_cut", "it is not let in any more")
            elif not client.is_as_known:
                client.abort("kafka_connection_cut", "it is of another tenant now")

    def leave(self, client: KafkaProtocol) -> None:
        """A client is gone."""
        self.know(client)
        if client in self._clients:
            self._clients.remove(client)
            self._admission.leave(client.address)
        if self._is_stopping and not self._clients:
            self._all_left.set()

    def _look_later(self) -> None:
        seconds = _LOOK_INTERVAL_S
        if self._config.idle_ms is not None:
            seconds = min(seconds, self._config.idle_ms / 1_000 / _LOOKS_PER_IDLE_TIME)
        self._look = asyncio.get_running_loop().call_later(seconds, self._look_around)

    def _look_around(self) -> None:
        """Close connections that nobody uses, and say what the log has left out."""
        if self._config.idle_ms is not None:
            since_s = asyncio.get_running_loop().time() - self._config.idle_ms / 1_000
            for client in [client for client in self._clients if client.is_idle_since(since_s)]:
                client.abort("kafka_connection_idle", f"no request for {self._config.idle_ms} ms")
        self._hang_up_on_strangers()  # their time may have come
        self.log.tell_suppressed()
        self._look_later()


class Entrance:
    """One of the addresses at which the door listens: the lobby of whoever comes there."""

    port = 0

    def __init__(self, door: KafkaDoor, listener: Listener, host: str) -> None:
        self.memory = door.memory
        self.log = door.log
        self._door = door
        self._listener = listener
        self._host = host

    def admit(self, client: KafkaProtocol) -> str | None:
        """Let one more in; why not, if there is no room for it, or it is nobody's."""
        if self._listener.principal(client.transport) is None:
            return "no rule names the owner of its certificate"
        if client.is_shut_out:
            return "the user that its certificate names is not let in"
        return self._door.admit(client)

    def context_for(self, transport: asyncio.Transport) -> Context:
        """What this client's requests may look at."""
        return self._door.context_for(transport, self._listener, (self._reached_at(transport), self.port))

    def know(self, client: KafkaProtocol) -> None:
        """A client has said who it is."""
        self._door.know(client)

    def leave(self, client: KafkaProtocol) -> None:
        """A client is gone."""
        self._door.leave(client)

    def _reached_at(self, transport: asyncio.Transport) -> str:
        """By which address this client knows us. A wildcard is not one that it could connect to."""
        if self._host not in _WILDCARDS:
            return self._host
        # A client that is gone again before we looked has no address left, and no use for one.
        reached: tuple[object, ...] = transport.get_extra_info("sockname") or ("localhost",)
        return str(reached[0])
