"""Lines about clients: the first are written, then few, and none is forgotten in the count."""

import logging

import pytest

from goqueue.edge.limited_log import LINES_AT_ONCE, SECONDS_A_LINE, LimitedLog

logger = logging.getLogger("goqueue.tests.limited")


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def told(caplog: pytest.LogCaptureFixture) -> list[tuple[str, int]]:
    return [(record.message, getattr(record, "suppressed", 0)) for record in caplog.records]


def test_a_flood_of_one_event_is_cut_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    log = LimitedLog(logger, now_s=clock)
    for _ in range(10_000):
        log.write(logging.WARNING, "refused", {})
    assert told(caplog) == [("refused", 0)] * LINES_AT_ONCE

    clock.now_s += SECONDS_A_LINE
    log.write(logging.WARNING, "refused", {"reason": "why"})

    assert told(caplog)[LINES_AT_ONCE:] == [("refused", 10_000 - LINES_AT_ONCE)]


def test_events_do_not_take_each_others_lines(caplog: pytest.LogCaptureFixture) -> None:
    log = LimitedLog(logger, now_s=Clock())
    for _ in range(100):
        log.write(logging.WARNING, "loud", {})

    log.write(logging.WARNING, "rare", {})

    assert told(caplog)[-1] == ("rare", 0)


def test_what_was_not_written_is_told_though_nothing_follows(caplog: pytest.LogCaptureFixture) -> None:
    log = LimitedLog(logger, now_s=Clock())
    for _ in range(LINES_AT_ONCE + 7):
        log.write(logging.WARNING, "refused", {})

    log.tell_suppressed()
    log.tell_suppressed()

    assert told(caplog)[LINES_AT_ONCE:] == [("log_lines_suppressed", 7)]
    assert getattr(caplog.records[-1], "event", "") == "refused"
