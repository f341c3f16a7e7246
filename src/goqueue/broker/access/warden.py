"""The one place where it is asked whether somebody may do something.

Doors say who asks, for as long as a request is begun and in all tasks that come of it; what the broker does
for itself, or for another node that has asked already, is asked by nobody. Until permissions are turned on
nobody is ever named, and a look at an empty variable is all that it costs.
"""

from collections.abc import Callable, Iterable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final, TypeVar

from goqueue.broker.access.audit import AuditLog
from goqueue.broker.access.audited import AUDITED
from goqueue.broker.access.needs import needs_of, shown_of
from goqueue.core.access.rules import RuleBook
from goqueue.model.access import THE_CLUSTER, Asking, Need, Operation, ResourceKind, refusal
from goqueue.model.audit import AuditEvent
from goqueue.model.errors import NotAllowed
from goqueue.model.ids import TopicName
from goqueue.model.names import NAME_CHARACTERS_MAX
from goqueue.model.places import Command

T = TypeVar("T")
_INSTEAD = {
    (Operation.CREATE, ResourceKind.TOPIC): Need(Operation.CREATE, ResourceKind.CLUSTER, THE_CLUSTER),
    (Operation.CLUSTER_ACTION, ResourceKind.CLUSTER): Need(
        Operation.ALTER, ResourceKind.CLUSTER, THE_CLUSTER
    ),
}
"""Whoever may create in the cluster may create any topic; who may change it, as Kafka's tools, may run it."""

_DATA_EVENTS = {Operation.READ: "data_read", Operation.WRITE: "data_written"}

ASKING: Final[ContextVar[Asking | None]] = ContextVar("asking", default=None)
"""Who asks, where it matters."""


@dataclass(slots=True)
class Warden:
    book: RuleBook = field(default_factory=RuleBook)
    audit: AuditLog | None = None
    data_sampling: float = 0
    """Which share of reads and writes of messages is written down."""
    chance: Callable[[], float] = float
    """Numbers from 0 to 1, as the port of chance gives them."""

    def demand(self, needs: Iterable[Need]) -> None:
        """Raises NotAllowed unless whoever asks may do all of that."""
        asking = ASKING.get()
        if asking is not None:
            for need in needs:
                if not self._allows(asking, need):
                    self._note_refused(asking, need)
                    raise refusal(asking, need)
                if self.data_sampling:
                    self._sample(asking, need)

    def denied(self, operation: Operation, topics: Iterable[str | None]) -> dict[TopicName, NotAllowed]:
        """Of topics those with which whoever asks may not do that, and what they hear."""
        asking = ASKING.get()
        if asking is None:
            return {}
        needs = [Need(operation, ResourceKind.TOPIC, topic) for topic in set(topics) if topic]
        refused = [need for need in needs if not self._allows(asking, need)]
        if self.data_sampling:
            for need in set(needs).difference(refused):
                self._sample(asking, need)
        for need in refused:
            self._note_refused(asking, need)
        return {TopicName(need.name): refusal(asking, need) for need in refused}

    def admit(self, command: Command) -> None:
        """Raises NotAllowed unless whoever asks may have the command run."""
        if ASKING.get() is not None:
            self.demand(needs_of(command))

    def shown(self, command: Command, reply: T) -> T:
        """What of an answer whoever asks may see."""
        return reply if ASKING.get() is None else shown_of(command, reply, self.lets)

    def note_done(self, command: Command) -> None:
        """Whoever asks has had something changed: it is written down."""
        asking, audited = ASKING.get(), AUDITED.get(type(command))
        if self.audit is not None and asking is not None and audited is not None:
            method = type(command).__name__
            event = AuditEvent(
                audited.event, asking.principal, asking.host, audited.of(command), method=method
            )
            self.audit.note(event)

    def _sample(self, asking: Asking, need: Need) -> None:
        """Write down some of what is done with messages."""
        event = _DATA_EVENTS.get(need.operation)
        is_data = event is not None and need.kind is ResourceKind.TOPIC
        if is_data and self.audit is not None and self.chance() < self.data_sampling:
            self.audit.note(AuditEvent(event or "", asking.principal, asking.host, f"topic {need.name}"))

    def _note_refused(self, asking: Asking, need: Need) -> None:
        if self.audit is not None:
            # Nothing has a longer name: whoever makes one up fills neither the memory nor the files with it.
            name = need.name[:NAME_CHARACTERS_MAX]
            resource, reason = f"{need.kind} {name}", f"may not {need.operation}"
            self.audit.note(AuditEvent("acl_denied", asking.principal, asking.host, resource, reason))

    def lets(self, need: Need) -> bool:
        """Whether whoever asks may do that."""
        asking = ASKING.get()
        return asking is None or self._allows(asking, need)

    def _allows(self, asking: Asking, need: Need) -> bool:
        if self.book.allows(asking, need):
            return True
        instead = _INSTEAD.get((need.operation, need.kind))
        return instead is not None and self.book.allows(asking, instead)
