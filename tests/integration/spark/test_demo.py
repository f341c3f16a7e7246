"""`make demo` does what the README says, and leaves nothing behind."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
_HELD = re.compile(r"topic (\S+) holds ([\d,]+) messages")


def test_the_demo_shows_what_came_of_the_shop(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "examples.demo"],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )

    assert ran.returncode == 0, ran.stdout + ran.stderr
    held = {topic: int(count.replace(",", "")) for topic, count in _HELD.findall(ran.stdout)}
    assert held.keys() == {"orders", "orders-clean", "orders-dead"}
    assert held["orders-dead"] > 0
    assert held["orders-clean"] + held["orders-dead"] == held["orders"] == 1_200
    assert all(country in ran.stdout for country in ("DE", "FR", "GB", "US"))
    assert len(re.findall(r"1[01]:[0-5]0 +│ +[\d,]+ +│ +█", ran.stdout)) >= 8, ran.stdout
    assert [path for path in tmp_path.iterdir() if path.name.startswith("goqueue-demo")] == []
