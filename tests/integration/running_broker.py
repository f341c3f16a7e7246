"""A real `goqueue` process on free ports, started, stopped and killed by tests."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

BROKER = "goqueue.node.main"
_STOP_TIMEOUT_S = 30
_LISTENING = re.compile(r"(\w+) +listening on 127\.0\.0\.1:(\d+)")


def goqueue(
    *flags: str, environment: dict[str, str] | None = None, folder: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the command to its end: for the cases in which it ends by itself."""
    return subprocess.run(
        _command(BROKER, *flags),
        env=_environment(environment or {}),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=_STOP_TIMEOUT_S,
        check=False,
    )


class RunningBroker:
    """One data folder and the process that serves it. A restart comes back on the same ports."""

    def __init__(self, folder: Path, *flags: str, program: str = BROKER) -> None:
        self.folder = folder
        self._program = program
        self.printed = ""
        """What the process has told on standard output since it was last started."""
        self._flags = flags
        self._ports = {"kafka": 0, "http": 0}
        self._process: subprocess.Popen[str] | None = None

    @property
    def kafka(self) -> str:
        return f"127.0.0.1:{self._ports['kafka']}"

    @property
    def http(self) -> str:
        return f"http://127.0.0.1:{self._ports['http']}"

    @property
    def process(self) -> subprocess.Popen[str]:
        assert self._process is not None, "the broker has not been started"
        return self._process

    @property
    def log(self) -> str:
        return self.log_path.read_text(encoding="utf-8")

    @property
    def log_path(self) -> Path:
        return self.folder.with_suffix(".stderr")

    def start(self) -> "RunningBroker":
        """Start the process and wait until it says that it is ready."""
        self.launch()
        assert self.process.stdout is not None
        self.printed = ""
        for line in self.process.stdout:
            self.printed += line
            if match := _LISTENING.match(line):
                self._ports[match[1]] = int(match[2])
            if line == "ready\n":
                return self
        self.process.wait(_STOP_TIMEOUT_S)
        raise AssertionError(f"the broker did not start:\n{self.log}")

    def launch(self) -> None:
        """Start the process, and do not wait for it."""
        listeners = [f"--listeners-{door}=127.0.0.1:{port}" for door, port in self._ports.items()]
        with self.log_path.open("a", encoding="utf-8") as log:
            self._process = subprocess.Popen(
                _command(self._program, f"--broker-datadir={self.folder}", *listeners, *self._flags),
                env=_environment({}),
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    def wait_until_logged(self, event: str) -> None:
        """Wait for a log line of the process."""
        deadline = time.monotonic() + _STOP_TIMEOUT_S
        while f" {event}" not in self.log:
            assert time.monotonic() < deadline, f"{event} was not logged:\n{self.log}"
            time.sleep(0.01)

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def exit_code(self) -> int:
        """Wait for the process to end by itself."""
        try:
            return self.process.wait(_STOP_TIMEOUT_S)
        finally:
            self._close()

    def stop(self) -> int:
        self.send(signal.SIGTERM)
        return self.exit_code()

    def kill(self) -> None:
        """As `kill -9` does: no warning, no clean-up."""
        if self._process is not None:
            self.process.kill()
            self.process.wait(_STOP_TIMEOUT_S)
            self._close()

    def _close(self) -> None:
        if self.process.poll() is not None and self.process.stdout is not None:
            self.process.stdout.close()


def _command(program: str, *flags: str) -> list[str]:
    return [sys.executable, "-m", program, *flags]


def _environment(extra: dict[str, str]) -> dict[str, str]:
    """The tests' own environment without settings of a broker that its user may run."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("GOQUEUE_")}
    return {**own, **extra}
