"""The place that a connection takes among those that its client's tenant may have open."""

from goqueue.broker.broker import Broker
from goqueue.core.access.account import Account
from goqueue.model.errors import TooManyConnections
from goqueue.model.tenants import TenantId

RETRY_MS = 1_000
"""When whoever found no place may look again: others close theirs without telling when."""


class Seat:
    """Of one connection. Who comes through it may change over HTTP: the last one counts."""

    __slots__ = ("_account", "_is_gone")

    def __init__(self) -> None:
        self._account: Account | None = None
        self._is_gone = False

    def take(self, broker: Broker, tenant: TenantId | None) -> None:
        """Be of that tenant from now on. Raises TooManyConnections when that has as many as it may have."""
        account = None if tenant is None else broker.tenants.accounts.get(tenant)
        if account is self._account or self._is_gone:
            return  # a request may be begun that was there before its connection went
        if account is not None and not account.enter():
            raise TooManyConnections(
                f"tenant {tenant} has {account.connections} connections, as many as it may have",
                retry_after_ms=RETRY_MS,
            )
        self._give_back()
        self._account = account

    def leave(self) -> None:
        """The connection is gone."""
        self._is_gone = True
        self._give_back()

    def _give_back(self) -> None:
        if self._account is not None:
            self._account.connections -= 1
            self._account = None
