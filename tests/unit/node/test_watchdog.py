"""The watchdog's two timers, each in a process of its own: its signals end whoever they are sent to."""

import signal
import subprocess
import sys

import pytest

from goqueue.node.watchdog import EXIT_CODE, SECOND_CHANCE_MS

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the watchdog is for Linux only")

_START = f"""
import os, signal, sys
from goqueue.node.watchdog import LoopWatchdog

watchdog = LoopWatchdog(stuck_ms={SECOND_CHANCE_MS + 1})
watchdog.start()
"""


def test_a_beat_after_the_first_timer_has_run_out_saves_the_process() -> None:
    """As after SIGCONT: the first timer has run out, and nobody could have beaten."""
    ran = _run(
        """
def alarm_s():
    return signal.getitimer(signal.ITIMER_REAL)[0]

while not alarm_s():
    pass
before = alarm_s()
watchdog.stop()
print(before > 10, alarm_s())
"""
    )

    assert (ran.returncode, ran.stdout) == (0, "True 0.0\n")


def test_the_second_timer_tells_the_stacks_and_ends_the_process() -> None:
    ran = _run("def stuck():\n    signal.raise_signal(signal.SIGALRM)\n\nstuck()\n")

    assert ran.returncode == EXIT_CODE
    assert "in stuck" in ran.stderr


def test_a_process_ends_also_when_nobody_reads_what_it_tells() -> None:
    filled = f"""{_START}
os.set_blocking(2, False)
try:
    while True:
        os.write(2, bytes(4096))
except BlockingIOError:
    os.set_blocking(2, True)
print("full", flush=True)
signal.raise_signal(signal.SIGALRM)
"""
    with subprocess.Popen(
        [sys.executable, "-c", filled], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "full\n"
        while process.poll() is None:
            # The first writes to a pipe that is full; the timer repeats, and so does this.
            process.send_signal(signal.SIGALRM)
            try:
                process.wait(0.05)
            except subprocess.TimeoutExpired:
                continue

        assert process.returncode == EXIT_CODE


def _run(script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _START + script], capture_output=True, text=True, timeout=30, check=False
    )
