"""Times and durations of the HTTP contract."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from goqueue.edge.http.parts.times import (
    format_duration,
    format_second,
    format_time,
    parse_duration_ns,
    parse_time,
    parse_time_or_ms,
)
from goqueue.model.errors import Invalid


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("0", 0),
        ("-0", 0),
        ("5s", 5_000_000_000),
        ("+5s", 5_000_000_000),
        ("-1.5h", -5_400_000_000_000),
        ("1h30m", 5_400_000_000_000),
        ("250ms", 250_000_000),
        ("1us", 1_000),
        ("1µs", 1_000),
        ("7ns", 7),
        (".5s", 500_000_000),
        ("1.s", 1_000_000_000),
    ],
)
def test_go_durations_are_understood(text: str, nanoseconds: int) -> None:
    assert parse_duration_ns(text) == nanoseconds


@pytest.mark.parametrize(
    "text", ["", "5", "s", "1d", "1h 30m", "٣s", "1.2.3s", ".s", "5s\n", "9" * 40 + "h", "1" * 5000]
)
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(Invalid):
        parse_duration_ns(text)


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "0s"),
        (250, "250ms"),
        (1_000, "1s"),
        (62_500, "1m2.5s"),
        (3_600_000, "1h0m0s"),
        (90_061_010, "25h1m1.01s"),
    ],
)
def test_durations_are_written_as_go_writes_them(milliseconds: int, text: str) -> None:
    assert format_duration(milliseconds) == text


@given(some.integers(0, 10**12))
def test_a_duration_that_was_written_is_read_back(milliseconds: int) -> None:
    assert parse_duration_ns(format_duration(milliseconds)) == milliseconds * 1_000_000


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01t00:00:01z", 1_000),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1970-01-01T00:00:00.123456789Z", 123),
        ("1969-12-31T23:59:59.999Z", -1),
    ],
)
def test_rfc_3339_times_are_understood(text: str, milliseconds: int) -> None:
    assert parse_time(text) == milliseconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "2026-01-31",
        "2026-01-31T12:00:00",
        "2026-02-30T00:00:00Z",
        "20260131T120000Z",
        "0000-01-01T00:00:00Z",
    ],
)
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(Invalid):
        parse_time(text)


@given(some.integers(-62_135_596_800_000, 253_402_300_799_999))
def test_a_time_that_was_written_is_read_back(milliseconds: int) -> None:
    assert parse_time(format_time(milliseconds)) == milliseconds


def test_times_beyond_the_calendar_are_shown_as_its_edges() -> None:
    assert format_time(2**63 - 1) == "9999-12-31T23:59:59.999Z"
    assert format_time(-(2**63)) == "0001-01-01T00:00:00.000Z"
    assert format_second(2**63 - 1) == "9999-12-31T23:59:59Z"


def test_a_time_may_be_given_in_unix_milliseconds() -> None:
    assert parse_time_or_ms("1500") == 1_500
    assert parse_time_or_ms("-1") == -1
