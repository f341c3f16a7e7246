"""A few thousand cases of every fuzzer; `make fuzz` runs more."""

from pathlib import Path

import pytest

from tests.fuzz.__main__ import DOORS, LOGINS, opened
from tests.fuzz.frame import Run, fuzz
from tests.integration.running_broker import RunningBroker

SEED = 20_261
CASES = 3_000


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(DOORS))
def test_nothing_that_is_sent_to_a_door_harms_the_broker(name: str, tmp_path: Path) -> None:
    broker = RunningBroker(tmp_path / "data").start()
    door = DOORS[name](broker)
    try:
        fuzz(broker, door, Run(SEED, first=0, cases=CASES), tell=lambda _: None)

        assert broker.stop() == 0
    finally:
        door.close()
        broker.kill()


@pytest.mark.slow
def test_nothing_that_is_said_to_log_in_harms_the_broker(tmp_path: Path) -> None:
    broker, door = opened(LOGINS, tmp_path)
    try:
        fuzz(broker, door, Run(SEED, first=0, cases=500), tell=lambda _: None)

        assert broker.stop() == 0
    finally:
        broker.kill()
