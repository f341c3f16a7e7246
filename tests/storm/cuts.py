"""The simulations of `make sim`, seed after seed: power cuts, failing disks and clocks over all features.

A simulated disk forgets what was not synced, folders' entries too; reads and syncs fail, space runs out, the
clock is set, the process stands still. What an acknowledgement with acks=leader and a settlement may lose in
a power cut is told in `docs/testing.md`, and not counted here.
"""

import logging
import time

from goqueue.testing.rooms.room_simulation import POWER_CUT
from goqueue.testing.simulate import RUNS
from goqueue.testing.whole.partition_history import Violation
from tests.storm.record import Kind, Record

STEPS = 120
CUTS_MIN = 100
"""A storm has at least so many, however short it is."""


def cut(record: Record, *, seed: int, seconds: float) -> None:
    """Simulate for so long, one seed of each kind in turn."""
    logging.getLogger("goqueue").setLevel(logging.CRITICAL)
    end_s = time.monotonic() + seconds
    cuts = 0
    while cuts < CUTS_MIN or time.monotonic() < end_s:
        for what, run in RUNS.items():
            try:
                counts = run(seed, STEPS)
            except Violation as violation:
                record.violate(Kind.UNEXPLAINED, f"simulated {what}", str(violation))
                continue
            cuts += counts[POWER_CUT]
            record.befall("simulated power cut", count=counts[POWER_CUT])
            record.count(f"simulated steps, {what}", STEPS)
        if record.violation_count:
            return
        seed += 1
