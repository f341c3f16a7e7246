"""What a step of a group leads to."""

from dataclasses import dataclass, field
from typing import NamedTuple

from goqueue.core.groups.events import Event
from goqueue.model.errors import GoQueueError
from goqueue.model.groups import Joined, Synced


class Answer(NamedTuple):
    """What a waiting member hears."""

    member_id: str
    reply: Joined | Synced | GoQueueError


@dataclass(slots=True)
class Outcome:
    """Answers to members that wait, and what the journal must hold."""

    answers: list[Answer] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
