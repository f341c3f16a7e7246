"""`make bench-cluster`: the same for several nodes, kept in docs/benchmarks-cluster.md."""

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from bench import cluster_rows, replication_rows, take_over_rows
from bench.__main__ import PAGE, save, table
from bench.measured import Row


def main() -> int:
    parser = argparse.ArgumentParser(prog="make bench-cluster", description=__doc__)
    parser.add_argument("--only", default="", help="run only groups whose name contains this")
    parser.add_argument("--save", action="store_true", help="write docs/benchmarks-cluster.md")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix=".bench-", dir=Path.cwd()))
    rows: list[Row] = []
    try:
        for name, group in _groups(folder).items():
            if options.only in name:
                print(f"… {name}", file=sys.stderr, flush=True)
                rows += (found := group())
                # Told at once: a group behind it may fail, as very many partitions do on a busy machine.
                print(table(found), file=sys.stderr, flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(table(rows))
    print(json.dumps([asdict(row) for row in rows], ensure_ascii=False))
    if options.save:
        save(
            rows,
            page=PAGE.with_name("benchmarks-cluster.md"),
            title="Benchmarks of a cluster",
            command="make bench-cluster ARGS=--save",
        )
    return 0 if all(row.is_met is not False for row in rows) else 1


def _groups(folder: Path) -> dict[str, Callable[[], list[Row]]]:
    return {
        "fail-over": lambda: cluster_rows.fail_over(folder / "a"),
        "replication": replication_rows.rows,
        "in-and-out": lambda: cluster_rows.in_and_out(folder / "b"),
        "polls": lambda: cluster_rows.polls(folder / "c"),
        "take-over": take_over_rows.rows,
        "many-partitions": lambda: cluster_rows.many_partitions(folder / "d"),
        "many-nodes": lambda: cluster_rows.many_nodes(folder / "e"),
    }


if __name__ == "__main__":
    sys.exit(main())
