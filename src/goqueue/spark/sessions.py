"""A Spark session that is quick to use and quiet: for a laptop, a test, or a driver next to the broker."""

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from goqueue.spark.session_java import java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOCAL = re.compile(r"local(?:\[(\*|\d+)(?:,\d+)?\])?")
_LOOPBACK = "127.0.0.1"
_CONNECT = "sc://"
_OF_A_SESSION = "spark.sql."
"""Settings that begin so can be given to a server that runs already."""

# Arrow's own checks of each access cost a tenth of a plain read. Spark asks within bounds, and asks for
# nulls itself.
_ARROW_OPTIONS = "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"

EVERYWHERE = {
    "spark.ui.showConsoleProgress": "false",
    # Arrow columns of times carry the session's zone, and the codec knows one.
    "spark.sql.session.timeZone": "UTC",
    # Lets the option pushdown=true take effect.
    "spark.sql.python.filterPushdown.enabled": "true",
    # Sinks get rows in batches of this size; the default of 10,000 costs a fifth more.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
    "spark.executor.defaultJavaOptions": _ARROW_OPTIONS,
}
LOCALLY = {
    "spark.ui.enabled": "false",
    "spark.driver.defaultJavaOptions": (
        f"-Dlog4j2.configurationFile={Path(__file__).with_name('session_log4j2.properties').as_uri()} "
        + _ARROW_OPTIONS
    ),
    "spark.driver.host": _LOOPBACK,
    "spark.driver.bindAddress": _LOOPBACK,
    # Rows cross between Java and Python by a socket of the file system, which is cheaper than TCP.
    "spark.python.unix.domain.socket.enabled": "true",
    # Saves 70 ms a micro-batch. Right for a local disk with one driver a checkpoint, and only there.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}


def session(
    name: str = "goqueue",
    *,
    master: str = "local[*]",
    memory: str = "2g",
    settings: Mapping[str, str] | None = None,
) -> "SparkSession":
    """The session of this process, made if there is none; `settings` of Spark's go above our own.

    A master like `sc://host:15002` is a Spark Connect server: its Java and its memory are its own affair.
    """
    from pyspark.sql import SparkSession

    if master.startswith(_CONNECT):
        builder = SparkSession.builder.appName(name).remote(master)
        for key, value in connect_settings(settings).items():
            builder = builder.config(key, value)
        return builder.getOrCreate()
    if SparkSession.getActiveSession() is None:
        os.environ["JAVA_HOME"] = str(java_home())
        # Workers must run the Python that has the driver's packages.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        if _LOCAL.fullmatch(master):
            os.environ.setdefault("SPARK_LOCAL_IP", _LOOPBACK)
    builder = SparkSession.builder.appName(name).master(master)
    for key, value in session_settings(master, memory=memory, settings=settings).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def session_settings(
    master: str, *, memory: str = "2g", settings: Mapping[str, str] | None = None
) -> dict[str, str]:
    """What Spark is told for a master."""
    told = {**EVERYWHERE, "spark.driver.memory": memory}
    if match := _LOCAL.fullmatch(master):
        cores = os.cpu_count() or 1 if match[1] == "*" else int(match[1] or 1)
        told |= {**LOCALLY, "spark.sql.shuffle.partitions": str(cores)}
    return told | dict(settings or {})


def connect_settings(settings: Mapping[str, str] | None = None) -> dict[str, str]:
    """What a session of a Spark Connect server is told."""
    ours = {key: value for key, value in EVERYWHERE.items() if key.startswith(_OF_A_SESSION)}
    return ours | dict(settings or {})
