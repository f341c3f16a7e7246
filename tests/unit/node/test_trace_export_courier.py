"""The thread that carries spans to a target: nobody else waits for a target that fails or hangs."""

import logging
import threading
from collections.abc import Sequence

import pytest

from goqueue.model.telemetry import ExportStatus
from goqueue.node.tracing import outbox
from goqueue.node.tracing.courier import Courier
from goqueue.node.tracing.outgoing import Outgoing
from tests.unit.node.test_trace_export_outbox import spans


class Desk:
    """A target that takes what it is given, after refusing so many times."""

    def __init__(self, *, refusals: int = 0) -> None:
        self.taken: list[Outgoing] = []
        self.arrived = threading.Event()
        self.is_closed = False
        self._refusals = refusals

    def send(self, spans: Sequence[Outgoing]) -> None:
        if self._refusals:
            self._refusals -= 1
            raise ConnectionRefusedError("nobody listens there")
        self.taken += spans
        self.arrived.set()

    def close(self) -> None:
        self.is_closed = True


class HangingDesk(Desk):
    """A target that never answers until it is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = threading.Event()
        self._closed = threading.Event()

    def send(self, spans: Sequence[Outgoing]) -> None:
        self.asked.set()
        self._closed.wait(10)
        raise ConnectionAbortedError("closed")

    def close(self) -> None:
        self._closed.set()


def courier(desk: Desk, waiting_max: int = 100) -> Courier:
    return Courier(ExportStatus("otlp-http"), desk, waiting_max=waiting_max)


def test_spans_reach_the_target_and_the_end_waits_for_the_last_of_them() -> None:
    desk = Desk()
    carrying = courier(desk)
    carrying.put(spans(1, 2))
    assert desk.arrived.wait(10)

    carrying.put(spans(3))
    carrying.close(within_s=10)

    assert desk.taken == spans(1, 2, 3)
    assert desk.is_closed
    assert (carrying.status.sent, carrying.status.dropped) == (3, 0)


def test_a_target_that_comes_back_gets_what_waited(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(outbox, "_RETRY_MS_FIRST", 1)
    caplog.set_level(logging.INFO)
    desk = Desk(refusals=3)
    carrying = courier(desk)
    carrying.put(spans(1))
    assert desk.arrived.wait(10)
    carrying.close(within_s=10)

    assert desk.taken == spans(1)
    assert (carrying.status.sent, carrying.status.failures, carrying.status.last_error) == (1, 3, "")
    assert [record.message for record in caplog.records] == ["trace_export_failed", "trace_export_resumed"]


def test_a_target_that_hangs_costs_its_own_spans_only(caplog: pytest.LogCaptureFixture) -> None:
    desk = HangingDesk()
    carrying = courier(desk, waiting_max=2)
    carrying.put(spans(1))
    assert desk.asked.wait(10)
    for offset in range(2, 10):
        carrying.put(spans(offset))
    assert carrying.status.dropped == 6

    carrying.close(within_s=0)

    assert carrying.status.dropped == 9
    assert "trace_export_cut_short" in caplog.text


def test_a_bug_in_a_target_is_told_and_does_not_end_the_export(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(outbox, "_RETRY_MS_FIRST", 1)
    desk = Desk()
    right_way = desk.send

    def wrong_way(spans: Sequence[Outgoing]) -> None:
        monkeypatch.setattr(desk, "send", right_way)
        raise AttributeError("a typing mistake")

    monkeypatch.setattr(desk, "send", wrong_way)
    carrying = courier(desk)
    carrying.put(spans(1))
    assert desk.arrived.wait(10)
    carrying.close(within_s=10)

    assert desk.taken == spans(1)
    assert "trace_export_broken" in caplog.text
