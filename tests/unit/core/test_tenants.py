"""Tenants and their rates: who owns what, what a second holds, and the same state again from events."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goqueue.core.access.account import Account
from goqueue.core.access.events import Event, TenantSet, UsageNoted
from goqueue.core.access.rates import DEBT_NS_MAX, Bucket, Rate
from goqueue.core.access.tenants import Tenants, id_from
from goqueue.core.access.values import changes, tenant_put, usage_put
from goqueue.model.errors import (
    InvalidName,
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
    with pytest.raises(InvalidName):
        tenants.create(CreateTenant(name="two\nlines"), now_ms=0)


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


def stored(tenant: TenantSet, noted: UsageNoted) -> tuple[list[TenantSet], list[UsageNoted]]:
    """What is read back of what the store was given."""
    return read_back(changes(tenant)[0] | changes(noted)[0])


def read_back(puts: dict[str, bytes]) -> tuple[list[TenantSet], list[UsageNoted]]:
    tenants = [put for key, value in puts.items() if (put := tenant_put(key, value)) is not None]
    return tenants, [use for key, value in puts.items() if (use := usage_put(key, value)) is not None]


def test_what_a_known_tenant_has_moved_is_not_counted_back_by_loading_anew() -> None:
    tenants = with_acme()
    tenants.accounts[ACME].note_stored(5, 500)
    noted = tenants.note_usage()
    assert noted is not None
    tenants.confirm_noted(noted)
    tenants.accounts[ACME].note_stored(1, 1)

    tenants.load(*stored(TenantSet(tenants.get("acme")), noted))
    assert tenants.accounts[ACME].totals == UsageTotals(6, 501, 0, 0)
    tenants.load([], [])
    assert not tenants.accounts


def test_a_tenant_with_topics_is_only_deleted_by_force() -> None:
    tenants = with_acme()

    with pytest.raises(TenantNotEmpty):
        tenants.delete("acme", topic_count=1, is_forced=False)
    tenants.apply(tenants.delete("acme", topic_count=1, is_forced=True))
    assert tenants.owner("acme.orders") is None


def test_all_of_it_comes_back_from_what_the_store_holds() -> None:
    tenants = with_acme(Quotas(max_topics=3))
    tenants.apply(tenants.change(ChangeTenant(tenant_id="acme", description="the first"), now_ms=9))
    tenants.apply(tenants.set_status("acme", TenantStatus.DISABLED, now_ms=10))
    tenants.accounts[ACME].note_stored(5, 500)

    noted = tenants.note_usage()
    assert noted is not None
    again = Tenants()
    again.load(*stored(TenantSet(tenants.get("acme")), noted))

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


def test_what_a_change_does_not_speak_of_stays_as_it_was() -> None:
    tenants = with_acme(Quotas(max_topics=3))
    for field, command in {
        "name": ChangeTenant(tenant_id="acme", name="Acme Two"),
        "display_name": ChangeTenant(tenant_id="acme", display_name="ACME"),
        "description": ChangeTenant(tenant_id="acme", description="the second"),
    }.items():
        before = tenants.get("acme")
        tenants.apply(tenants.change(command, now_ms=9))
        after = tenants.get("acme")
        changed = {
            name
            for name in ("name", "display_name", "description", "metadata", "quotas", "status", "created_ms")
            if getattr(after, name) != getattr(before, name)
        }
        assert changed == {field}
        assert getattr(after, field) == getattr(command, field)

    tenants.apply(tenants.change(ChangeTenant(tenant_id="acme", metadata={"plan": "lead"}), now_ms=12))
    assert (tenants.get("acme").metadata, tenants.get("acme").updated_ms) == ({"plan": "lead"}, 12)


def test_a_description_can_be_emptied_and_a_name_cannot() -> None:
    tenants = with_acme()
    tenants.apply(tenants.change(ChangeTenant(tenant_id="acme", description="long"), now_ms=8))

    tenants.apply(tenants.change(ChangeTenant(tenant_id="acme", description=""), now_ms=9))

    assert tenants.get("acme").description == ""
    for name in ("", "  "):
        with pytest.raises(InvalidTenant):
            tenants.change(ChangeTenant(tenant_id="acme", name=name), now_ms=9)


@pytest.mark.parametrize("status", [TenantStatus.DISABLED, TenantStatus.ACTIVE])
def test_only_a_suspension_has_a_reason(status: TenantStatus) -> None:
    tenants = with_acme()

    tenants.apply(tenants.set_status("acme", status, reason="whatever", now_ms=8))

    assert (tenants.get("acme").suspended_ms, tenants.get("acme").suspend_reason) == (None, "")
    assert tenants.get("acme").updated_ms == 8


@pytest.mark.parametrize("tenant_id", ["abc", "a-1", "x" * 64, "a--"])
def test_ids_within_the_limits_are_taken(tenant_id: str) -> None:
    assert Tenants().create(CreateTenant(tenant_id=tenant_id, name="x"), now_ms=0).tenant.name == "x"


def test_tenants_are_listed_by_id_behind_the_system() -> None:
    tenants = Tenants()
    for name in ("zoo", "acme", "mid"):
        tenants.apply(tenants.create(CreateTenant(tenant_id=name, name=name), now_ms=0))

    assert [tenant.tenant_id for tenant in tenants.all()] == [SYSTEM_TENANT, "acme", "mid", "zoo"]
    assert tenants.get(SYSTEM_TENANT) == tenants.all()[0]
    with pytest.raises(TenantNotFound):
        tenants.account(SYSTEM_TENANT)


def test_an_account_follows_its_tenant_and_keeps_its_debt_when_quotas_stay() -> None:
    tenants = with_acme(Quotas(publish_rate_limit=10, consume_rate_limit=10))
    account = tenants.accounts[ACME]
    account.publishing.take(20, 0, now_ns=NOON)

    tenants.apply(tenants.change(ChangeTenant(tenant_id="acme", description="x"), now_ms=9))

    assert tenants.accounts[ACME] is account, "partitions hold on to it"
    assert account.tenant.description == "x"
    with pytest.raises(RateExceeded):
        account.check_publishing(1, 1, now_ns=NOON)


def test_a_reader_is_refused_while_what_it_read_is_not_paid_for() -> None:
    account = with_acme(Quotas(consume_rate_limit=10, consume_bytes_rate_limit=1_000)).accounts[ACME]
    account.check_consuming(now_ns=NOON)

    account.note_consumed(15, 100, now_ns=NOON)

    assert account.totals == UsageTotals(0, 0, 15, 100)
    with pytest.raises(RateExceeded, match="may consume 10 messages and 1000 bytes a second") as refused:
        account.check_consuming(now_ns=NOON)
    assert refused.value.retry_after_ms == 500
    account.check_consuming(now_ns=NOON + SECOND // 2)


def test_the_wait_is_told_in_whole_milliseconds_that_are_enough() -> None:
    account = with_acme(Quotas(publish_rate_limit=3, publish_bytes_rate_limit=0)).accounts[ACME]
    account.publishing.take(3, 0, now_ns=NOON)

    with pytest.raises(RateExceeded) as refused:
        account.check_publishing(1, 0, now_ns=NOON)

    assert refused.value.retry_after_ms == 334
    account.check_publishing(1, 0, now_ns=NOON + 334_000_000)


def test_refusals_are_counted_by_quota_until_usage_is_reset() -> None:
    tenants = with_acme(Quotas(publish_rate_limit=1, consume_rate_limit=1))
    account = tenants.accounts[ACME]
    account.publishing.take(2, 0, now_ns=NOON)
    account.note_consumed(3, 0, now_ns=NOON)
    for _ in range(2):
        with pytest.raises(RateExceeded):
            account.check_publishing(1, 0, now_ns=NOON)
    with pytest.raises(RateExceeded):
        account.check_consuming(now_ns=NOON)
    account.note_violation("max_topics")

    assert account.violations == {"publish_rate": 2, "consume_rate": 1, "max_topics": 1}
    tenants.apply(UsageNoted({ACME: UsageTotals(1, 1, 1, 1)}))
    assert account.violations, "merely noted"
    tenants.apply(tenants.reset_usage("acme"))
    assert account.violations == {}


def test_what_is_stored_counts_as_published_and_as_storage() -> None:
    account = with_acme().accounts[ACME]

    account.note_stored(3, 300)
    account.note_stored(1, 50)

    assert (account.totals, account.storage_bytes) == (UsageTotals(4, 350, 0, 0), 350)


def test_a_tenant_that_comes_back_after_it_was_deleted_begins_without_usage() -> None:
    tenants = with_acme()
    tenants.apply(UsageNoted({ACME: UsageTotals(5, 500, 0, 0)}))
    tenants.apply(tenants.delete("acme", topic_count=0, is_forced=False))
    tenants.apply(tenants.create(CreateTenant(tenant_id="acme", name="Acme"), now_ms=9))

    assert tenants.accounts[ACME].totals == UsageTotals()
    assert tenants.note_usage() is None, "what the old one had moved is not remembered either"


def test_only_what_has_moved_since_is_noted() -> None:
    tenants = with_acme()
    tenants.apply(tenants.create(CreateTenant(tenant_id="zoo", name="Zoo"), now_ms=1))
    for name in ("acme", "zoo"):
        tenants.account(name).note_stored(1, 10)
    noted = tenants.note_usage()
    assert noted is not None
    tenants.apply(noted)

    tenants.account("zoo").note_consumed(1, 10, now_ns=0)

    assert tenants.note_usage() == UsageNoted({TenantId("zoo"): UsageTotals(1, 10, 1, 10)})


def test_an_empty_house_has_no_events_and_no_owners() -> None:
    tenants = with_acme()
    tenants.load([], [])

    assert tenants.note_usage() is None
    assert tenants.owner("acme.orders") is None
    assert [tenant.tenant_id for tenant in tenants.all()] == [SYSTEM_TENANT]


TENANT_IDS = st.sampled_from(["acme", "zoo", "mid"])


@given(
    st.lists(
        st.tuples(
            st.sampled_from(
                ["create", "change", "quotas", "suspend", "wake", "delete", "use", "note", "reset"]
            ),
            TENANT_IDS,
            st.integers(0, 9),
        ),
        max_size=25,
    )
)
def test_the_same_events_lead_to_the_same_tenants(steps: list[tuple[str, str, int]]) -> None:
    tenants, again, anew = Tenants(), Tenants(), Tenants()
    held: dict[str, bytes] = {}
    for step, name, number in steps:
        try:
            event = decided(tenants, step, name, number)
        except (TenantNotFound, TenantExists):
            continue
        if event is not None:
            tenants.apply(event)
            again.apply(event)
    for account in tenants.accounts.values():
        noted = UsageNoted({account.tenant.tenant_id: account.totals})
        held |= changes(TenantSet(account.tenant))[0] | changes(noted)[0]
    anew.load(*read_back(held))

    assert again.all() == anew.all() == tenants.all()
    assert {name: account.totals for name, account in anew.accounts.items()} == {
        name: account.totals for name, account in tenants.accounts.items()
    }
    for name, account in tenants.accounts.items():
        assert account.quotas == account.tenant.quotas
        assert account.is_active == account.tenant.is_active == again.accounts[name].is_active


def decided(tenants: Tenants, step: str, name: str, number: int) -> Event | None:
    match step:
        case "create":
            return tenants.create(CreateTenant(tenant_id=name, name=name), now_ms=number)
        case "change":
            return tenants.change(ChangeTenant(tenant_id=name, description=str(number)), now_ms=number)
        case "quotas":
            return tenants.set_quotas(name, Quotas(max_topics=number), now_ms=number)
        case "suspend":
            return tenants.set_status(name, TenantStatus.SUSPENDED, reason="bill", now_ms=number)
        case "wake":
            return tenants.set_status(name, TenantStatus.ACTIVE, now_ms=number)
        case "delete":
            return tenants.delete(name, topic_count=0, is_forced=False)
        case "use":
            tenants.account(name).note_stored(number, 10 * number)
            return None
        case "note":
            return tenants.note_usage()
    return tenants.reset_usage(name)
