"""`AsyncGoQueue`: all of a broker, to be awaited. It belongs to one asyncio loop."""

from collections.abc import AsyncIterator, Callable, Sequence
from datetime import datetime
from types import TracebackType
from typing import Concatenate, ParamSpec, TypeVar

from goqueue.client.addresses import Address, addresses_of
from goqueue.client.aio_connection import AsyncClient
from goqueue.client.aio_consumer import AsyncConsumer
from goqueue.client.aio_producer import AsyncProducer
from goqueue.client.call import Call
from goqueue.client.consumer_settings import consumer_settings
from goqueue.client.messages import Message
from goqueue.client.methods import shown_as
from goqueue.client.nouns import (
    AsyncAccess,
    AsyncAdmin,
    AsyncBackups,
    AsyncCluster,
    AsyncDeadLetters,
    AsyncDelayed,
    AsyncGroups,
    AsyncIdentities,
    AsyncMessages,
    AsyncSchedules,
    AsyncSchemas,
    AsyncTenants,
    AsyncTopics,
    AsyncTraces,
    AsyncTransactions,
)
from goqueue.client.outbox import ProducerSettings
from goqueue.client.reading import Bookmark
from goqueue.client.times import Duration, option_ms
from goqueue.client.tls import FileName, Trust
from goqueue.client.transaction import AsyncTransaction

T = TypeVar("T")
S = TypeVar("S")
P = ParamSpec("P")


def _makes(
    settings: Callable[P, S], kind: Callable[[AsyncClient, S], T]
) -> Callable[Concatenate["AsyncGoQueue", P], T]:
    """A method that takes settings and gives what is made with them."""

    @shown_as(settings, kind)
    def make(queue: "AsyncGoQueue", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return kind(queue._client, settings(*args, **kwargs))

    return make


class AsyncGoQueue(AsyncMessages):
    """A broker, by the addresses of its HTTP doors: `AsyncGoQueue("localhost:8080")`.

    All names are those of `GoQueue`, and so are the rules by which calls are tried again.
    """

    def __init__(
        self,
        server: str | Sequence[str | Address] = "localhost:8080",
        *,
        api_key: str | None = None,
        timeout_s: float = 30.0,
        retry_for_s: float = 30.0,
        ca_file: FileName | None = None,
        cert_file: FileName | None = None,
        key_file: FileName | None = None,
        insecure_skip_verify: bool = False,
    ) -> None:
        self._client = AsyncClient(
            addresses_of(server),
            timeout_ms=option_ms("timeout_s", timeout_s, least_ms=1),
            retry_for_ms=option_ms("retry_for_s", retry_for_s, least_ms=0),
            api_key=api_key,
            trust=Trust(
                ca_file=ca_file,
                cert_file=cert_file,
                key_file=key_file,
                insecure_skip_verify=insecure_skip_verify,
            ),
        )
        super().__init__(self._client)
        self.topics = AsyncTopics(self._client)
        self.groups = AsyncGroups(self._client)
        self.dead_letters = AsyncDeadLetters(self._client)
        self.delayed = AsyncDelayed(self._client)
        self.schedules = AsyncSchedules(self._client)
        self.transactions = AsyncTransactions(self._client)
        self.traces = AsyncTraces(self._client)
        self.schemas = AsyncSchemas(self._client)
        self.admin = AsyncAdmin(self._client)
        self.cluster = AsyncCluster(self._client)
        self.access = AsyncAccess(self._client)
        self.identities = AsyncIdentities(self._client)
        self.backups = AsyncBackups(self._client)
        self.tenants = AsyncTenants(self._client)

    async def __aenter__(self) -> "AsyncGoQueue":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Hang up."""
        await self._client.close()

    async def carry(self, call: Call[T]) -> T:
        """What any call of `goqueue.client.calls` gives."""
        return await self._client.carry(call)

    producer = _makes(ProducerSettings, AsyncProducer)
    consumer = _makes(consumer_settings, AsyncConsumer)

    async def read(
        self,
        topic: str,
        partition: int = 0,
        *,
        offset: int = 0,
        at: datetime | None = None,
        follow: bool = False,
        limit: int | None = None,
    ) -> AsyncIterator[Message]:
        """Messages of one partition in log order, from an offset or a time on, without a group.

        It ends at the end of the log; with `follow` it waits there for more. `limit` is how many are fetched
        at once.
        """
        bookmark = Bookmark(
            topic=topic, partition=partition, offset=offset, at=at, follow=follow, limit=limit
        )
        has_more = True
        while has_more:
            page = await self.carry(bookmark.next_page())
            has_more = bookmark.turn(page)
            for message in page.messages:
                yield message

    def transaction(self, transactional_id: str, *, timeout: Duration | None = None) -> AsyncTransaction:
        """A transaction, in an `async with` block: all that is published and acknowledged in it, or nothing.

        One that is open for longer than `timeout` (a minute) is aborted by the node.
        """
        return AsyncTransaction(self._client, transactional_id, timeout)
