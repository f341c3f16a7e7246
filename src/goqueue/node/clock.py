"""The clock of the machine."""

import time


class SystemClock:
    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def wall_us(self) -> int:
        return time.time_ns() // 1_000

    def monotonic_ns(self) -> int:
        return time.monotonic_ns()

    def cpu_ns(self) -> int:
        return time.thread_time_ns()
