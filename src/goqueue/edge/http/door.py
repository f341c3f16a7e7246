"""The HTTP door of a node: opens a port, serves, and closes without dropping a reply.

uvicorn's protocol does the HTTP; its Server is left out, because it takes the process' signals,
exits the process when a port is taken, and looks ten times a second whether it should stop.
"""

import asyncio
import logging
from email.utils import formatdate
from typing import cast

from uvicorn import Config
from uvicorn.server import ServerState

from goqueue.broker.broker import Broker
from goqueue.edge.admission import Admission
from goqueue.edge.authentication import Authenticator
from goqueue.edge.http.app import create_app
from goqueue.edge.http.config import HttpConfig
from goqueue.edge.http.parts.long_polls import LongPolls
from goqueue.edge.http.transport.body_memory import BodyMemory
from goqueue.edge.http.transport.connection import GuardedConnection
from goqueue.edge.http.transport.page_rules import PageRules
from goqueue.edge.limited_log import LimitedLog
from goqueue.edge.listening import PLAIN_LISTENER, Listener

logger = logging.getLogger("goqueue.edge.http")

_DATE_INTERVAL_S = 1.0
_GUARDS = ((b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store"))
"""No browser takes a value that somebody published for a page, and nobody on the way keeps it for others."""


class HttpDoor:
    """Serves one broker over HTTP, inside the loop that is running."""

    def __init__(
        self, broker: Broker, config: HttpConfig, authenticator: Authenticator | None = None
    ) -> None:
        """`authenticator`: who says who is there; needed where a listener asks, or the gate does."""
        self._broker = broker
        self._config = config
        self._long_polls = LongPolls()
        self._state = ServerState()
        self.bodies = BodyMemory(config.bodies_bytes)
        self._admission = Admission(config.connections, "http", broker.counters.connections_refused)
        self._log = LimitedLog(logger)
        self._rules = PageRules(
            hosts=config.hosts, origins=config.cors_origins, advertised_host=config.advertised_host
        )
        self._uvicorn = Config(
            create_app(broker, config, self._long_polls, self._rules, authenticator),
            http=GuardedConnection,
            interface="asgi3",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=config.idle_timeout_s,  # type: ignore[arg-type]  # handed to call_later as it is
        )
        self._uvicorn.load()
        self._servers: list[asyncio.Server] = []
        self._date: asyncio.TimerHandle | None = None

    async def start(self, host: str, port: int, listener: Listener = PLAIN_LISTENER) -> int:
        """Listen, at one more address; port 0 takes a free one. The port that was bound. Raises OSError."""
        self._rules.listen_on(host, listener.advertised_host)
        server = await asyncio.get_running_loop().create_server(
            lambda: GuardedConnection(self._uvicorn, self._state, self._config, self, listener),
            host,
            port,
            backlog=self._config.backlog,
            ssl=listener.context,
            ssl_handshake_timeout=listener.handshake_s,
        )
        if not self._servers:
            self._tell_date()
            self._broker.counters.connections["http"] = lambda: len(self._state.connections)
        self._servers.append(server)
        return int(server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Take no new work, answer what is in flight, wake every long poll, then close."""
        if not self._servers:
            return
        for server in self._servers:
            server.close()
        self._long_polls.end()
        for connection in list(self._state.connections):
            connection.shutdown()
        if self._state.tasks:
            _, late = await asyncio.wait(list(self._state.tasks), timeout=self._config.stop_timeout_s)
            for task in late:
                logger.warning("http_reply_cut_off after_s=%s", self._config.stop_timeout_s)
                task.cancel()
        for connection in list(self._state.connections):
            cast(GuardedConnection, connection).hang_up()
        if self._date is not None:
            self._date.cancel()
        self._log.tell_suppressed()
        self._servers.clear()

    def admit(self, address: str) -> bool:
        """Whether there is room for one more."""
        refusal = self._admission.enter(address)
        if refusal is None:
            return True
        self._log.write(logging.INFO, "http_connection_refused", {"peer": address, "reason": refusal.value})
        return False

    def leave(self, address: str) -> None:
        """One that was let in is gone."""
        self._admission.leave(address)

    def _tell_date(self) -> None:
        """Keep the Date header, which is the same for all replies of a second."""
        self._state.default_headers = [(b"date", formatdate(usegmt=True).encode()), *_GUARDS]
        self._date = asyncio.get_running_loop().call_later(_DATE_INTERVAL_S, self._tell_date)
