"""`Transaction`: what is published and acknowledged in it counts together, or not at all. In both forms."""

from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import Concatenate, ParamSpec, TypeVar

from goqueue.client.call import Call
from goqueue.client.calls import transactions
from goqueue.client.calls.queue import in_requests
from goqueue.client.calls.transactions import HasReceipt, Speaker
from goqueue.client.membership import Leased, logger
from goqueue.client.methods import shown_as
from goqueue.client.nouns import AsyncCarrier, Carrier
from goqueue.client.steps import PROBLEMS, Steps, ask, take, take_async
from goqueue.client.times import Duration, milliseconds
from goqueue.model.errors import Invalid

T = TypeVar("T")
P = ParamSpec("P")


class _Opening:
    """A transactional id, and who speaks for it while its transaction is open."""

    def __init__(self, transactional_id: str, timeout: Duration | None) -> None:
        self.transactional_id = transactional_id
        self._timeout_ms = None if timeout is None else milliseconds(timeout)
        self._speaker: Speaker | None = None

    @property
    def is_open(self) -> bool:
        return self._speaker is not None

    def begin(self) -> Steps[None]:
        """Take the transactional id over, and open a transaction under it."""
        producer = yield from ask(
            transactions.init_producer(self.transactional_id, timeout_ms=self._timeout_ms)
        )
        speaker = Speaker(producer, self.transactional_id)
        yield from ask(transactions.begin(speaker))
        self._speaker = speaker

    def end(self, problem: BaseException | None) -> Steps[None]:
        """Commit, or after a problem abort; nothing where it was ended by hand."""
        if self._speaker is None:
            return
        speaker, self._speaker = self._speaker, None
        if problem is None:
            yield from ask(transactions.commit(speaker))
            return
        try:
            yield from ask(transactions.abort(speaker))
        except PROBLEMS as refused:
            # The exception that led here is the one to hear of; in time the node aborts by itself.
            logger.warning("transaction %s could not be aborted: %s", self.transactional_id, refused)

    def ack(self, messages: Sequence[HasReceipt]) -> Steps[None]:
        """Messages are settled with the transaction, and not at the end of their own blocks."""
        speaker = self.speaker
        for part in in_requests(messages):
            yield from ask(transactions.ack(speaker, *part))
            for message in part:
                if isinstance(message, Leased):
                    message._hand_over(self)

    def abort(self) -> Steps[None]:
        yield from ask(transactions.abort(self.speaker))
        self._speaker = None

    @property
    def speaker(self) -> Speaker:
        if self._speaker is None:
            raise Invalid(f"transaction {self.transactional_id} is not open: use it inside its `with` block")
        return self._speaker


class Transaction:
    """It commits at the end of its `with` block, and is aborted by an exception.

    When a reply is lost while it publishes, the block is left by Unavailable and all of it is undone. A
    transactional id belongs to whoever opened one last; the one before is refused with Fenced.
    """

    def __init__(self, carrier: Carrier, transactional_id: str, timeout: Duration | None) -> None:
        self._carrier = carrier
        self._opening = _Opening(transactional_id, timeout)

    def __enter__(self) -> "Transaction":
        take(self._opening.begin(), self._carrier)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        take(self._opening.end(problem), self._carrier)

    @staticmethod
    def _part(make: Callable[Concatenate[Speaker, P], Call[T]]) -> Callable[Concatenate["Transaction", P], T]:
        @shown_as(make)
        def carry(self: "Transaction", /, *args: P.args, **kwargs: P.kwargs) -> T:
            return self._carrier.carry(make(self._opening.speaker, *args, **kwargs))

        return carry

    publish = _part(transactions.publish)
    offsets = _part(transactions.offsets)

    def ack(self, *messages: HasReceipt) -> None:
        """Messages that a consumer has taken are acknowledged when the transaction commits."""
        take(self._opening.ack(messages), self._carrier)

    def abort(self) -> None:
        """Undo all of it before the end of the block, which then does nothing more."""
        take(self._opening.abort(), self._carrier)


class AsyncTransaction:
    """The same, to be awaited: `async with queue.transaction(…) as transaction`."""

    def __init__(self, carrier: AsyncCarrier, transactional_id: str, timeout: Duration | None) -> None:
        self._carrier = carrier
        self._opening = _Opening(transactional_id, timeout)

    async def __aenter__(self) -> "AsyncTransaction":
        await take_async(self._opening.begin(), self._carrier)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await take_async(self._opening.end(problem), self._carrier)

    @staticmethod
    def _part(
        make: Callable[Concatenate[Speaker, P], Call[T]],
    ) -> Callable[Concatenate["AsyncTransaction", P], Awaitable[T]]:
        @shown_as(make)
        async def carry(self: "AsyncTransaction", /, *args: P.args, **kwargs: P.kwargs) -> T:
            return await self._carrier.carry(make(self._opening.speaker, *args, **kwargs))

        return carry

    publish = _part(transactions.publish)
    offsets = _part(transactions.offsets)

    async def ack(self, *messages: HasReceipt) -> None:
        """Messages that a consumer has taken are acknowledged when the transaction commits."""
        await take_async(self._opening.ack(messages), self._carrier)

    async def abort(self) -> None:
        """Undo all of it before the end of the block, which then does nothing more."""
        await take_async(self._opening.abort(), self._carrier)
