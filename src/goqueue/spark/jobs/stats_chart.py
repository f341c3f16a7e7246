"""The chart of `goqueue-cli job stats`: hours from left to right, a line a topic."""

from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from goqueue.spark.jobs.stats import HourStats

_INCHES = (10, 9)


def draw(stats: Sequence[HourStats], path: Path) -> None:
    """Write a PNG with messages, bytes, the most frequent key's share, and latency where it is known."""
    # Charts are drawn into files: no window system is asked for.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    panels: list[tuple[str, Callable[[HourStats], float | None]]] = [
        ("messages a second", lambda each: each.per_second),
        ("MiB an hour", lambda each: each.size_bytes / 2**20),
        ("share of the most frequent key", lambda each: each.top_key_share),
    ]
    if any(each.latency_p99_ms is not None for each in stats):
        panels.append(("latency p99, ms", lambda each: each.latency_p99_ms))
    figure = Figure(figsize=_INCHES, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for axis, (title, value) in zip(axes, panels, strict=True):
        for topic in dict.fromkeys(each.topic for each in stats):
            hours = [each for each in stats if each.topic == topic]
            times = [datetime.fromisoformat(each.hour) for each in hours]
            axis.plot(times, [value(each) for each in hours], marker="o", label=topic)
        axis.set_title(title, loc="left")
        axis.set_ylim(bottom=0)
        axis.grid(alpha=0.3)
    axes[-1].tick_params(axis="x", labelrotation=30)
    if stats:
        axes[0].legend()
    figure.savefig(path, format="png", dpi=110)
