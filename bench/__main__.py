"""`make bench`: run the measurements, print a table and JSON, and keep them in docs/benchmarks.md."""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from datetime import date
from pathlib import Path

import psutil

from bench import (
    codec_rows,
    commit_rows,
    compaction_rows,
    delays,
    disk_rows,
    fairness_rows,
    group_rows,
    http_rows,
    kafka_rows,
    lock_rows,
    metrics_rows,
    peer_rows,
    queue_rows,
    replication_rows,
    schema_rows,
    trace_rows,
    transactions,
)
from bench.measured import Row, running
from tests.integration.running_broker import RunningBroker

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"


def main() -> int:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--only", default="", help="run only groups whose name contains this")
    parser.add_argument("--gigabytes", type=float, default=10, help="size of the folder to open (default 10)")
    parser.add_argument(
        "--folder", type=Path, help="where to put the data (default: a temporary folder here)"
    )
    parser.add_argument("--save", action="store_true", help="write docs/benchmarks.md")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix=".bench-", dir=options.folder or Path.cwd()))
    rows: list[Row] = []
    try:
        for name, group in groups(folder, options.gigabytes).items():
            if options.only in name:
                print(f"… {name}", file=sys.stderr, flush=True)
                rows += group()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(table(rows))
    print(json.dumps([asdict(row) for row in rows], ensure_ascii=False))
    if options.save:
        save(rows)
    return 0 if all(row.is_met is not False for row in rows) else 1


def groups(folder: Path, gigabytes: float) -> dict[str, Callable[[], list[Row]]]:
    """Each group has a broker of its own, so that one does not warm up or burden the next."""

    def with_broker(name: str, measure: Callable[[RunningBroker], list[Row]]) -> Callable[[], list[Row]]:
        def run() -> list[Row]:
            with running(folder / name) as broker:
                rows = measure(broker)
            shutil.rmtree(folder / name)
            return rows

        return run

    return {
        "kafka-acks-1": with_broker("a", lambda b: [kafka_rows.cpu_per_million(b, acks="1")]),
        "kafka-acks-all": with_broker("b", lambda b: [kafka_rows.cpu_per_million(b, acks="all")]),
        "publish-share": with_broker("c", lambda b: [kafka_rows.publish_share(b, folder)]),
        "fetch-share": with_broker("d", lambda b: [kafka_rows.fetch_share(b, folder)]),
        "http-batch": with_broker("e", lambda b: [http_rows.batch_cpu(b)]),
        "http-single": with_broker("f", lambda b: [http_rows.single_rate(b)]),
        "group-commits": with_broker("h", group_rows.commit_cpu),
        "group-journal": with_broker("i", lambda b: [group_rows.journal_size(b, folder / "i")]),
        "group-rebalance": with_broker("j", group_rows.rebalance),
        "group-lag": with_broker("k", lambda b: [group_rows.lag_of_many(b)]),
        "group-polls": with_broker("l", group_rows.idle_polls),
        "queue-many": with_broker("q", lambda b: [queue_rows.many_at_a_time(b)]),
        "queue-single": with_broker("r", queue_rows.one_at_a_time),
        "queue-memory": queue_rows.lease_memory,
        "latency": with_broker("g", lambda b: kafka_rows.latency(b, folder)),
        "tail-latency": with_broker("y", lambda b: kafka_rows.tail_latency(b, folder)),
        "commit-partitions": with_broker("z", commit_rows.over_partitions),
        "commit-single": with_broker("aa", lambda b: commit_rows.one_at_a_time(b, folder)),
        "fairness": with_broker("x", fairness_rows.beside),
        "fairness-holds": fairness_rows.holds,
        "codec": lambda: [*codec_rows.decoding(), *codec_rows.encoding()],
        "peers": peer_rows.rows,
        "replication": replication_rows.rows,
        "compaction": lambda: compaction_rows.compacting(folder),
        "delays": lambda: delays.delays(folder),
        "metrics": lambda: [metrics_rows.counting(), *metrics_rows.scraping(folder / "m")],
        "schemas": lambda: schema_rows.checking(folder),
        "idempotence": with_broker("t", lambda b: [transactions.idempotent_cpu(b)]),
        "tracing": with_broker("w", trace_rows.tracing_cost),
        "locks": lambda: lock_rows.locks(folder),
        "transactions": with_broker("u", lambda b: transactions.commit_rate(b, folder)),
        "producers": lambda: [transactions.opening_producers(folder / "v")],
        "memory": lambda: [disk_rows.idle_memory(folder)],
        "opening": lambda: disk_rows.opening(folder, gigabytes=gigabytes),
    }


def table(rows: list[Row]) -> str:
    lines = ["| what | measured | reach | | detail |", "| --- | --- | --- | --- | --- |"]
    marks = {True: "met", False: "**missed**", None: ""}
    lines += [f"| {r.what} | {r.text} {r.unit} | {r.reach} | {marks[r.is_met]} | {r.detail} |" for r in rows]
    return "\n".join(lines)


def save(
    rows: list[Row],
    *,
    page: Path = PAGE,
    title: str = "Benchmarks",
    command: str = "make bench ARGS=--save",
) -> None:
    memory_gb = psutil.virtual_memory().total / 2**30
    machine = f"{os.cpu_count()} cores, {memory_gb:.0f} GiB, {platform.system()} {platform.machine()}"
    version = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    page.write_text(
        f"""# {title}

Written by `{command}`. CPU is that of the broker's whole process; shares compare two
measurements of one run, because machines differ and are shared. The clients run on the same machine.

- date: {date.today().isoformat()}, commit {version.stdout.strip() or "unknown"}
- machine: {machine}, Python {platform.python_version()}
- command: `{command}`

{table(rows)}
""",
        encoding="utf-8",
    )


if __name__ == "__main__":
    sys.exit(main())
