"""Token buckets: a second's worth at once, then as much as the rate says, and a debt that ends."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goqueue.core.access.rates import BURST_NS, DEBT_NS_MAX, Bucket, Rate

SECOND = 1_000_000_000
NOON = 12 * 3600 * SECOND


@pytest.mark.parametrize("now_ns", [0, 1, NOON])
def test_a_bucket_begins_full_also_when_the_clock_has_only_begun(now_ns: int) -> None:
    bucket = Bucket(10)

    assert bucket.left(now_ns=now_ns) == 10
    assert bucket.wait_ns(10, now_ns=now_ns) == 0


@pytest.mark.parametrize(
    ("taken", "later_ns", "left"),
    [
        (0, 0, 10),
        (4, 0, 6),
        (10, 0, 0),
        (10, SECOND // 10 - 1, 0),
        (10, SECOND // 10, 1),
        (10, SECOND, 10),
        (25, 0, 0),
        (25, 3 * SECOND // 2, 0),
        (25, 16 * SECOND // 10, 1),
        (25, 100 * SECOND, 10),
    ],
)
def test_what_is_left_is_what_was_not_taken_and_what_has_come_since(
    taken: int, later_ns: int, left: int
) -> None:
    bucket = Bucket(10)

    bucket.take(taken, now_ns=NOON)

    assert bucket.left(now_ns=NOON + later_ns) == left


@pytest.mark.parametrize(
    ("tokens", "wait_ns"),
    [(0, 0), (1, SECOND // 10), (7, 7 * SECOND // 10), (10, SECOND), (11, SECOND), (10_000, SECOND)],
)
def test_from_an_empty_bucket_one_waits_for_what_one_wants_and_never_longer_than_for_a_full_one(
    tokens: int, wait_ns: int
) -> None:
    bucket = Bucket(10)
    bucket.take(10, now_ns=NOON)

    assert bucket.wait_ns(tokens, now_ns=NOON) == wait_ns
    assert bucket.wait_ns(tokens, now_ns=NOON + wait_ns) == 0


def test_debt_that_is_as_large_as_it_may_be_is_paid_after_a_minute() -> None:
    bucket = Bucket(1)
    bucket.take(10**9, now_ns=NOON)

    assert bucket.wait_ns(0, now_ns=NOON) == DEBT_NS_MAX
    assert bucket.wait_ns(0, now_ns=NOON + DEBT_NS_MAX - 1) == 1
    assert bucket.wait_ns(0, now_ns=NOON + DEBT_NS_MAX) == 0


def test_a_bucket_without_a_rate_is_never_empty_and_keeps_no_debt() -> None:
    bucket = Bucket(0)

    bucket.take(10**12, now_ns=NOON)

    assert bucket.wait_ns(10**12, now_ns=NOON) == 0
    assert bucket.left(now_ns=NOON) == 0, "there is nothing to count"


@given(
    per_second=st.integers(1, 10_000),
    steps=st.lists(st.tuples(st.integers(0, 2 * SECOND), st.integers(0, 30_000)), max_size=20),
)
def test_who_waits_as_told_never_gets_more_than_the_rate_and_one_burst(
    per_second: int, steps: list[tuple[int, int]]
) -> None:
    bucket, now_ns, taken = Bucket(per_second), NOON, 0
    for pause_ns, tokens in steps:
        now_ns += pause_ns
        wait_ns = bucket.wait_ns(tokens, now_ns=now_ns)
        assert 0 <= wait_ns <= DEBT_NS_MAX + BURST_NS
        now_ns += wait_ns
        assert bucket.wait_ns(tokens, now_ns=now_ns) == 0, "who waited so long is let through"
        if taken + tokens > 0:
            allowed = (now_ns - NOON + BURST_NS) * per_second / SECOND
            assert taken + min(tokens, per_second) <= allowed + len(steps)
        bucket.take(tokens, now_ns=now_ns)
        is_forgiven = bucket.wait_ns(0, now_ns=now_ns) == DEBT_NS_MAX
        taken = 0 if is_forgiven else taken + tokens
        if is_forgiven:
            return


@pytest.mark.parametrize(
    ("wanted", "now"),
    [(1, 1), (5, 5), (6, 6), (7, 6), (1_000, 6)],
)
def test_as_many_go_through_now_as_there_are(wanted: int, now: int) -> None:
    rate = Rate(messages=10, size_bytes=10)

    rate.take(4, 4, now_ns=NOON)

    assert rate.messages_now(wanted, now_ns=NOON) == now
    assert rate.bytes_now(wanted, now_ns=NOON) == now


def test_one_message_always_goes_through_else_nobody_would_get_any() -> None:
    rate = Rate(messages=10, size_bytes=10)
    rate.take(50, 50, now_ns=NOON)

    assert (rate.messages_now(9, now_ns=NOON), rate.bytes_now(9, now_ns=NOON)) == (1, 1)


@pytest.mark.parametrize(
    ("messages", "size_bytes", "text"),
    [
        (10, 0, "10 messages a second"),
        (0, 2_000, "2000 bytes a second"),
        (10, 2_000, "10 messages and 2000 bytes a second"),
    ],
)
def test_a_rate_tells_only_the_limits_it_has(messages: int, size_bytes: int, text: str) -> None:
    assert str(Rate(messages=messages, size_bytes=size_bytes)) == text


@pytest.mark.parametrize(
    ("taken", "wait_ns"),
    [((20, 0), SECOND), ((0, 3_000), 2 * SECOND), ((20, 3_000), 2 * SECOND), ((9, 900), 0)],
)
def test_one_waits_for_whichever_is_deeper_in_debt(taken: tuple[int, int], wait_ns: int) -> None:
    rate = Rate(messages=10, size_bytes=1_000)

    rate.take(*taken, now_ns=NOON)

    assert rate.wait_ns(now_ns=NOON) == wait_ns


def test_who_has_used_up_its_rate_and_no_more_is_not_in_debt() -> None:
    rate = Rate(messages=10, size_bytes=10)

    rate.take(10, 10, now_ns=NOON)

    assert rate.wait_ns(now_ns=NOON) == 0
    assert rate.wait_ns(1, now_ns=NOON) == rate.wait_ns(0, 1, now_ns=NOON) == SECOND // 10
