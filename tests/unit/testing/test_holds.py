"""The watch tells work in one piece from work in slices."""

import asyncio
import time

import pytest
import uvloop

from goqueue.testing.world import holds
from goqueue.testing.world.holds import longest_hold


def spend(cpu_ms: float) -> None:
    end_ns = time.thread_time_ns() + int(cpu_ms * 1e6)
    while time.thread_time_ns() < end_ns:
        pass


async def in_one_piece() -> None:
    await asyncio.sleep(0)
    spend(60)


async def in_slices() -> None:
    for _ in range(15):
        spend(2)
        await asyncio.sleep(0)


def test_work_in_one_piece_holds_the_loop_for_as_long_as_it_takes() -> None:
    for new_loop in (asyncio.new_event_loop, uvloop.new_event_loop):
        with asyncio.Runner(loop_factory=new_loop) as runner:
            assert runner.run(longest_hold(in_one_piece)) >= 20  # of 60, however busy the machine is


def test_a_busy_machine_does_not_make_holds_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holds, "_known_work_ns", lambda: 3 * holds._YARDSTICK_NS)

    assert 20 <= asyncio.run(longest_hold(in_one_piece)) < 30


def test_work_in_slices_holds_the_loop_for_a_slice_only() -> None:
    for new_loop in (asyncio.new_event_loop, uvloop.new_event_loop):
        with asyncio.Runner(loop_factory=new_loop) as runner:
            assert runner.run(longest_hold(in_slices)) < 15


def test_waiting_is_no_holding() -> None:
    async def wait_in_a_thread() -> None:
        await asyncio.to_thread(time.sleep, 0.03)

    assert asyncio.run(longest_hold(wait_in_a_thread)) < 15


def test_a_run_that_is_short_enough_is_the_last() -> None:
    async def runs_of(enough_ms: float) -> int:
        done = 0

        async def work() -> None:
            nonlocal done
            done += 1

        await longest_hold(work, runs=3, enough_ms=enough_ms)
        return done

    assert asyncio.run(runs_of(0.0)) == 3
    assert asyncio.run(runs_of(1_000.0)) == 1
