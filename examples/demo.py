"""`make demo`: a broker, two hours of a shop, two pipelines, and what came of it.

Everything happens in a temporary folder and on free ports, and is gone in the end.
"""

import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from rich.bar import Bar
from rich.console import Console
from rich.table import Table

from examples.shop import Event, shop_events
from goqueue.client.addresses import parse_addresses
from goqueue.client.connection import Client
from goqueue.spark.lake.options import LakeFormat, TablePlace
from goqueue.spark.pipelines.driving import drive, open_session
from goqueue.spark.pipelines.parsing import read_pipeline
from goqueue.spark.pipelines.reporting import Reporter
from goqueue.spark.pipelines.spec import once
from goqueue.spark.pipelines.status import AT_REST, State
from goqueue.spark.pipelines.storage import Storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PIPELINES = Path(__file__).with_name("pipelines")
_ORDERS, _CLICKS = 1_200, 18_000
_SEED = 7
_HTTP = re.compile(r"http +listening on (\S+)")
_STOP_TIMEOUT_S = 30
_BRIEFLY = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
"""A minute is too short for what Java's second compiler costs."""
console = Console(highlight=False)


class Revenue(NamedTuple):
    """A row of the table that the second pipeline makes."""

    window: str
    country: str
    clicks: int
    orders: int
    revenue_eur: float


def main() -> int:
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="goqueue-demo-") as name:
        folder = Path(name)
        shutil.copytree(_PIPELINES, folder / "pipelines")
        with running_broker(folder / "data") as http:
            console.print(f"[bold]1.[/] a broker listens on http://{http}")
            counts = publish(http, shop_events(orders=_ORDERS, clicks=_CLICKS, seed=_SEED))
            told = ", ".join(f"{count:,} {topic}" for topic, count in sorted(counts.items()))
            console.print(f"[bold]2.[/] two hours of a shop are published: {told}")
            console.print("[bold]3.[/] Spark starts")
            spark = open_session(master="local[2]", memory="1g", settings=_BRIEFLY)
            try:
                for number, file in enumerate(("orders-clean.yaml", "shop-revenue.yaml"), start=4):
                    console.print(f"[bold]{number}.[/] pipeline examples/pipelines/{file}")
                    if not run_once(folder / "pipelines" / file, spark, Storage(folder / "state"), http):
                        return 1
            finally:
                spark.stop()
            show_topics(http, ("orders", "orders-clean", "orders-dead"))
        rows = read_table(folder / "pipelines" / "lake")
    show(rows)
    console.print(f"done in {time.monotonic() - began:.0f} s; the broker is stopped and the folder removed")
    return 0


@contextmanager
def running_broker(folder: Path) -> Iterator[str]:
    """A broker of its own on free ports; gives the address of its HTTP door."""
    flags = (f"--broker-datadir={folder}", "--listeners-kafka=127.0.0.1:0", "--listeners-http=127.0.0.1:0")
    log_path = folder.with_suffix(".log")
    with log_path.open("w", encoding="utf-8") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "goqueue.node.main", *flags], stdout=subprocess.PIPE, stderr=log, text=True
        )
    assert process.stdout is not None
    try:
        printed = ""
        for line in process.stdout:
            printed += line
            if line == "ready\n":
                break
        match = _HTTP.search(printed)
        if match is None:
            raise SystemExit(f"the broker did not start:\n{log_path.read_text(encoding='utf-8')}")
        yield match[1]
    finally:
        process.terminate()
        process.wait(_STOP_TIMEOUT_S)
        process.stdout.close()


def publish(http: str, events: Iterator[Event]) -> dict[str, int]:
    """Send all events, a thousand at a time; gives how many went to each topic."""
    client = Client(parse_addresses(http))
    by_topic = {
        topic: list(group)
        for topic, group in groupby(sorted(events, key=lambda event: event.topic), lambda event: event.topic)
    }
    for topic, messages in by_topic.items():
        client.request("POST", "/topics", body=msgspec.json.encode({"name": topic, "num_partitions": 2}))
        for start in range(0, len(messages), 1_000):
            portion = [{"key": each.key, "value": each.value} for each in messages[start : start + 1_000]]
            body = msgspec.json.encode({"messages": portion})
            client.request("POST", f"/topics/{topic}/messages", body=body)
    client.close()
    return {topic: len(messages) for topic, messages in by_topic.items()}


def run_once(path: Path, spark: "SparkSession", storage: Storage, http: str) -> bool:
    """Run a pipeline over what is there now; False when it failed."""
    from goqueue.spark.pipelines.running import RunningPipeline

    pipeline = once(read_pipeline(path, bootstrap=http))
    running = RunningPipeline(pipeline, storage, restarts_max=3)
    reporter = Reporter(lambda line: console.print(f"   {line}", style="dim", markup=False))
    running.begin(spark)

    def tick() -> bool:
        status = running.tick()
        reporter.report([status])
        return status.state not in AT_REST

    try:
        drive(tick, threading.Event())
        return running.tick().state is State.DONE
    finally:
        running.close()


def show_topics(http: str, topics: Sequence[str]) -> None:
    client = Client(parse_addresses(http))
    for topic in topics:
        described = msgspec.json.decode(client.request("GET", f"/topics/{topic}").body)
        console.print(f"   topic {topic} holds {described['total_messages']:,} messages")
    client.close()


def read_table(warehouse: Path) -> list[Revenue]:
    """The rows of the Iceberg table, without Spark."""
    from goqueue.spark.lake.formats import open_table

    table = open_table(TablePlace(format=LakeFormat.ICEBERG, path=warehouse, table="shop.revenue"))
    found = [row for batch in table.read(table.parts()) for row in batch.to_pylist()]
    return sorted(
        Revenue(
            f"{row['window_start']:%H:%M}", row["country"], row["clicks"], row["orders"], row["revenue_eur"]
        )
        for row in found
    )


def show(rows: list[Revenue]) -> None:
    """The table by country, and a bar for each window."""
    table = Table("COUNTRY", "CLICKS", "ORDERS", "ORDERS A CLICK", "REVENUE (EUR)", title="shop.revenue")
    for country, of_country in groupby(sorted(rows, key=lambda row: row.country), lambda row: row.country):
        group = list(of_country)
        clicks, orders = sum(row.clicks for row in group), sum(row.orders for row in group)
        revenue = sum(row.revenue_eur for row in group)
        share = f"{orders / clicks:.1%}" if clicks else "-"
        table.add_row(country, f"{clicks:,}", f"{orders:,}", share, f"{revenue:,.2f}")
    console.print(table)
    totals = {
        window: sum(row.revenue_eur for row in group)
        for window, group in groupby(rows, lambda row: row.window)
    }
    chart = Table("WINDOW", "REVENUE (EUR)", "", title="Revenue in windows of ten minutes that are closed")
    for window, revenue in totals.items():
        chart.add_row(
            window, f"{revenue:,.0f}", Bar(max(totals.values()), 0, revenue, width=40, color="green")
        )
    console.print(chart)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("stopped; nothing is left behind")
