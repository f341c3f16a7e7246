"""What tenants use hour by hour: nothing lost, nothing twice, and only so much of it kept."""

from hypothesis import given
from hypothesis import strategies as st

from goqueue.core.access.usage_hours import USAGE_HOURS, UsageHours
from goqueue.model.settings import HOUR_MS
from goqueue.model.tenants import TenantId, UsageHour, UsageTotals

ACME, ZOO = TenantId("acme"), TenantId("zoo")
DAY_MS = 24 * HOUR_MS


def carry_out(store: dict[str, bytes], kept: UsageHours, moved: int, now_ms: int, stored: int = 0) -> None:
    noted = kept.note(
        {ACME: UsageTotals(moved, 10 * moved)} if moved else {},
        {ACME: stored},
        now_ms=now_ms,
        there=[ACME],
    )
    for key, value in noted.puts.items():
        store[key] = value
        kept.put(key, value)
    for key in noted.drops:
        del store[key]
        kept.drop(key)


@given(st.lists(st.tuples(st.integers(0, 3 * HOUR_MS), st.integers(0, 9)), max_size=30))
def test_all_that_was_moved_stands_in_some_hour_and_survives(steps: list[tuple[int, int]]) -> None:
    store: dict[str, bytes] = {}
    kept, now_ms, expected = UsageHours(days=35), 0, dict[int, int]()
    for wait_ms, moved in steps:
        now_ms += wait_ms
        carry_out(store, kept, moved, now_ms)
        if moved:
            expected[now_ms // HOUR_MS] = expected.get(now_ms // HOUR_MS, 0) + moved
        again = UsageHours(days=35)
        again.load(store)
        kept = again

    hours = kept.hours(ACME, first_hour=0)

    assert {hour: used.messages_published for hour, used in hours.items()} == expected
    assert list(hours) == sorted(hours)


def test_only_so_many_days_are_kept_and_none_of_who_is_gone() -> None:
    store: dict[str, bytes] = {}
    kept = UsageHours(days=2)
    for day in range(5):
        carry_out(store, kept, 1, day * DAY_MS)
    assert sorted(kept.hours(ACME, first_hour=0)) == [72, 96]
    assert len(store) == 2

    noted = kept.note({}, {}, now_ms=4 * DAY_MS, there=[ZOO])

    assert set(noted.drops) == set(store)
    assert all(key.startswith(USAGE_HOURS) for key in noted.drops)


def test_what_is_only_stored_is_noted_once_an_hour_with_the_most_of_it() -> None:
    store: dict[str, bytes] = {}
    kept = UsageHours(days=2)
    carry_out(store, kept, 0, 0, stored=500)
    assert kept.note({}, {ACME: 700}, now_ms=1, there=[ACME]).puts == {}
    carry_out(store, kept, 1, 2, stored=300)
    carry_out(store, kept, 0, HOUR_MS, stored=300)

    assert kept.hours(ACME, first_hour=0) == {0: UsageHour(1, 10, 0, 0, 500), 1: UsageHour(0, 0, 0, 0, 300)}
    assert list(kept.hours(ACME, first_hour=1)) == [1]


def test_of_a_count_that_was_begun_anew_all_is_new() -> None:
    assert UsageTotals(5, 50).less(UsageTotals(3, 30)) == UsageTotals(2, 20)
    assert UsageTotals(1, 50).less(UsageTotals(3, 30)) is None
