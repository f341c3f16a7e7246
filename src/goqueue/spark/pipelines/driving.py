"""The driver's loop, and the Spark session it runs in. A signal ends it in order."""

import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from goqueue.model.errors import Invalid, NotFound

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TICK_S = 0.5
_SETTINGS = {
    # Each pipeline has a pool of its own, so that a long batch of one does not hold up the others.
    "spark.scheduler.mode": "FAIR",
}


def open_session(*, master: str, memory: str, settings: Mapping[str, str] | None = None) -> "SparkSession":
    """A session for pipelines; NotFound tells what to install where Spark is missing."""
    try:
        from goqueue.spark.sessions import session

        return session(
            "goqueue-pipelines", master=master, memory=memory, settings={**_SETTINGS, **(settings or {})}
        )
    except ImportError as error:
        raise NotFound(
            "pipelines run on Spark, which is not installed: pip install 'goqueue[spark]'"
        ) from error


def parse_settings(texts: Sequence[str]) -> dict[str, str]:
    """Settings of Spark as people give them: `spark.executor.cores=4`."""
    wrong = [text for text in texts if "=" not in text]
    if wrong:
        raise Invalid(f"{', '.join(wrong)}: a setting of Spark is given as name=value")
    return dict(text.split("=", 1) for text in texts)


def drive(tick: Callable[[], bool], stop: threading.Event) -> None:
    """Call `tick` twice a second until it says that nothing is left to do, or somebody wants to stop."""
    while not stop.is_set() and tick():
        stop.wait(_TICK_S)


@contextmanager
def stop_on_signals() -> Iterator[threading.Event]:
    """An event that SIGINT or SIGTERM sets; a second signal ends the process as it always does."""
    stop = threading.Event()
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in numbers}

    def note(number: int, _: object) -> None:
        stop.set()
        signal.signal(number, before[signal.Signals(number)])

    for number in numbers:
        signal.signal(number, note)
    try:
        yield stop
    finally:
        for number in numbers:
            signal.signal(number, before[number])
