"""A broker's process, seen from outside."""

import re
import time

import httpx
import psutil

from tests.integration.running_broker import RunningBroker
from tests.soak.samples import Sample

_LAG = re.compile(r'^goqueue_node_loop_lag_seconds\{of="p99"\} (\S+)$', re.MULTILINE)
_MIB = 1024 * 1024


class Process:
    def __init__(self, broker: RunningBroker) -> None:
        self._process = psutil.Process(broker.process.pid)
        self._client = httpx.Client(base_url=broker.http, timeout=30)
        self._begun_s = self._last_s = time.monotonic()
        self._cpu_s = self._spent_s()

    def sample(self) -> Sample:
        found = _LAG.search(self._client.get("/metrics").text)
        assert found is not None, "the metrics do not tell of the loop's lag"
        now_s, cpu_s = time.monotonic(), self._spent_s()
        cores = (cpu_s - self._cpu_s) / (now_s - self._last_s)
        self._last_s, self._cpu_s = now_s, cpu_s
        return Sample(
            at_s=now_s - self._begun_s,
            rss_mib=self._process.memory_info().rss / _MIB,
            descriptors=self._process.num_fds(),
            threads=self._process.num_threads(),
            loop_lag_ms=float(found[1]) * 1_000,
            cpu_cores=cores,
        )

    def _spent_s(self) -> float:
        times = self._process.cpu_times()
        return float(times.user + times.system)
