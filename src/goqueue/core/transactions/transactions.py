"""The transactions machine: who holds a transactional id, what its transaction has touched, how it ends.

A transactional id belongs to one producer at a time, by its epoch. What the producer writes and the
offsets it commits count together: first it is decided how the transaction ends (prepared: nothing can
call that back), then markers carry the decision to every partition and group it has touched, then it
is complete. The whole record of an id is one event, so the last one tells everything.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from goqueue.core.transactions.sinks import StateReset
from goqueue.model.errors import InvalidTransactionState, ProducerFenced, ProducerNotFound, TransactionBusy
from goqueue.model.ids import NO_PRODUCER, ProducerId
from goqueue.model.transaction_commands import InitProducer
from goqueue.model.transactions import (
    EPOCH_MAX,
    NO_EPOCH,
    Epochs,
    Marker,
    ProducerEpoch,
    Reach,
    TransactionalPartition,
    TransactionState,
)

EMPTY, ONGOING, DEAD = TransactionState.EMPTY, TransactionState.ONGOING, TransactionState.DEAD
PREPARE_COMMIT, PREPARE_ABORT = TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT
COMPLETE_COMMIT, COMPLETE_ABORT = TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT

TRANSITIONS: dict[TransactionState, frozenset[TransactionState]] = {
    EMPTY: frozenset({EMPTY, ONGOING, COMPLETE_ABORT, DEAD}),
    ONGOING: frozenset({ONGOING, PREPARE_COMMIT, PREPARE_ABORT}),
    PREPARE_COMMIT: frozenset({COMPLETE_COMMIT}),
    PREPARE_ABORT: frozenset({COMPLETE_ABORT}),
    COMPLETE_COMMIT: frozenset({EMPTY, ONGOING, COMPLETE_COMMIT, COMPLETE_ABORT, DEAD}),
    COMPLETE_ABORT: frozenset({EMPTY, ONGOING, COMPLETE_ABORT, DEAD}),
    DEAD: frozenset(),
}
"""A producer that begins anew makes its id empty; only an id at rest can be forgotten. From rest to an abort:
nothing was open, and the producer goes on in its next epoch all the same."""
PREPARED = {Marker.COMMIT: PREPARE_COMMIT, Marker.ABORT: PREPARE_ABORT}
COMPLETED = {PREPARE_COMMIT: COMPLETE_COMMIT, PREPARE_ABORT: COMPLETE_ABORT}
NOT_BEGUN_MS = -1
_FEW = 8
T = TypeVar("T")
NOBODY = ProducerEpoch(NO_PRODUCER, NO_EPOCH)


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """All that is known of a transactional id, as it stands and as the journal has it."""

    transactional_id: str
    producer_id: ProducerId
    epoch: int
    timeout_ms: int
    changed_ms: int
    state: TransactionState = EMPTY
    previous: ProducerEpoch = NOBODY
    """What the producer was before its last step: a request that is repeated after a lost reply says so.
    Nobody from when a transaction begins until it ends: by then the producer has heard who it is."""
    transaction_id: str = ""
    started_ms: int = NOT_BEGUN_MS
    partitions: tuple[TransactionalPartition, ...] = ()
    groups: tuple[str, ...] = ()
    """Consumer groups whose offsets are committed with it."""
    receipts: tuple[str, ...] = ()
    """Of messages that are acknowledged with it."""
    reach: Reach | None = None
    """From the decision until it is complete. None then: decided by a version that knew the journal to be on
    the disk before the next transaction wrote anything, so whatever its producer has open is meant."""
    epochs: Epochs | None = None
    """Of its partitions and groups; None: there is one node, or it has touched nothing."""

    @property
    def producer(self) -> ProducerEpoch:
        return ProducerEpoch(self.producer_id, self.epoch)

    @property
    def marker(self) -> Marker:
        """How it was decided to end."""
        assert self.state.is_prepared, f"{self.transactional_id} is {self.state.value}"
        return Marker.COMMIT if self.state is PREPARE_COMMIT else Marker.ABORT

    def is_open_in(self, place: TransactionalPartition) -> bool:
        """Whether what its producer has open in a partition is part of it."""
        return self.state is ONGOING and place in self.partitions

    def has_decided(self, place: TransactionalPartition, first_offset: int) -> bool:
        """Whether it is decided how what its producer has open in a partition, from there on, will end."""
        if not self.state.is_prepared or place not in self.partitions:
            return False
        return self.reach is None or first_offset < self.reach.end_offsets[self.partitions.index(place)]

    def is_open_for(self, group: str) -> bool:
        """Whether offsets of a group that wait for its producer are part of it."""
        return self.state is ONGOING and group in self.groups


@dataclass(frozen=True, slots=True)
class TransactionForgotten:
    """Nobody has used the id for a long time."""

    transactional_id: str


Event = Transaction | TransactionForgotten | StateReset
EVENT_TYPES: dict[str, type[Event]] = {
    kind.__name__: kind for kind in (Transaction, TransactionForgotten, StateReset)
}


class Transactions:
    """All transactional ids whose events share one journal."""

    def __init__(self) -> None:
        self._transactions: dict[str, Transaction] = {}
        self._by_producer: dict[ProducerId, str] = {}
        self._deadlines: dict[str, int] = {}
        """When what is open has been so for as long as it may, in running time."""
        self._sessions: dict[str, int] = {}
        """Until when producers that send heartbeats are believed to live. Not kept over a restart."""

    def __iter__(self) -> Iterator[Transaction]:
        return iter(tuple(self._transactions.values()))

    def get(self, transactional_id: str) -> Transaction | None:
        return self._transactions.get(transactional_id)

    def of_producer(self, producer_id: int) -> Transaction | None:
        """The transactional id that a producer id belongs to, if it is one of these."""
        name = self._by_producer.get(ProducerId(producer_id))
        return None if name is None else self._transactions[name]

    def held_by(self, transactional_id: str, producer: ProducerEpoch) -> Transaction:
        """The transaction, if this producer may speak for it."""
        known = self._transactions.get(transactional_id)
        if known is None or known.producer_id != producer.producer_id:
            raise ProducerNotFound(producer.producer_id, transactional_id)
        if known.epoch != producer.epoch:
            raise _fenced(known, producer)
        return known

    def wants_producer_id(self, transactional_id: str) -> bool:
        """Whether the next producer of an id needs a producer id that nobody has had."""
        known = self._transactions.get(transactional_id)
        return known is None or known.epoch >= EPOCH_MAX

    def has_used_up_epochs(self, transactional_id: str) -> bool:
        """Whether the producer of an id cannot be told its epoch: nothing comes behind it."""
        known = self._transactions.get(transactional_id)
        return known is not None and known.epoch > EPOCH_MAX

    def admit_init(self, command: InitProducer) -> bool:
        """Whether the answer to a producer that begins anew is known: its last request, come once more."""
        known = self._transactions.get(command.transactional_id)
        current = command.current
        if known is None or current is None or current == known.producer:
            return False
        if current == known.previous:
            return not self.has_used_up_epochs(command.transactional_id)
        raise _fenced(known, current)

    def init(
        self, command: InitProducer, *, fresh_id: ProducerId, was_fenced: bool, now_ms: int
    ) -> Transaction:
        """A producer begins, or begins anew, on an id at rest: the next epoch, which fences all before it.

        `was_fenced`: its open transaction was taken from it just now, and with it the epoch.
        """
        known = self._transactions.get(command.transactional_id)
        if known is None:
            return Transaction(
                transactional_id=command.transactional_id,
                producer_id=fresh_id,
                epoch=0,
                timeout_ms=command.timeout_ms,
                changed_ms=now_ms,
            )
        producer = ProducerEpoch(known.producer_id, known.epoch + (not was_fenced))
        if producer.epoch > EPOCH_MAX:
            producer = ProducerEpoch(fresh_id, 0)
        return _moved(
            known,
            EMPTY,
            producer_id=producer.producer_id,
            epoch=producer.epoch,
            previous=command.current or NOBODY,
            timeout_ms=command.timeout_ms,
            changed_ms=now_ms,
        )

    def begin(
        self, transactional_id: str, producer: ProducerEpoch, *, transaction_id: str, now_ms: int
    ) -> Transaction:
        """A transaction begins before it has touched anything."""
        known = self.held_by(transactional_id, producer)
        if known.state is ONGOING:
            raise InvalidTransactionState(f"{transactional_id} has a transaction open already")
        return _begun(known, transaction_id, now_ms)

    def add(
        self,
        transactional_id: str,
        producer: ProducerEpoch,
        *,
        partitions: Sequence[TransactionalPartition] = (),
        groups: Sequence[str] = (),
        receipts: Sequence[str] = (),
        epochs: Epochs | None = None,
        transaction_id: str,
        now_ms: int,
    ) -> Transaction:
        """A transaction touches more, or begins with it. The same record comes back when all is known.

        `epochs`: with several nodes, those in which the partitions and groups are led.
        """
        known = self.held_by(transactional_id, producer)
        if known.state is not ONGOING:
            known = _begun(known, transaction_id, now_ms)
        # To look through a tuple for each of thousands takes seconds; for a few, to make a set takes longer.
        touched = known.partitions if len(partitions) <= _FEW else frozenset(known.partitions)
        new_partitions = [added for added in partitions if added not in touched]
        new_groups = [added for added in groups if added not in known.groups]
        new_receipts = [added for added in receipts if added not in known.receipts]
        all_partitions = (*known.partitions, *new_partitions)
        all_groups = (*known.groups, *new_groups)
        if epochs is not None:
            epochs = Epochs(
                _raised(known.partitions, known.epochs and known.epochs.partitions, partitions, epochs[0]),
                _raised(known.groups, known.epochs and known.epochs.groups, groups, epochs[1]),
            )
        if not new_partitions and not new_groups and not new_receipts and epochs == known.epochs:
            return known
        return _moved(
            known,
            ONGOING,
            partitions=all_partitions,
            groups=all_groups,
            receipts=(*known.receipts, *new_receipts),
            epochs=epochs,
            changed_ms=now_ms,
        )

    def prepare(
        self,
        transactional_id: str,
        producer: ProducerEpoch,
        marker: Marker,
        *,
        is_bumped: bool = False,
        reach: Reach | None = None,
        now_ms: int,
    ) -> Transaction:
        """Decide how a transaction ends. The same record comes back when that was decided before.

        `is_bumped`: the producer goes on in the next epoch. Then the same decision of the same epoch would be
        one about another transaction; whether it was answered before, `has_ended` tells.
        """
        known = self.held_by(transactional_id, producer)
        wanted = PREPARED[marker]
        if known.state in (wanted, COMPLETED[wanted]) and not is_bumped:
            return known
        if known.state is not ONGOING:
            raise _cannot_end(known)
        epoch, previous = (known.epoch + 1, known.producer) if is_bumped else (known.epoch, known.previous)
        return _moved(known, wanted, epoch=epoch, previous=previous, reach=reach, changed_ms=now_ms)

    def has_ended(self, transactional_id: str, producer: ProducerEpoch, marker: Marker) -> bool:
        """Whether this is about a transaction that has ended, and a bumped epoch with it: asked once more."""
        known = self._transactions.get(transactional_id)
        if known is None or producer == NOBODY or producer != known.previous or known.state is EMPTY:
            return False
        if known.state is not COMPLETED[PREPARED[marker]]:
            raise _cannot_end(known)
        return True

    def abort_nothing(self, transactional_id: str, *, now_ms: int) -> Transaction:
        """The next epoch for the producer of an id at rest, as if something had been open and was aborted."""
        known = self._transactions[transactional_id]
        return _moved(
            known, COMPLETE_ABORT, epoch=known.epoch + 1, previous=known.producer, changed_ms=now_ms
        )

    def renew(self, transactional_id: str, *, fresh_id: ProducerId, now_ms: int) -> Transaction:
        """The producer of an id at rest has used up its epochs, and goes on under another producer id."""
        known = self._transactions[transactional_id]
        return _moved(known, known.state, producer_id=fresh_id, epoch=0, changed_ms=now_ms)

    def fence(self, transactional_id: str, *, reach: Reach | None = None, now_ms: int) -> Transaction:
        """Abort a transaction without its producer, which is a zombie from here on."""
        known = self._transactions[transactional_id]
        return _moved(known, PREPARE_ABORT, epoch=known.epoch + 1, reach=reach, changed_ms=now_ms)

    def complete(self, transactional_id: str, *, now_ms: int) -> Transaction:
        """The decision has reached all that the transaction has touched."""
        known = self._transactions[transactional_id]
        return _moved(
            known,
            COMPLETED[known.state],
            partitions=(),
            groups=(),
            receipts=(),
            reach=None,
            epochs=None,
            changed_ms=now_ms,
        )

    def overdue(self, *, now_ms: int) -> list[str]:
        """Ids whose transaction has been open for too long."""
        return [name for name, deadline_ms in self._all_deadlines() if deadline_ms <= now_ms]

    def deadline_ms(self, transactional_id: str) -> int | None:
        """When the open transaction of an id will have been so for too long; None: none is open."""
        deadline_ms = self._deadlines.get(transactional_id)
        return (
            None
            if deadline_ms is None
            else min(deadline_ms, self._sessions.get(transactional_id, deadline_ms))
        )

    def next_deadline_ms(self) -> int | None:
        """When the first of those that are open will have been so for too long."""
        return min((deadline_ms for _, deadline_ms in self._all_deadlines()), default=None)

    def has_session(self, transactional_id: str) -> bool:
        """Whether the producer of an id sends heartbeats."""
        return transactional_id in self._sessions

    def keep_session(self, transactional_id: str, until_ms: int) -> None:
        """The producer of an id lives; what is open stays so until then, if it is not heard of again."""
        self._sessions[transactional_id] = until_ms

    def _all_deadlines(self) -> Iterator[tuple[str, int]]:
        for name, deadline_ms in self._deadlines.items():
            yield name, min(deadline_ms, self._sessions.get(name, deadline_ms))

    def unused_since(self, time_ms: int) -> list[str]:
        """Ids at rest that nobody has used since then."""
        return [
            known.transactional_id
            for known in self
            if known.changed_ms < time_ms and self.is_at_rest(known.transactional_id)
        ]

    def is_at_rest(self, transactional_id: str) -> bool:
        """Whether nothing is open or under way, so that the id could be forgotten."""
        return DEAD in TRANSITIONS[self._transactions[transactional_id].state]

    def forget(self, transactional_id: str) -> TransactionForgotten:
        known = self._transactions[transactional_id]
        assert DEAD in TRANSITIONS[known.state], f"{transactional_id} is {known.state.value}"
        return TransactionForgotten(transactional_id)

    def apply(self, event: Event, *, ahead_ms: int = 0) -> None:
        """`ahead_ms`: what running time is ahead of the wall time that events tell."""
        match event:
            case Transaction():
                known = self._transactions.get(event.transactional_id)
                if known is not None and known.producer != event.producer:
                    self._sessions.pop(event.transactional_id, None)
                if event.state is not ONGOING:
                    self._deadlines.pop(event.transactional_id, None)
                elif known is None or known.state is not ONGOING:
                    deadline_ms = event.started_ms + event.timeout_ms + ahead_ms
                    self._deadlines[event.transactional_id] = deadline_ms
                if known is not None and known.producer_id != event.producer_id:
                    del self._by_producer[known.producer_id]
                self._transactions[event.transactional_id] = event
                self._by_producer[event.producer_id] = event.transactional_id
            case TransactionForgotten():
                del self._by_producer[self._transactions.pop(event.transactional_id).producer_id]
                self._sessions.pop(event.transactional_id, None)
            case StateReset():
                self._transactions.clear()
                self._by_producer.clear()
                self._deadlines.clear()
                self._sessions.clear()


def _begun(known: Transaction, transaction_id: str, now_ms: int) -> Transaction:
    if known.state.is_prepared:
        raise TransactionBusy(known.transactional_id)
    return _moved(
        known,
        ONGOING,
        transaction_id=transaction_id,
        previous=NOBODY,
        started_ms=now_ms,
        changed_ms=now_ms,
    )


def _moved(known: Transaction, state: TransactionState, **changes: object) -> Transaction:
    assert state in TRANSITIONS[known.state], f"{known.transactional_id}: {known.state} to {state}"
    return replace(known, state=state, **changes)  # type: ignore[arg-type]  # fields of the record, by name


def _raised(
    places: Sequence[T], known: tuple[int, ...] | None, added: Sequence[T], epochs: Sequence[int]
) -> tuple[int, ...]:
    """The epochs of places in their order, none lower than it was; those that are added may be among them."""
    highest = dict(zip(places, known or (0,) * len(places), strict=True))
    for place, epoch in zip(added, epochs, strict=True):
        highest[place] = max(highest.get(place, 0), epoch)
    return tuple(highest.values())


def _cannot_end(known: Transaction) -> InvalidTransactionState:
    return InvalidTransactionState(
        f"{known.transactional_id} has no transaction that could end so: it is {known.state.value}"
    )


def _fenced(known: Transaction, producer: ProducerEpoch) -> ProducerFenced:
    return ProducerFenced(
        f"{known.transactional_id} is held by epoch {known.epoch} of producer {known.producer_id}; "
        f"epoch {producer.epoch} of producer {producer.producer_id} may not speak for it"
    )
