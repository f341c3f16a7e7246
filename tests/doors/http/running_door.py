"""A broker on a real disk and its HTTP door, in a loop of their own, so that tests can be plain functions."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TypeVar

import httpx
import uvloop

from goqueue.broker.broker import Broker
from goqueue.broker.opening import close_broker, open_broker
from goqueue.edge.authentication import AuthConfig, Authenticator, TokenReader
from goqueue.edge.http.config import HttpConfig
from goqueue.edge.http.door import HttpDoor
from goqueue.edge.listening import PLAIN_LISTENER, Listener
from goqueue.model.settings import BrokerConfig
from goqueue.node.clock import SystemClock
from goqueue.node.disk import FolderDisk
from goqueue.node.threads import WorkerThreads
from goqueue.testing.world.holds import longest_hold_by_others
from goqueue.testing.world.workshop import WorkshopAtHand

T = TypeVar("T")


class RunningDoor:
    """Opened by `with`; `client` speaks to the port that was bound."""

    def __init__(
        self,
        folder: Path,
        config: HttpConfig | None = None,
        broker_config: BrokerConfig | None = None,
        *,
        listener: Listener = PLAIN_LISTENER,
        auth: AuthConfig | None = None,
        tokens: Callable[[Broker], TokenReader] | None = None,
    ) -> None:
        self._tokens = tokens
        self.folder = folder
        self._config = config or HttpConfig()
        self._broker_config = broker_config or BrokerConfig()
        self._listener = listener
        self._auth = auth
        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._workers = WorkerThreads()
        self.broker: Broker
        self.door: HttpDoor
        self.port = 0
        self.client: httpx.Client

    def __enter__(self) -> "RunningDoor":
        self._thread.start()
        self.run(self._open())
        # There is no TLS here, and reading the machine's certificates takes longer than opening the broker.
        self.client = httpx.Client(base_url=self.url, timeout=20, verify=False)
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()
        self.run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._workers.close()

    @property
    def url(self) -> str:
        scheme = "https" if self._listener.protocol.has_tls else "http"
        return f"{scheme}://127.0.0.1:{self.port}"

    def run(self, coroutine: Coroutine[object, object, T]) -> T:
        """Do something inside the loop and give what it gives."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(timeout=20)

    def longest_hold(self, work: Callable[[], object], *, runs: int = 3) -> float:
        """For how many ms of CPU what clients do holds the loop in one piece, in the best of some runs."""
        return longest_hold_by_others(self.run, work, runs=runs)

    async def _open(self) -> None:
        self.broker = await open_broker(
            config=self._broker_config,
            disk=FolderDisk(self.folder),
            clock=SystemClock(),
            threads=self._workers,
            workshop=WorkshopAtHand(),
        )
        tokens = None if self._tokens is None else self._tokens(self.broker)
        known = None if self._auth is None else Authenticator(self.broker, self._auth, tokens)
        self.door = HttpDoor(self.broker, self._config, known)
        self.port = await self.door.start("127.0.0.1", 0, self._listener)

    async def _close(self) -> None:
        await self.door.stop()
        await close_broker(self.broker)
