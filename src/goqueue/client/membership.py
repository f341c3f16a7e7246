"""A consumer's place in its group and all it does there, step by step, for both forms.

Polls and upkeep may run at the same time. Only who polls joins: when a sign of life finds that the group has
forgotten the member, the next poll comes as a new one. What was leased before stays leased.
"""

import logging
from typing import Protocol

import msgspec

from goqueue.client.calls import queue
from goqueue.client.calls.queue import Polled
from goqueue.client.consumer_settings import ConsumerSettings
from goqueue.client.errors import Refused, RefusedFenced, RefusedNotFound
from goqueue.client.leases import Leases
from goqueue.client.messages import Message
from goqueue.client.steps import PROBLEMS, Steps, ask
from goqueue.client.times import Duration, milliseconds
from goqueue.model.errors import GroupNotFound, Unavailable

logger = logging.getLogger("goqueue.client")

_NS_PER_MS = 1_000_000
_BEATS_A_SESSION = 5
_RETRY_NS = 1_000_000_000
"""After upkeep has failed it is tried again so much later."""
_AT_ONCE = 0.0
_REASON_LENGTH_MAX = 1_000
_CLOSED = "the consumer was closed before it came to this message"


class Ending(Protocol):
    """A transaction: while it is open, nobody knows what becomes of what was handed over to it."""

    @property
    def is_open(self) -> bool: ...


class Leased(Message, frozen=True, kw_only=True):
    """A message that is out with a consumer until it settles it, or its time is up."""

    receipt: str
    delivery_count: int
    """1: it was never delivered to this group before."""
    _membership: "Membership"
    _transaction: Ending | None = None

    def _hand_over(self, transaction: Ending) -> None:
        """A transaction settles it, and keeps its lease until then."""
        msgspec.structs.force_setattr(self, "_transaction", transaction)
        self._membership.hand_over(self.receipt)

    @property
    def _is_in_transaction(self) -> bool:
        return self._transaction is not None and self._transaction.is_open


class Membership:
    """A member of a group, and what it has out."""

    def __init__(self, settings: ConsumerSettings, *, now_ns: int) -> None:
        self._settings = settings
        visibility_ms = settings.visibility_ms
        self._visibility_s = None if visibility_ms is None else visibility_ms / 1_000
        self._leases = Leases(
            visibility_ns=visibility_ms * _NS_PER_MS if settings.auto_extend and visibility_ms else None,
            ack_linger_ns=int(settings.ack_linger_ms * _NS_PER_MS),
        )
        self._member_id: str | None = None
        self._beat_ns = milliseconds(settings.session_timeout) * _NS_PER_MS // _BEATS_A_SESSION
        self._next_beat_ns = now_ns
        self._quiet_until_ns = now_ns
        self.lost_count = 0

    def join(self) -> Steps[None]:
        """Become a member, unless it is one. Not to be interrupted: nobody would leave for it."""
        settings = self._settings
        if self._member_id is None:
            self._member_id = yield from ask(
                queue.join(
                    settings.group,
                    client_id=settings.client_id,
                    topics=settings.topics,
                    mode=settings.mode,
                    key_order=settings.key_order or None,
                    session_timeout=settings.session_timeout,
                )
            )

    def poll(self, *, limit: int | None, wait: Duration) -> Steps[list[Polled]]:
        """Take messages. Gives none when the group has to be joined again."""
        member_id = self._member_id
        if member_id is None:
            return []
        call = queue.poll(
            self._settings.group,
            member_id,
            limit=limit or self._settings.limit,
            wait=wait,
            visibility=self._visibility_s,
        )
        try:
            return (yield from ask(call))
        except (RefusedFenced, RefusedNotFound) as refused:
            self._forgotten(refused)
            return []

    def took(self, polled: list[Polled], *, now_ns: int) -> None:
        """What a poll gave is out with this member from now on."""
        self._leases.hold((one.receipt for one in polled), now_ns=now_ns)

    def ack(self, receipt: str, *, now_ns: int) -> None:
        """A message is done; upkeep tells the node."""
        self._leases.ack(receipt, now_ns=now_ns)

    def hand_over(self, receipt: str) -> None:
        """Somebody else settles a message."""
        self._leases.drop(receipt)

    def is_open(self, receipt: str) -> bool:
        """Whether nobody has said yet what is to become of a message."""
        return self._leases.is_open(receipt)

    def settle(self, call: queue.Settling, receipt: str) -> Steps[None]:
        """Say at once what becomes of a message; raises when it is not this member's any more."""
        refused = yield from ask(call)
        self._leases.drop(receipt)
        if receipt in refused:
            raise refused[receipt]

    def extend(self, receipt: str, visibility: Duration, *, now_ns: int) -> Steps[None]:
        refused = yield from ask(queue.extend([receipt], visibility))
        if receipt in refused:
            raise refused[receipt]
        self._leases.hold([receipt], now_ns=now_ns)

    def fail(self, message: Leased, problem: BaseException) -> Steps[bool]:
        """Give back a message that could not be handled; whether the problem is to go no further."""
        is_interrupt = not isinstance(problem, Exception)
        delay = _AT_ONCE if is_interrupt else self._settings.retry_delay
        reason = _in_words(problem)
        place = f"{message.topic}/{message.partition}@{message.offset}"
        try:
            yield from self.settle(queue.nack([message.receipt], delay=delay, reason=reason), message.receipt)
        except (Refused, Unavailable) as refused:
            logger.info("message %s was not given back, and comes back by itself: %s", place, refused)
        if is_interrupt or self._settings.raise_errors:
            return False
        logger.warning("message %s could not be handled: %s", place, reason, exc_info=problem)
        return True

    def upkeep(self, now_ns: int) -> Steps[None]:
        """Send what is due: acknowledgements, longer leases, a sign of life."""
        try:
            yield from self._send_acks(now_ns)
            for receipts in queue.in_requests(self._leases.due_extensions(now_ns)):
                assert self._visibility_s is not None, "only leases of a known length are extended"
                refused = yield from ask(queue.extend(receipts, self._visibility_s))
                self._leases.extended(receipts, refused, now_ns=now_ns)
            if self._member_id is not None and now_ns >= self._next_beat_ns:
                self._next_beat_ns = now_ns + self._beat_ns
                yield from self._beat(self._member_id)
        except PROBLEMS:
            self._quiet_until_ns = now_ns + _RETRY_NS
            raise

    def upkeep_in_ns(self, now_ns: int) -> int:
        """How long until upkeep has something to do."""
        due_ns = self._leases.due_in_ns(now_ns)
        beat_ns = max(self._next_beat_ns - now_ns, 0) if self._member_id is not None else self._beat_ns
        sooner_ns = beat_ns if due_ns is None else min(beat_ns, due_ns)
        return max(sooner_ns, self._quiet_until_ns - now_ns)

    def flush(self, now_ns: int) -> Steps[None]:
        """Send all acknowledgements that wait."""
        self._leases.flush()
        yield from self._send_acks(now_ns)

    def leave(self, unseen: list[str], now_ns: int) -> Steps[None]:
        """Go for good: give back what nobody has looked at, send what waits. Interrupted, it can go on."""
        for receipts in queue.in_requests(unseen):
            yield from ask(queue.nack(receipts, delay=_AT_ONCE, reason=_CLOSED))
        yield from self.flush(now_ns)
        if self._member_id is not None:
            try:
                yield from ask(queue.leave(self._settings.group, self._member_id))
            except (RefusedFenced, RefusedNotFound) as refused:
                logger.debug("the group had forgotten the member: %s", refused)
            self._member_id = None

    def _send_acks(self, now_ns: int) -> Steps[None]:
        while receipts := self._leases.due_acks(now_ns):
            refused = yield from ask(queue.ack(receipts))
            self._leases.acked(receipts, now_ns=now_ns)
            self.lost_count += len(refused)
            for receipt, problem in refused.items():
                logger.warning("an acknowledgement came too late: %s (%s)", problem, receipt)

    def _beat(self, member_id: str) -> Steps[None]:
        try:
            yield from ask(queue.heartbeat(self._settings.group, member_id))
        except (RefusedFenced, RefusedNotFound) as refused:
            self._forgotten(refused)

    def _forgotten(self, refused: Refused) -> None:
        if isinstance(refused, RefusedNotFound) and refused.code != GroupNotFound.code:
            raise refused  # a topic that is gone does not come back by joining
        logger.info("group %s is to be joined again: %s", self._settings.group, refused)
        self._member_id = None


def _in_words(problem: BaseException) -> str:
    """An exception as a node takes it: a file's name in it need be no UTF-8, and there may be much of it."""
    words = f"{type(problem).__name__}: {problem}"
    return words[:_REASON_LENGTH_MAX].encode(errors="replace").decode()


class Idleness:
    """Since when an iteration has had nothing."""

    def __init__(self, settings: ConsumerSettings, *, now_ns: int) -> None:
        self._idle_ms = settings.idle_ms
        self._since_ns = now_ns

    def ended(self, *, now_ns: int) -> None:
        """Something has come."""
        self._since_ns = now_ns

    def is_over(self, *, now_ns: int) -> bool:
        """Whether nothing has come for as long as the consumer is to wait."""
        return self._idle_ms is not None and now_ns - self._since_ns >= self._idle_ms * _NS_PER_MS
