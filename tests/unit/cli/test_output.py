"""What people read: sizes, times, cells; and questions before something is gone."""

import io
import sys
from datetime import UTC, datetime, timedelta

import pytest

from goqueue.cli.messages.trace_view import milliseconds_text
from goqueue.cli.parts.asking import confirm
from goqueue.cli.parts.exit_codes import WrongCommand
from goqueue.cli.parts.output import cell, size_text
from goqueue.cli.parts.times import parse_duration, parse_moment, parse_time, seconds_text, time_text
from goqueue.cli.parts.values import pairs
from goqueue.model.errors import Invalid

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 B"),
        (1_023, "1023 B"),
        (1_024, "1.0 KB"),
        (1_536, "1.5 KB"),
        (1024**2 - 1, "1.0 MB"),
        (5 * 1024**3, "5.0 GB"),
        (2**70, "1048576.0 PB"),
    ],
)
def test_sizes_go_in_steps_of_1024_with_one_decimal(size_bytes: int, text: str) -> None:
    assert size_text(size_bytes) == text


def test_cells_are_one_line_whatever_is_in_them() -> None:
    assert cell(None) == cell("") == cell([]) == "-"
    assert (cell(True), cell(False), cell(0), cell(["a", 1])) == ("yes", "no", "0", "a, 1")
    assert cell("a\nb\x1b[31m\u202e ü 字") == "a\\nb\\x1b[31m\\u202e ü 字"
    assert cell(NOON) == "2026-01-31T12:00:00.000Z"


def test_durations_are_read_as_people_write_them() -> None:
    assert parse_duration("1h30m") == timedelta(minutes=90)
    assert parse_duration("1.5s") == timedelta(milliseconds=1_500)
    assert parse_duration("2d250ms") == timedelta(days=2, milliseconds=250)
    for wrong in ("", "1", "-1s", "1w", "soon", "9" * 30 + "d"):
        with pytest.raises(WrongCommand):
            parse_duration(wrong)


def test_times_are_read_as_people_write_them() -> None:
    assert parse_time("2026-01-31T12:00:00Z") == parse_time("2026-01-31T13:00:00+01:00") == NOON
    assert parse_time("2026-01-31 12:00") == parse_time("1769860800000") == NOON
    assert parse_moment("90m", now=NOON) == NOON - timedelta(minutes=90)
    for wrong in ("", "noon", "2026-13-01", "9" * 15):
        with pytest.raises(WrongCommand):
            parse_moment(wrong, now=NOON)
    with pytest.raises(WrongCommand):
        parse_moment("800000d", now=NOON)


def test_spans_of_time_are_short() -> None:
    assert [seconds_text(s) for s in (0, 9.94, 12, 250, 7_500, 273_600)] == [
        "0.0 s",
        "9.9 s",
        "12 s",
        "4m 10s",
        "2h 5m",
        "3d 4h",
    ]
    assert [milliseconds_text(ms) for ms in (0.417, 12, 3_456)] == ["0.42 ms", "12.0 ms", "3.5 s"]
    assert time_text(NOON.astimezone()) == "2026-01-31T12:00:00.000Z"


def test_pairs_keep_their_order_and_may_hold_equal_signs() -> None:
    assert pairs(["b=1", "a=x=y", "c="], what="a header") == [("b", "1"), ("a", "x=y"), ("c", "")]
    for wrong in ("name", "=value"):
        with pytest.raises(WrongCommand, match="a header is NAME=VALUE"):
            pairs([wrong], what="a header")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_only_yes_is_yes(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal("yes\n"))
    confirm("All will be gone.", is_forced=False)

    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    with pytest.raises(Invalid, match="nothing was changed"):
        confirm("All will be gone.", is_forced=False)
    assert "All will be gone. Type yes to go on" in capsys.readouterr().err
