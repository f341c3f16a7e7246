"""Quotas of users and client ids: who is held to what, as Kafka has it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goqueue.core.access.client_quotas import CLIENTS_MAX, ClientQuotas, quota_key, quota_value
from goqueue.model.client_quotas import DEFAULT, AlterClientQuota, ClientLimit, ClientQuota, QuotaEntity
from goqueue.model.errors import InvalidClientQuota

PRODUCED = ClientLimit.PRODUCED
ORDER = [
    QuotaEntity("ann", "app"),
    QuotaEntity("ann", DEFAULT),
    QuotaEntity("ann"),
    QuotaEntity(DEFAULT, "app"),
    QuotaEntity(DEFAULT, DEFAULT),
    QuotaEntity(DEFAULT),
    QuotaEntity(None, "app"),
    QuotaEntity(None, DEFAULT),
]
"""As Kafka's documentation has it, the strongest first."""


def with_quotas(*quotas: tuple[QuotaEntity, float]) -> ClientQuotas:
    kept = ClientQuotas()
    for entity, value in quotas:
        quota = ClientQuota(entity=entity, limits={PRODUCED: value})
        kept.put(quota_key(entity), quota_value(quota))
    return kept


@given(st.sets(st.sampled_from(range(len(ORDER))), min_size=1))
def test_the_most_exact_quota_counts(given_at: set[int]) -> None:
    kept = with_quotas(*((ORDER[at], 100 + at) for at in given_at))

    bucket = kept.held("ann", "app").produced

    assert bucket is not None
    assert bucket.per_second == 100 + min(given_at)


def test_each_limit_is_looked_for_by_itself() -> None:
    kept = with_quotas((QuotaEntity("ann"), 10))
    entity = QuotaEntity(None, DEFAULT)
    quota = ClientQuota(entity=entity, limits={ClientLimit.REQUESTS: 50.0})
    kept.put(quota_key(entity), quota_value(quota))

    produced, consumed, requests = kept.held("ann", "app")

    assert produced is not None and produced.per_second == 10
    assert consumed is None
    assert requests is not None and requests.per_second == 500_000_000


def test_clients_of_a_user_share_what_the_user_has_and_users_by_default_share_nothing() -> None:
    kept = with_quotas((QuotaEntity(DEFAULT), 10))

    assert kept.held("ann", "one").produced is kept.held("ann", "two").produced
    assert kept.held("ann", "one").produced is not kept.held("bob", "one").produced


def test_clients_of_an_id_share_what_it_has_whoever_they_are() -> None:
    kept = with_quotas((QuotaEntity(None, DEFAULT), 10))

    assert kept.held("ann", "one").produced is kept.held("bob", "one").produced
    assert kept.held("ann", "one").produced is not kept.held("ann", "two").produced


def test_what_is_taken_away_is_gone_and_the_rest_comes_back_from_the_store() -> None:
    kept = with_quotas((QuotaEntity("ann"), 10), (QuotaEntity(None, "app"), 20))

    changed = kept.altered(AlterClientQuota(entity=QuotaEntity("ann"), limits={PRODUCED: None}))
    assert changed is None
    kept.drop(quota_key(QuotaEntity("ann")))

    bucket = kept.held("ann", "app").produced
    assert bucket is not None and bucket.per_second == 20
    again = ClientQuotas()
    again.load({quota_key(entity): quota_value(quota) for entity, quota in kept.entries.items()})
    assert again.entries == kept.entries


def test_made_up_ids_do_not_fill_the_memory() -> None:
    kept = with_quotas((QuotaEntity(None, DEFAULT), 10))

    for number in range(CLIENTS_MAX + 10):
        kept.held("ann", str(number))

    assert len(kept._held) == CLIENTS_MAX


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf"), 1e300])
def test_a_limit_is_a_number_above_0(value: float) -> None:
    with pytest.raises(InvalidClientQuota):
        ClientQuotas().altered(AlterClientQuota(entity=QuotaEntity("ann"), limits={PRODUCED: value}))


@pytest.mark.parametrize("entity", [QuotaEntity(), QuotaEntity("a\nb"), QuotaEntity(None, "x" * 1_000)])
def test_some_entities_cannot_be(entity: QuotaEntity) -> None:
    with pytest.raises(InvalidClientQuota):
        ClientQuotas().altered(AlterClientQuota(entity=entity, limits={PRODUCED: 1.0}))
