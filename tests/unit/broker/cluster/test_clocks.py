"""A node whose clock is an hour off is told of in the log of the others, once for each time that it tells."""

import logging
from dataclasses import replace

import pytest

from goqueue.broker.member.clocks import Clocks
from goqueue.core.cluster.metadata import Metadata
from goqueue.model.cluster import NodeId, NodeRecord
from goqueue.testing.world.clock import SimulatedClock

A, B, C = NodeId("a"), NodeId("b"), NodeId("c")
HOUR_MS = 3_600_000


def test_a_clock_that_is_an_hour_off_is_told_once_and_forgotten_when_it_is_set(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock, image = SimulatedClock(), Metadata("a")
    now_ms = clock.wall_ms()
    # What was told before somebody listened is as old as it is, and says nothing.
    image.nodes[C] = NodeRecord(folder_id="c", told_ms=now_ms - 2 * HOUR_MS)
    clocks = Clocks(image, clock, A)
    image.nodes[B] = NodeRecord(folder_id="b", told_ms=now_ms + HOUR_MS)
    image.nodes[A] = NodeRecord(folder_id="a", told_ms=now_ms - HOUR_MS)

    with caplog.at_level(logging.WARNING):
        clocks.look()
        clocks.look()

    assert [(record.message, record.node, record.ahead_ms) for record in caplog.records] == [  # type: ignore[attr-defined]
        ("clock_off", B, HOUR_MS)
    ]
    assert clocks.off_ms == {B: HOUR_MS}
    image.nodes[B] = replace(image.nodes[B], told_ms=clock.wall_ms() - 20_000)
    clocks.look()
    assert clocks.off_ms == {}


def test_who_does_not_tell_its_time_is_not_wrong(caplog: pytest.LogCaptureFixture) -> None:
    image = Metadata("a")
    clocks = Clocks(image, SimulatedClock(), A)
    image.nodes[B] = NodeRecord(folder_id="b")

    clocks.look()

    assert (clocks.off_ms, caplog.records) == ({}, [])
