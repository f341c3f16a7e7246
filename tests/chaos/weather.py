"""What befalls a cluster, one thing after the other: nodes and etcd are killed, stopped and frozen."""

import contextlib
import signal
import time
from collections.abc import Callable
from random import Random

import psutil

from tests.integration.running_cluster import RunningCluster
from tests.storm.record import Record

NODES = ("node-1", "node-2", "node-3")
ETCD = "etcd"
_CALM_S = (0.5, 1.0, 2.0, 4.0)
_STAND_STILL_S = (0.3, 1.5, 4.0)
_BACK_S = 60
"""So long a process that died may take until another stands in its place."""


class Weather:
    """Misfortunes drawn from a seed."""

    def __init__(self, running: RunningCluster, record: Record, chance: Random) -> None:
        self._running = running
        self._record = record
        self._chance = chance

    def strike(self) -> None:
        """A while of calm, then something that the cluster has to go on from."""
        time.sleep(self._chance.choice(_CALM_S))
        kinds: dict[Callable[[], None], int] = {
            self._kill: 50,
            self._kill_two: 8,
            self._stop: 12,
            self._stand_still: 14,
            self._kill_etcd: 8,
            self._stop_etcd: 8,
        }
        (kind,) = self._chance.choices(list(kinds), list(kinds.values()))
        kind()

    def _kill(self) -> None:
        self._end(self._chance.choice(NODES), signal.SIGKILL, "kill -9")

    def _kill_two(self) -> None:
        first, second = self._chance.sample(NODES, 2)
        self._record.befall("kill -9 of two nodes at once")
        for node in (first, second):
            self._send(node, signal.SIGKILL)
        for node in (first, second):
            self._wait_until_back(node)

    def _stop(self) -> None:
        self._end(self._chance.choice(NODES), signal.SIGTERM, "clean stop")

    def _stand_still(self) -> None:
        node = self._chance.choice(NODES)
        self._record.befall("SIGSTOP")
        self._freeze(node)

    def _kill_etcd(self) -> None:
        self._end(ETCD, signal.SIGKILL, "kill -9 of etcd")

    def _stop_etcd(self) -> None:
        self._record.befall("SIGSTOP of etcd")
        self._freeze(ETCD)

    def _end(self, name: str, number: signal.Signals, what: str) -> None:
        self._record.befall(what)
        self._send(name, number)
        self._wait_until_back(name)

    def _freeze(self, name: str) -> None:
        self._send(name, signal.SIGSTOP)
        time.sleep(self._chance.choice(_STAND_STILL_S))
        self._send(name, signal.SIGCONT)

    def _send(self, name: str, number: signal.Signals) -> None:
        with contextlib.suppress(psutil.NoSuchProcess, AssertionError):  # it is being started again
            self._running.child(name).send_signal(number)

    def _wait_until_back(self, name: str) -> None:
        """Until there is a process again; how soon it serves is the clients' matter."""
        deadline_s = time.monotonic() + _BACK_S
        while time.monotonic() < deadline_s:
            with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied, AssertionError):
                if self._running.child(name).status() != psutil.STATUS_ZOMBIE:
                    return
            time.sleep(0.1)
        raise AssertionError(f"{name} was not started again within {_BACK_S} s")
