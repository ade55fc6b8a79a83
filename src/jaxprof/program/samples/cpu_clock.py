"""Whether a thread runs or is blocked: its CPU clock, and what the system did with it.

Read from another thread, without a signal and without touching the program. Where a system has no such clock the answer
is None, and what follows from it is unknown.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from types import ModuleType
from typing import Final

_resource: ModuleType | None
try:
    import resource as _resource
except ImportError:  # Windows
    _resource = None
if _resource is not None and not hasattr(_resource, "RUSAGE_THREAD"):  # macOS
    _resource = None

RUNNING_SHARE: Final = 0.3
"""A thread whose CPU clock went on by more than this share of the time between two readings was running."""


class CpuClock:
    """CPU seconds of one thread of this process."""

    def __init__(self, thread: int) -> None:
        """`thread`: as `threading.get_ident` has it. It must live as long as this is used."""
        self._clock: int | None = None
        if hasattr(time, "pthread_getcpuclockid"):
            try:
                self._clock = time.pthread_getcpuclockid(thread)
            except OSError:
                self._clock = None

    def seconds(self) -> float | None:
        """So far; None where it cannot be known."""
        return None if self._clock is None else time.clock_gettime(self._clock)


class RunningTest:
    """Is the watched thread running at this moment? Two readings of its clock, some microseconds apart.

    The asking thread holds the interpreter's lock meanwhile. So a thread that was running Python seems blocked: that it
    held the lock is seen by the asker having had to wait for it.
    """

    def __init__(self, cpu: CpuClock, clock: Callable[[], float] = time.perf_counter) -> None:
        self._cpu, self._clock = cpu, clock
        self._cpu_began: float | None = None
        self._began = 0.0

    def begin(self) -> None:
        """The first reading."""
        self._cpu_began = self._cpu.seconds()
        self._began = self._clock()

    def end(self) -> bool | None:
        """Whether it was running between the two readings; None where that cannot be known."""
        ended, cpu_ended = self._clock(), self._cpu.seconds()
        if cpu_ended is None or self._cpu_began is None or ended <= self._began:
            return None
        return cpu_ended - self._cpu_began > RUNNING_SHARE * (ended - self._began)


def own_switches() -> int | None:
    """How often the calling thread has given up the CPU to wait for something; None where that is not told."""
    if _resource is None:
        return None
    return int(_resource.getrusage(_resource.RUSAGE_THREAD).ru_nvcsw)


def run_delay_seconds(task: int) -> float:
    """For how long a thread of this process was ready to run while others had the CPU; 0 where that is not told.

    `task`: its number in the system (`native_id`). Linux tells; no descriptor is kept open, the numbers are the
    program's. The interpreter's lock is let go of meanwhile.
    """
    try:
        with open(f"/proc/self/task/{task}/schedstat", "rb", buffering=0) as stream:
            return int((stream.read(96) or b"").split()[1]) * 1e-9
    except (OSError, ValueError, IndexError):
        return 0.0
