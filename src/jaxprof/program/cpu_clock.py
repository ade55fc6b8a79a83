"""Whether a thread runs or is blocked: its CPU clock, and how long the scheduler kept ours from running.

Read from another thread, without a signal and without touching the program. Where a system has no such clock the answer
is None, and what follows from it is unknown.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Final

RUNNING_SHARE: Final = 0.3
"""A thread whose CPU clock went on by more than this share of the time between two readings was running."""
_HIGH_DESCRIPTOR: Final = 700
"""Descriptors below are left to the program, which may count on the numbers that it gets."""


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


class RunDelay:
    """Seconds that the creating thread was ready to run and another had the CPU (Linux: the second field of schedstat).

    Tells a late awakening that the scheduler caused from one that the interpreter's lock caused.
    """

    def __init__(self) -> None:
        self._descriptor = _open_high("/proc/thread-self/schedstat")

    def seconds(self) -> float | None:
        """So far; None where it cannot be known."""
        if self._descriptor is None:
            return None
        try:
            fields = os.pread(self._descriptor, 96, 0).split()
            return int(fields[1]) * 1e-9
        except (OSError, ValueError, IndexError):  # the program closed it, or the number is another file now
            self._descriptor = None
            return None

    def close(self) -> None:
        """Nothing is read any more."""
        if self._descriptor is not None and self.seconds() is not None:
            os.close(self._descriptor)
        self._descriptor = None


def _open_high(path: str) -> int | None:
    try:
        import fcntl

        low = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, _HIGH_DESCRIPTOR)
        finally:
            os.close(low)
    except (ImportError, OSError):
        return None
