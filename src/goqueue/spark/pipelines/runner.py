"""All pipelines of a folder in one driver: files that come, change and go are followed while it runs.

A file that is broken stops nothing: what ran before it was broken goes on, and its problems are told.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from goqueue.model.errors import Busy
from goqueue.spark.pipelines.parsing import read_pipeline
from goqueue.spark.pipelines.running import RunningPipeline
from goqueue.spark.pipelines.status import PipelineStatus
from goqueue.spark.pipelines.storage import Storage
from goqueue.spark.pipelines.yaml_nodes import InvalidPipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Tell = Callable[[str], None]
_PATTERNS = ("*.yaml", "*.yml")


class Runner:
    """The pipelines of one folder."""

    def __init__(
        self, folder: Path, spark: "SparkSession", storage: Storage, *, bootstrap: str, tell: Tell
    ) -> None:
        self._folder = folder
        self._spark = spark
        self._storage = storage
        self._bootstrap = bootstrap
        self._tell = tell
        self._running: dict[Path, RunningPipeline] = {}
        self._stamps: dict[Path, tuple[int, int]] = {}
        self._busy: set[Path] = set()
        """Files whose pipelines another driver runs; told once, tried again until it lets go."""

    def tick(self) -> list[PipelineStatus]:
        """Follow the folder, then look after each pipeline."""
        found = self._found()
        for path in self._running.keys() - found.keys():
            self._tell(f"{path} is gone: its pipeline ends")
            self._running.pop(path).close()
        for path, stamp in found.items():
            if self._stamps.get(path) != stamp and self._take(path):
                self._stamps[path] = stamp
                if path in self._running:
                    # To begin one takes seconds: those that run already are looked after in between.
                    break
        self._stamps = {path: stamp for path, stamp in self._stamps.items() if path in found}
        return [running.tick() for running in self._running.values()]

    def close(self) -> None:
        for running in self._running.values():
            running.close()
        self._running.clear()

    def _take(self, path: Path) -> bool:
        """Run what the file says now; False when it should be tried again."""
        try:
            pipeline = read_pipeline(path, bootstrap=self._bootstrap)
        except InvalidPipeline as invalid:
            for line in invalid.lines():
                self._tell(line)
            return True
        if path in self._running:
            self._tell(f"{path} has changed: pipeline {pipeline.name} begins again")
            self._running.pop(path).close()
        running = RunningPipeline(pipeline, self._storage)
        try:
            running.begin(self._spark)
        except Busy as busy:
            if path not in self._busy:
                self._tell(str(busy))
            self._busy.add(path)
            return False
        self._busy.discard(path)
        self._running[path] = running
        return True

    def _found(self) -> dict[Path, tuple[int, int]]:
        paths = sorted(path for pattern in _PATTERNS for path in self._folder.glob(pattern))
        stamps = {}
        for path in paths:
            try:
                stat = path.stat()
            except FileNotFoundError:
                continue  # It went between being listed and being looked at.
            stamps[path] = (stat.st_mtime_ns, stat.st_size)
        return stamps
