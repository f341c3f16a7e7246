"""Who asks: the word for whoever stands behind a connection or a request.

A principal is what a door has made sure of, and nothing more: what it may do is decided elsewhere. It is
written as Kafka writes it, `User:name`.
"""

from dataclasses import dataclass

from goqueue.model.tenants import TenantId

USER = "User"
"""The only kind there is; Kafka's clients and rules name it."""


@dataclass(frozen=True, slots=True)
class Principal:
    kind: str
    name: str
    tenant: TenantId | None = None
    """Whose it is. None: nobody's, as an operator is."""

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


ANONYMOUS = Principal(USER, "ANONYMOUS")
"""Whoever comes through a door that does not ask."""
