"""`GoQueue`: all of a broker in plain calls. One of them may be used by many threads at once."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from goqueue.client.addresses import Address, addresses_of
from goqueue.client.call import Call
from goqueue.client.connection import Pool
from goqueue.client.consumer import Consumer
from goqueue.client.consumer_settings import consumer_settings
from goqueue.client.messages import Message
from goqueue.client.methods import shown_as
from goqueue.client.nouns import (
    Access,
    Admin,
    Backups,
    Cluster,
    DeadLetters,
    Delayed,
    Groups,
    Identities,
    Messages,
    Schedules,
    Schemas,
    Tenants,
    Topics,
    Traces,
    Transactions,
)
from goqueue.client.outbox import ProducerSettings
from goqueue.client.reading import Bookmark
from goqueue.client.times import Duration, option_ms
from goqueue.client.tls import FileName, Trust
from goqueue.client.transaction import Transaction

if TYPE_CHECKING:
    from goqueue.client.producer import Producer

T = TypeVar("T")
S = TypeVar("S")
P = ParamSpec("P")


def _makes(settings: Callable[P, S], kind: Callable[[Pool, S], T]) -> Callable[Concatenate["GoQueue", P], T]:
    """A method that takes settings and gives what is made with them."""

    @shown_as(settings, getattr(kind, "__annotations__", {}).get("return", kind))
    def make(queue: "GoQueue", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return kind(queue._pool, settings(*args, **kwargs))

    return make


def _producer(pool: Pool, settings: ProducerSettings) -> "Producer":
    # What builds record batches takes as long to load as all the rest, and most programs only ask.
    from goqueue.client.producer import Producer

    return Producer(pool, settings)


class GoQueue(Messages):
    """A broker, by the addresses of its HTTP doors: `GoQueue("localhost:8080")`.

    Calls that may reach a node twice are tried again for `retry_for_s` when no node answers, or one is too
    busy. Those that may not (a publish) are tried again only as long as nothing was sent.

    Addresses that begin with `https://` are spoken to by TLS: `ca_file` is who vouches for nodes (else whom
    the system trusts), `cert_file` and `key_file` what this client shows of itself.
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
        self._pool = Pool(
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
        super().__init__(self._pool)
        self.topics = Topics(self._pool)
        self.groups = Groups(self._pool)
        self.dead_letters = DeadLetters(self._pool)
        self.delayed = Delayed(self._pool)
        self.schedules = Schedules(self._pool)
        self.transactions = Transactions(self._pool)
        self.traces = Traces(self._pool)
        self.schemas = Schemas(self._pool)
        self.admin = Admin(self._pool)
        self.cluster = Cluster(self._pool)
        self.access = Access(self._pool)
        self.identities = Identities(self._pool)
        self.backups = Backups(self._pool)
        self.tenants = Tenants(self._pool)

    def __enter__(self) -> "GoQueue":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Hang up."""
        self._pool.close()

    def carry(self, call: Call[T]) -> T:
        """What any call of `goqueue.client.calls` gives."""
        return self._pool.carry(call)

    producer = _makes(ProducerSettings, _producer)
    consumer = _makes(consumer_settings, Consumer)

    def read(
        self,
        topic: str,
        partition: int = 0,
        *,
        offset: int = 0,
        at: datetime | None = None,
        follow: bool = False,
        limit: int | None = None,
    ) -> Iterator[Message]:
        """Messages of one partition in log order, from an offset or a time on, without a group.

        It ends at the end of the log; with `follow` it waits there for more. `limit` is how many are fetched
        at once.
        """
        bookmark = Bookmark(
            topic=topic, partition=partition, offset=offset, at=at, follow=follow, limit=limit
        )
        has_more = True
        while has_more:
            page = self.carry(bookmark.next_page())
            has_more = bookmark.turn(page)
            yield from page.messages

    def transaction(self, transactional_id: str, *, timeout: Duration | None = None) -> Transaction:
        """A transaction, in a `with` block: all that is published and acknowledged in it, or nothing.

        One that is open for longer than `timeout` (a minute) is aborted by the node.
        """
        return Transaction(self._pool, transactional_id, timeout)
