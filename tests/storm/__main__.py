"""`make storm SEED=… MINUTES=…`: clients of all features, a broker that is killed, a model that checks it.

Before that come simulated power cuts, from the same seed.

Exits with 1 when the broker has broken its word, and tells how to go through the same weather again. The
clients and the weather draw from the seed; which request a kill meets is a matter of the machine.
"""

import argparse
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.storm import cuts, kills
from tests.storm.record import Record
from tests.storm.table import table

_CUTS_SHARE = 0.2
"""Simulations before the storm take this share of its time."""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make storm", description=__doc__)
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--only", default="", help="clients whose class has this in its name")
    parser.add_argument("--part", choices=("both", "kills", "cuts"), default="both")
    parser.add_argument("--keep", action="store_true", help="leave the data folder")
    given = parser.parse_args(arguments)
    record = Record()
    folder = Path(tempfile.mkdtemp(prefix="goqueue-storm-"))
    print(f"storm: seed {given.seed}, {given.minutes:g} minutes, in {folder}", flush=True)
    begun_s = time.monotonic()
    if given.part != "kills":
        cuts.cut(record, seed=given.seed, seconds=given.minutes * 60 * _CUTS_SHARE)
    if given.part != "cuts":
        kills.storm(folder, record, seed=given.seed, minutes=given.minutes, only=given.only)
    print(table(record, seconds=time.monotonic() - begun_s))
    if not record.violations:
        if not given.keep:
            shutil.rmtree(folder)
        return 0
    for violation in record.violations:
        print(violation, file=sys.stderr)
    print(f"{record.violation_count} violations; data and log: {folder}", file=sys.stderr)
    print(f"replay: make storm SEED={given.seed} MINUTES={given.minutes:g}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
