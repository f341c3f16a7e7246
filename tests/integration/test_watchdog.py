"""Real processes: a loop that no longer turns ends its broker, and one that was only stopped does not."""

import signal
from pathlib import Path

import httpx
import pytest

from goqueue.node.watchdog import EXIT_CODE
from tests.integration.running_broker import RunningBroker

pytestmark = pytest.mark.slow


def test_a_stuck_loop_ends_its_broker_and_a_stopped_broker_goes_on(tmp_path: Path) -> None:
    least = "--health-loop-stuck-ms=15000"
    stuck = RunningBroker(tmp_path / "stuck", least, program="tests.integration.broker_that_gets_stuck")
    stopped = RunningBroker(tmp_path / "stopped", least)
    try:
        stopped.start().send(signal.SIGSTOP)
        stuck.start().send(signal.SIGUSR1)
        assert stuck.exit_code() == EXIT_CODE
        # By now the other has been stopped for longer than a loop may stand still.
        stopped.send(signal.SIGCONT)
        assert httpx.get(f"{stopped.http}/livez", timeout=20).status_code == 200
        assert stopped.stop() == 0
    finally:
        stopped.send(signal.SIGCONT)
        stuck.kill()
        stopped.kill()

    assert "in get_stuck" in stuck.log, "the stack tells what the loop was stuck in"
    assert "most recent call first" not in stopped.log
    assert stuck.start().stop() == 0, "and it can be started anew"
