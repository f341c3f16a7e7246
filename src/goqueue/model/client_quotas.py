"""How fast clients of Kafka may go, by their users and by the ids that they give themselves, as Kafka has it.

An entity is a user, a client id, or both; each may be the one that stands for all that have none of their
own. A node holds each client to its quotas by itself, as Kafka's brokers do.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from goqueue.model.places import Place, Seat

DEFAULT = ""
"""As a user or a client id: whoever has no quota of their own."""


class ClientLimit(StrEnum):
    """What is bounded, by Kafka's names."""

    PRODUCED = "producer_byte_rate"
    CONSUMED = "consumer_byte_rate"
    REQUESTS = "request_percentage"
    """Of the time of the broker's loop; 100 is all of it."""


class QuotaEntity(NamedTuple):
    """Whom a quota is for. None: it does not matter."""

    user: str | None = None
    client_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientQuota:
    """What an entity is held to, as it stands in the store."""

    entity: QuotaEntity
    limits: Mapping[ClientLimit, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterClientQuota:
    """Hold an entity to other limits; None takes one away."""

    entity: QuotaEntity
    limits: Mapping[ClientLimit, float | None] = field(default_factory=dict)
    is_dry_run: bool = False

    @property
    def place(self) -> Place:
        return Seat.CONTROLLER


@dataclass(frozen=True, slots=True, kw_only=True)
class ListClientQuotas:
    """All that were set."""

    @property
    def place(self) -> Place:
        return Seat.ANY_NODE
