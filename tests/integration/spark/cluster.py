"""A standalone Spark cluster and a Spark Connect server on loopback, as processes that end with a test."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psutil
import pyspark

from goqueue.spark.session_java import java_home

LOOPBACK = "127.0.0.1"
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_SPARK_HOME = Path(pyspark.__file__).parent
_TIMEOUT_S = 120


def environment() -> dict[str, str]:
    """What every process of Spark needs to stay on this machine and to run this Python."""
    return {
        **os.environ,
        "JAVA_HOME": str(java_home()),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": LOOPBACK,
        "SPARK_LOCAL_HOSTNAME": LOOPBACK,
        # A Connect server counts as one, and needs so much.
        "SPARK_DAEMON_MEMORY": "512m",
        "SPARK_DAEMON_JAVA_OPTS": QUICK_JAVA,
    }


@contextmanager
def standalone(folder: Path, *, workers: int) -> Iterator[str]:
    """A master and its workers, each with one core; gives the master's address."""
    master_class = "org.apache.spark.deploy.master.Master"
    worker_class = "org.apache.spark.deploy.worker.Worker"
    port = free_port()
    address = f"spark://{LOOPBACK}:{port}"
    with ExitStack() as processes:
        flags = ["--host", LOOPBACK, "--port", str(port), "--webui-port", "0"]
        log = folder / "master.log"
        master = processes.enter_context(started(log, "spark-class", master_class, *flags))
        wait_for_port(port, master, log)
        for number in range(workers):
            flags = ["--host", LOOPBACK, "--webui-port", "0", "--cores", "1", "--memory", "1g"]
            flags += ["--work-dir", str(folder / f"work-{number}"), address]
            log = folder / f"worker-{number}.log"
            processes.enter_context(started(log, "spark-class", worker_class, *flags))
        yield address


@contextmanager
def connect_server(folder: Path, *, master: str, settings: Mapping[str, str]) -> Iterator[str]:
    """A Spark Connect server that runs its work on a master; gives its address."""
    port = free_port()
    settings = {
        **settings,
        "spark.connect.grpc.binding.address": LOOPBACK,
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.host": LOOPBACK,
        "spark.driver.bindAddress": LOOPBACK,
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": QUICK_JAVA,
        "spark.ui.enabled": "false",
        "spark.executor.memory": "512m",
    }
    flags = [flag for setting in settings.items() for flag in ("--conf", "=".join(setting))]
    server_class = "org.apache.spark.sql.connect.service.SparkConnectServer"
    command = ("spark-submit", "--class", server_class, "--master", master, *flags, "spark-internal")
    log = folder / "connect.log"
    with started(log, *command) as server:
        wait_for_port(port, server, log)
        yield f"sc://{LOOPBACK}:{port}"


@contextmanager
def started(log: Path, script: str, *flags: str) -> Iterator[subprocess.Popen[bytes]]:
    """One of Spark's scripts, ended with all that it has started."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            [_SPARK_HOME / "bin" / script, *flags],
            env=environment(),
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        yield process
    finally:
        ended = _tree(process.pid)
        for each in ended:
            with suppress(psutil.NoSuchProcess):
                each.terminate()
        for each in psutil.wait_procs(ended, timeout=10)[1]:
            with suppress(psutil.NoSuchProcess):
                each.kill()
        process.wait(_TIMEOUT_S)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


def wait_for_port(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until a process listens."""
    give_up_s = time.monotonic() + _TIMEOUT_S
    while True:
        with socket.socket() as probe:
            if probe.connect_ex((LOOPBACK, port)) == 0:
                return
        is_hopeless = process.poll() is not None or time.monotonic() > give_up_s
        assert not is_hopeless, log.read_text(encoding="utf-8")[-4_000:]
        time.sleep(0.05)


def _tree(pid: int) -> list[psutil.Process]:
    try:
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []
