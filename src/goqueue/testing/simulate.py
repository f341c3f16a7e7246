"""Run simulations from the command line: `python -m goqueue.testing.simulate --seed 1 --steps 400`."""

import argparse
import logging
import sys
import time
from collections import Counter
from functools import partial
from typing import Protocol

from goqueue.testing.rooms.copy_simulation import simulate_copies
from goqueue.testing.rooms.delay_simulation import simulate_delays
from goqueue.testing.rooms.knowledge_simulation import simulate_knowledge
from goqueue.testing.rooms.node_simulation import simulate_nodes
from goqueue.testing.rooms.queue_simulation import simulate_queue
from goqueue.testing.rooms.replica_simulation import simulate_replicas
from goqueue.testing.rooms.sink_simulation import simulate_sinks
from goqueue.testing.rooms.transaction_simulation import simulate_transactions
from goqueue.testing.whole.cluster_delays import simulate_cluster_delays
from goqueue.testing.whole.cluster_simulation import simulate_cluster
from goqueue.testing.whole.cluster_sinks import simulate_cluster_sinks
from goqueue.testing.whole.cluster_transactions import simulate_cluster_transactions
from goqueue.testing.whole.partition_history import Violation
from goqueue.testing.whole.simulation import simulate
from goqueue.testing.world.machine import Tell

PROGRESS_EVERY_S = 2


class Run(Protocol):
    """A simulation: what happened with a seed, counted."""

    def __call__(self, seed: int, steps: int, *, tell: Tell | None = None) -> Counter[str]: ...


RUNS: dict[str, Run] = {
    "log": simulate,
    "delays": simulate_delays,
    "queue": simulate_queue,
    "transactions": simulate_transactions,
    "sinks": simulate_sinks,
    "knowledge": simulate_knowledge,
    "copies": simulate_copies,
    "nodes": simulate_nodes,
    "replicas": simulate_replicas,
    "cluster": simulate_cluster,
    "cluster-transactions": simulate_cluster_transactions,
    "cluster-delays": simulate_cluster_delays,
    "cluster-sinks": simulate_cluster_sinks,
}
"""What can be put to the test: the log with its groups, or one room."""


def main(arguments: list[str] | None = None) -> int:
    """0 when the broker kept its word in every seed, 1 when it did not."""
    options = _parse(arguments)
    # The broker logs each fault that it meets; with -v that is part of the story.
    logging.basicConfig(level=logging.INFO if options.verbose else logging.CRITICAL, format="  | %(message)s")
    tell = (lambda line: print(line, flush=True)) if options.verbose else None
    run = RUNS[options.what] if options.groups else partial(simulate, has_groups=False)
    counts: Counter[str] = Counter()
    told_at = started_at = time.monotonic()
    for number, seed in enumerate(range(options.seed, options.seed + options.seeds), 1):
        try:
            counts += run(seed, options.steps, tell=tell)
        except Violation as violation:
            print(f"seed {seed} failed: {violation}", file=sys.stderr)
            return 1
        if time.monotonic() - told_at > PROGRESS_EVERY_S:
            told_at = time.monotonic()
            print(f"{number} of {options.seeds} seeds, all well", flush=True)
    print(_summary(options.seed, options.seeds, options.steps, counts, time.monotonic() - started_at))
    return 0


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="simulate", description="Drive a simulated broker from a seed.")
    parser.add_argument("--seed", type=int, default=1, help="the first seed (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds to run (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=400, help="steps a seed (default: %(default)s)")
    parser.add_argument(
        "--what",
        choices=list(RUNS),
        default="log",
        help="what is put to the test: the log with its groups, or one room (default: %(default)s)",
    )
    parser.add_argument(
        "--groups",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="without them the log is simulated alone (default: with)",
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="tell every step")
    return parser.parse_args(arguments)


def _summary(seed: int, seeds: int, steps: int, counts: Counter[str], duration_s: float) -> str:
    which = f"seeds {seed} to {seed + seeds - 1}, {steps} steps each"
    lines = [f"the broker kept its word: {which}, {duration_s:.1f} s"]
    lines += [f"  {what:20} {count:8,}" for what, count in sorted(counts.items())]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
