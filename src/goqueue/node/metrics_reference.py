"""The page about metrics: the table is made from the families, so that it cannot say anything else."""

from goqueue.broker.measures.family import Family
from goqueue.broker.measures.table import FAMILIES, LEFT_OUT

_ABOVE = """# Metrics

`GET /metrics` on the HTTP door, as Prometheus text or OpenMetrics (by the `Accept` header). Counters begin at
0 when the broker starts. What only some topics or groups ever do is told of those that have done it;
everything else is there from the beginning.

| metric | kind | labels | what it says |
| --- | --- | --- | --- |"""

_BELOW = """
Metrics whose labels end with *partition* have that label, and are told of each partition, when
`GOQUEUE_METRICS_BY_PARTITION=true`; otherwise they are summed over the partitions of a topic. Of the lag in
seconds the longest counts instead. The process itself is told too: `process_*` and `python_gc_*`.

## How many series

- `GOQUEUE_METRICS_TOPICS_MAX` topics (1,000) have series of their own, `GOQUEUE_METRICS_GROUPS_MAX` groups
  (1,000), and as many pairs of a group and a topic. What comes when these places are taken is summed up under
  `_other`, so sums over all stay right. A topic or group that is deleted takes its series along and frees its
  place.
- Names that anybody can make up (client ids, topics that do not exist, member ids) never become labels.
- The broker's own journals (`__metadata`, `__consumer_offsets` and so on) have storage metrics, and take no
  place.
- The groups with which the broker redrives dead letters are not told of.
- Lag in seconds needs a look into the log. It is made for 1,000 partitions a scrape; groups beyond are told
  without it.

## What it costs

Counting is additions on objects that lie at hand where a batch passes: 0.8 µs for a batch that is published
and fetched, whatever it holds. Everything is read when it is asked for, and the page is written in slices,
between which the broker serves others. A scrape of 1,000 topics of 3 partitions and 100 groups (17,700 lines)
took 109 ms of CPU and held the loop for at most 3.3 ms at a time (2 shared cores; `make bench ARGS="--only
metrics"`).

## Prometheus

`deploy/prometheus/prometheus.yml` scrapes a broker on this machine and loads `alerts/goqueue.yml`:

```
prometheus --config.file=deploy/prometheus/prometheus.yml
```

The alerts, with what to do about each in its description: broker down, node not ready, loop lag, disk 80 and
90 % full, stopped, damaged and under-replicated partitions, bad batches, fsync errors and
latency, publish and fetch latency, error rate and error budget, consumer lag (10,000 and 100,000), no
progress for ten minutes, frequent rebalances, dead letters growing, delayed messages late.
`promtool test rules deploy/prometheus/tests/goqueue_test.yml`
tries them.

## Grafana

Five dashboards in `deploy/grafana/dashboards`: Overview, Cluster, Consumer Groups, SLO/SLA, Tracing &
Transactions. They ask the data sources with the uids `prometheus` and `tempo`. `deploy/grafana/provisioning`
holds both for a Grafana that finds the dashboards in `/var/lib/grafana/dashboards/goqueue`.

## Not served

Names of other editions of GoQueue that are not here, and why.

| metric | why not |
| --- | --- |"""


def metrics_page() -> str:
    """Every family with its labels, and how to use them."""
    lines = [_ABOVE, *map(_row, FAMILIES), _BELOW]
    lines += [f"| {_names(names)} | {reason} |" for names, reason in LEFT_OUT.items()]
    return "\n".join([*lines, ""])


def _row(family: Family) -> str:
    labels = [f"`{label}`" for label in family.labels]
    if family.by_partition:
        labels.append("*partition*")
    return f"| `{family.name}` | {family.kind.value} | {', '.join(labels)} | {family.help} |"


def _names(names: str) -> str:
    return ", ".join(f"`{name}`" for name in names.split(", "))
