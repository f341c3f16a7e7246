"""What befalls a cluster, one thing after the other.

Nodes and etcd are killed, stopped and frozen; ways between nodes are cut and clogged; a disk is full, or
another one. Each misfortune ends before the next begins, but what it has left behind need not be mended then.
"""

import contextlib
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import psutil

from tests.chaos.roads import Roads, Way
from tests.integration.running_cluster import RunningCluster
from tests.storm.record import Record

NODES = ("node-1", "node-2", "node-3")
ETCD = "etcd"
SMALL = "node-3"
"""Its disk is small, where that can be had."""
_CALM_S = (0.5, 1.0, 2.0, 4.0)
_STAND_STILL_S = (0.3, 1.5, 4.0)
_APART_S = (1.0, 3.0, 8.0, 14.0)
"""Shorter than a session, longer, and longer than a follower may lag."""
_FULL_S = (1.0, 4.0, 10.0)
_BACK_S = 60
"""So long a process that died may take until another stands in its place."""
_WHOLE_S = 60
_FILLER = "filler"


class Weather:
    """Misfortunes drawn from a seed."""

    def __init__(
        self,
        running: RunningCluster,
        roads: Roads,
        record: Record,
        chance: Random,
        *,
        folder: Path,
        has_small_disk: bool,
        is_whole: Callable[[], bool],
        only: str = "",
    ) -> None:
        self._running = running
        self._roads = roads
        self._record = record
        self._chance = chance
        self._folder = folder
        self._is_whole = is_whole
        kinds: dict[Callable[[], None], int] = {
            self._kill: 40,
            self._kill_two: 7,
            self._stop: 10,
            self._stand_still: 12,
            self._kill_etcd: 6,
            self._stop_etcd: 6,
            self._cut_one_way: 8,
            self._cut_both_ways: 6,
            self._set_apart: 6,
            self._clog: 6,
            self._roll: 2,
            self._replace_disk: 4,
            self._fill_disk: 5 if has_small_disk else 0,
        }
        self._kinds = {kind: weight for kind, weight in kinds.items() if only in kind.__name__}

    def strike(self) -> None:
        """A while of calm, then something that the cluster has to go on from."""
        time.sleep(self._chance.choice(_CALM_S))
        (kind,) = self._chance.choices(list(self._kinds), list(self._kinds.values()))
        kind()

    # Processes.

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
        self._record.befall("SIGSTOP")
        self._freeze(self._chance.choice(NODES))

    def _kill_etcd(self) -> None:
        self._end(ETCD, signal.SIGKILL, "kill -9 of etcd")

    def _stop_etcd(self) -> None:
        self._record.befall("SIGSTOP of etcd")
        self._freeze(ETCD)

    def _roll(self) -> None:
        """All nodes are started anew, one after the other, as an upgrade does."""
        self._record.befall("rolling restart")
        for node in self._chance.sample(NODES, len(NODES)):
            self._wait_until_whole()
            self._send(node, signal.SIGTERM)
            self._wait_until_back(node)

    # The network.

    def _cut_one_way(self) -> None:
        source, target = self._chance.sample(NODES, 2)
        self._part("a way is cut", (source, target))

    def _cut_both_ways(self) -> None:
        one, other = self._chance.sample(NODES, 2)
        self._part("two nodes are cut off", (one, other), (other, one))

    def _set_apart(self) -> None:
        """One node reaches etcd and clients, and no other node."""
        one = self._chance.choice(NODES)
        others = [node for node in NODES if node != one]
        ways = [(one, other) for other in others] + [(other, one) for other in others]
        self._part("a node is cut off from all others", *ways)

    def _clog(self) -> None:
        source, target = self._chance.sample(NODES, 2)
        self._record.befall("a way is clogged")
        self._roads.clog((source, target))
        time.sleep(self._chance.choice(_APART_S))
        self._roads.heal()

    def _part(self, what: str, *ways: Way) -> None:
        self._record.befall(what)
        self._roads.cut(*ways)
        time.sleep(self._chance.choice(_APART_S))
        self._roads.heal()

    # Disks.

    def _replace_disk(self) -> None:
        """A node loses all that it holds. Only when all others hold it: more than that is not promised."""
        node = self._chance.choice(NODES)
        if not self._wait_until_whole():
            return
        self._record.befall("a folder is emptied")
        self._send(node, signal.SIGSTOP)  # so that it writes nothing meanwhile
        for path in (self._folder / node).iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
        self._send(node, signal.SIGKILL)
        self._wait_until_back(node)

    def _fill_disk(self) -> None:
        self._record.befall("a disk is full")
        filler = self._folder / SMALL / _FILLER
        with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(1 << 20))
        time.sleep(self._chance.choice(_FULL_S))
        filler.unlink(missing_ok=True)

    # Helpers.

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

    def _wait_until_whole(self) -> bool:
        deadline_s = time.monotonic() + _WHOLE_S
        while not (is_whole := self._is_whole()) and time.monotonic() < deadline_s:
            time.sleep(0.2)
        return is_whole

    def _wait_until_back(self, name: str) -> None:
        """Until there is a process again; how soon it serves is the clients' matter."""
        deadline_s = time.monotonic() + _BACK_S
        while time.monotonic() < deadline_s:
            with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied, AssertionError):
                if self._running.child(name).status() != psutil.STATUS_ZOMBIE:
                    return
            time.sleep(0.1)
        raise AssertionError(f"{name} was not started again within {_BACK_S} s")
