"""Tenants and their rates: who owns what, what a second holds, and the same state again from events."""

import pytest

from goqueue.core.access.account import Account
from goqueue.core.access.events import EVENT_TYPES
from goqueue.core.access.rates import DEBT_NS_MAX, Bucket, Rate
from goqueue.core.access.tenants import Tenants, id_from
from goqueue.model.errors import (
    InvalidTenant,
    RateExceeded,
    SystemTenant,
    TenantExists,
    TenantNotEmpty,
    TenantNotFound,
)
from goqueue.model.tenant_commands import ChangeTenant, CreateTenant
from goqueue.model.tenants import SYSTEM_TENANT, Quotas, TenantId, TenantStatus, UsageTotals

SECOND = 1_000_000_000
NOON = 12 * 3600 * SECOND
ACME = TenantId("acme")


def with_acme(quotas: Quotas | None = None) -> Tenants:
    tenants = Tenants()
    command = CreateTenant(
        tenant_id="acme", name="Acme", quotas=quotas or Quotas(), metadata={"plan": "gold"}
    )
    tenants.apply(tenants.create(command, now_ms=7))
    return tenants


def test_a_name_belongs_to_the_tenant_before_its_first_dot() -> None:
    tenants = with_acme()

    assert tenants.owner("acme.orders") is tenants.accounts[ACME]
    assert tenants.owner("acme.orders.dlq") is tenants.accounts[ACME]
    assert tenants.owner("acme") is tenants.owner("acme-orders") is tenants.owner("other.acme") is None


@pytest.mark.parametrize(
    ("name", "tenant_id"),
    [
        ("Acme Corp.", "acme-corp"),
        ("  Süd & West  ", "sud-west"),
        ("42 Ltd", "tenant-42-ltd"),
        ("ab", "tenant-ab"),
        ("!!!", "tenant"),
        ("x" * 80, "x" * 64),
    ],
)
def test_an_id_is_made_from_the_name(name: str, tenant_id: str) -> None:
    assert id_from(name) == tenant_id
    tenants = Tenants()
    assert tenants.create(CreateTenant(name=name), now_ms=0).tenant.tenant_id == tenant_id


@pytest.mark.parametrize("tenant_id", ["ab", "Acme", "1acme", "a_b", "a.b", "x" * 65, "acmé", "goqueue"])
def test_ids_that_could_not_begin_a_name_are_refused(tenant_id: str) -> None:
    with pytest.raises(InvalidTenant):
        Tenants().create(CreateTenant(tenant_id=tenant_id, name="x"), now_ms=0)


def test_an_id_is_taken_once_and_the_systems_never() -> None:
    tenants = with_acme()

    with pytest.raises(TenantExists):
        tenants.create(CreateTenant(name="ACME"), now_ms=0)
    with pytest.raises(TenantExists):
        tenants.create(CreateTenant(tenant_id=SYSTEM_TENANT, name="mine"), now_ms=0)
    with pytest.raises(InvalidTenant):
        tenants.create(CreateTenant(name=" "), now_ms=0)


def test_the_system_is_listed_unlimited_and_cannot_be_changed() -> None:
    tenants = with_acme()

    system, acme = tenants.all()
    assert (system.tenant_id, system.quotas.publish_rate_limit, system.quotas.max_topics) == (
        SYSTEM_TENANT,
        0,
        0,
    )
    assert acme.quotas == Quotas()
    for change in (
        lambda: tenants.change(ChangeTenant(tenant_id=SYSTEM_TENANT, name="x"), now_ms=0),
        lambda: tenants.set_quotas(SYSTEM_TENANT, Quotas(), now_ms=0),
        lambda: tenants.set_status(SYSTEM_TENANT, TenantStatus.DISABLED, now_ms=0),
        lambda: tenants.delete(SYSTEM_TENANT, topic_count=0, is_forced=True),
        lambda: tenants.reset_usage(SYSTEM_TENANT),
    ):
        with pytest.raises(SystemTenant):
            change()
    with pytest.raises(TenantNotFound):
        tenants.get("nobody")


def test_suspending_needs_a_reason_which_is_forgotten_when_the_tenant_works_again() -> None:
    tenants = with_acme()

    with pytest.raises(InvalidTenant):
        tenants.set_status("acme", TenantStatus.SUSPENDED, now_ms=8)
    tenants.apply(tenants.set_status("acme", TenantStatus.SUSPENDED, reason="bill", now_ms=8))
    suspended = tenants.get("acme")
    assert (suspended.suspended_ms, suspended.suspend_reason, suspended.created_ms) == (8, "bill", 7)
    assert not tenants.accounts[ACME].is_active
    tenants.apply(tenants.set_status("acme", TenantStatus.ACTIVE, now_ms=9))
    assert (tenants.get("acme").suspended_ms, tenants.get("acme").suspend_reason) == (None, "")
    assert tenants.accounts[ACME].is_active


def test_a_tenant_with_topics_is_only_deleted_by_force() -> None:
    tenants = with_acme()

    with pytest.raises(TenantNotEmpty):
        tenants.delete("acme", topic_count=1, is_forced=False)
    tenants.apply(tenants.delete("acme", topic_count=1, is_forced=True))
    assert tenants.owner("acme.orders") is None


def test_all_of_it_comes_back_from_the_whole_state() -> None:
    tenants = with_acme(Quotas(max_topics=3))
    tenants.apply(tenants.change(ChangeTenant(tenant_id="acme", description="the first"), now_ms=9))
    tenants.apply(tenants.set_status("acme", TenantStatus.DISABLED, now_ms=10))
    tenants.accounts[ACME].note_stored(5, 500)

    again = Tenants()
    for event in tenants.whole_state():
        assert type(event).__name__ in EVENT_TYPES
        again.apply(event)

    assert again.get("acme") == tenants.get("acme")
    assert again.get("acme").metadata == {"plan": "gold"}
    assert again.accounts[ACME].totals == UsageTotals(5, 500, 0, 0)
    assert not again.accounts[ACME].is_active


def test_usage_is_noted_only_when_it_has_changed() -> None:
    tenants = with_acme()
    assert tenants.note_usage() is None

    tenants.accounts[ACME].note_stored(2, 20)
    noted = tenants.note_usage()
    assert noted is not None and noted.totals == {ACME: UsageTotals(2, 20, 0, 0)}
    tenants.apply(noted)
    assert tenants.note_usage() is None
    tenants.apply(tenants.reset_usage("acme"))
    assert tenants.accounts[ACME].totals == UsageTotals()


def test_a_bucket_holds_a_seconds_worth_and_fills_at_its_rate() -> None:
    bucket = Bucket(10)

    assert bucket.left(now_ns=NOON) == 10
    bucket.take(10, now_ns=NOON)
    assert bucket.left(now_ns=NOON) == 0
    assert bucket.wait_ns(1, now_ns=NOON) == SECOND // 10
    assert bucket.left(now_ns=NOON + SECOND // 2) == 5
    assert bucket.left(now_ns=NOON + 60 * SECOND) == 10


def test_what_is_more_than_a_full_bucket_is_had_from_a_full_one_and_paid_for_later() -> None:
    bucket = Bucket(10)

    assert bucket.wait_ns(25, now_ns=NOON) == 0
    bucket.take(25, now_ns=NOON)
    assert bucket.wait_ns(0, now_ns=NOON) == 3 * SECOND // 2
    assert bucket.wait_ns(25, now_ns=NOON) == 5 * SECOND // 2
    assert bucket.wait_ns(25, now_ns=NOON + 5 * SECOND // 2) == 0


def test_over_a_long_time_no_more_goes_through_than_the_rate_and_one_burst() -> None:
    bucket, taken, now_ns = Bucket(1_000), 0, NOON
    sizes = [1, 700, 30, 2_500, 90]
    while now_ns < NOON + 100 * SECOND:
        size = sizes[taken % len(sizes)]
        now_ns += max(bucket.wait_ns(size, now_ns=now_ns), 1)
        bucket.take(size, now_ns=now_ns)
        taken += size

    assert 100_000 <= taken <= 100_000 + 1_000 + max(sizes)


def test_debt_is_bounded() -> None:
    bucket = Bucket(1)
    bucket.take(1_000_000, now_ns=NOON)

    assert bucket.wait_ns(0, now_ns=NOON) == DEBT_NS_MAX


def test_no_limit_is_no_limit() -> None:
    rate = Rate(messages=0, size_bytes=0)
    rate.take(10**9, 10**12, now_ns=NOON)

    assert rate.wait_ns(10**9, 10**12, now_ns=NOON) == 0
    assert (rate.messages_now(77, now_ns=NOON), rate.bytes_now(88, now_ns=NOON)) == (77, 88)


def test_messages_and_bytes_each_can_be_what_is_used_up() -> None:
    rate = Rate(messages=10, size_bytes=1_000)

    rate.take(1, 2_000, now_ns=NOON)
    assert rate.wait_ns(now_ns=NOON) == SECOND
    rate = Rate(messages=10, size_bytes=1_000)
    rate.take(8, 10, now_ns=NOON)
    assert rate.messages_now(100, now_ns=NOON) == 2
    assert rate.bytes_now(10_000, now_ns=NOON) == 990


def test_a_refusal_tells_how_long_to_wait_and_other_quotas_begin_without_debt() -> None:
    tenants = with_acme(Quotas(publish_rate_limit=10, publish_bytes_rate_limit=0))
    account: Account = tenants.accounts[ACME]
    account.check_publishing(10, 10**9, now_ns=NOON)
    account.publishing.take(10, 10**9, now_ns=NOON)

    with pytest.raises(RateExceeded, match="may publish 10 messages a second; try again in 300ms") as refused:
        account.check_publishing(3, 1, now_ns=NOON)
    assert refused.value.retry_after_ms == 300
    tenants.apply(tenants.set_quotas("acme", Quotas(publish_rate_limit=20), now_ms=8))
    account.check_publishing(20, 1, now_ns=NOON)


def test_a_quota_below_0_is_refused() -> None:
    with pytest.raises(ValueError, match="max_topics"):
        Quotas(max_topics=-1)
