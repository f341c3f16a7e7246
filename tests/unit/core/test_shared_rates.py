"""A tenant's rates where several nodes serve it: each lets through its share."""

from goqueue.core.access.account import Account
from goqueue.core.access.events import TenantSet
from goqueue.core.access.tenants import Tenants
from goqueue.model.tenants import Quotas, Tenant, TenantId

_NS_PER_S = 1_000_000_000


def tenant(rate: int) -> Tenant:
    quotas = Quotas(publish_rate_limit=rate, publish_bytes_rate_limit=0)
    return Tenant(tenant_id=TenantId("acme"), name="Acme", created_ms=0, updated_ms=0, quotas=quotas)


def taken_at_once(account: Account) -> int:
    """How many messages go through from a full bucket before anybody is refused."""
    count = 0
    while not account.publishing.wait_ns(1, now_ns=5 * _NS_PER_S):
        account.publishing.take(1, 0, now_ns=5 * _NS_PER_S)
        count += 1
    return count


def test_three_nodes_let_through_a_third_each() -> None:
    assert taken_at_once(Account(tenant(30))) == 30
    assert taken_at_once(Account(tenant(30), shares=3)) == 10


def test_a_limit_that_is_smaller_than_the_nodes_are_many_lets_somebody_through_at_each() -> None:
    assert taken_at_once(Account(tenant(2), shares=3)) == 1
    assert Account(tenant(0), shares=3).publishing.wait_ns(1_000, now_ns=0) == 0, "no limit stays none"


def test_who_comes_and_goes_changes_the_share_and_forgives_no_debt() -> None:
    account = Account(tenant(30))
    account.publishing.take(60, 0, now_ns=0)
    debt_ns = account.publishing.wait_ns(now_ns=0)

    account.share(3)

    assert account.publishing.wait_ns(now_ns=0) == debt_ns > 0
    assert taken_at_once(account) == 10
    account.share(1)
    assert account.publishing.wait_ns(30, now_ns=60 * _NS_PER_S) == 0


def test_tenants_that_come_later_and_new_quotas_are_shared_too() -> None:
    tenants = Tenants()
    tenants.share(3)
    tenants.apply(TenantSet(tenant(30)))
    assert taken_at_once(tenants.account("acme")) == 10
    tenants.apply(TenantSet(tenant(60)))
    assert taken_at_once(tenants.account("acme")) == 20
