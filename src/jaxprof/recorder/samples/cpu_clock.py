"""Whether a thread runs or is blocked: from its CPU clock, from what the system counts for it, and from how long a
sample had to wait for the interpreter's lock.

Another thread reads these, without a signal and without touching the program. If a system has no such clock the answer
is None, and what follows from it is unknown.

A thread that asks for the lock gets it either when the holder releases it by itself (a call into XLA, a sleep) or after
the switch interval, wherever the holder is. In the first case the stack shows the call that released the lock, and not
the Python before it that was running when the sampler asked. Without this correction, samples find a program always at
the same few calls.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from types import ModuleType
from typing import Final

from jaxprof.light_dataclass import dataclass

_resource: ModuleType | None
try:
    import resource as _resource
except ImportError:  # Windows
    _resource = None
if _resource is not None and not hasattr(_resource, "RUSAGE_THREAD"):  # macOS
    _resource = None
_TICKS: Final = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
RUNNING_SHARE: Final = 0.3
"""A thread was running if its CPU clock advanced by more than this share of the time between two readings."""
BRIEF_SECONDS: Final = 0.0002
LATE_SECONDS_UNSURE: Final = 0.001
"""A longer wait was for the lock, if the system does not report whether we waited at all."""
FORCED_SHARE: Final = 0.9
"""Share of the switch interval: after so long a wait, the holder had to hand over the lock wherever it was."""
_SWITCHES_OF_A_WAIT: Final = 2
"""How often a thread gives up the CPU if it sleeps and then waits for the lock; without the wait, once."""


class CpuClock:
    """CPU seconds of one thread of this process."""

    def __init__(self, thread: int) -> None:
        """`thread`: its `threading.get_ident`. The thread must live as long as this object is used."""
        self._clock: int | None = None
        if hasattr(time, "pthread_getcpuclockid"):
            try:
                self._clock = time.pthread_getcpuclockid(thread)
            except OSError:
                self._clock = None

    def seconds(self) -> float | None:
        """The seconds so far; None if they cannot be known."""
        return None if self._clock is None else time.clock_gettime(self._clock)


class RunningTest:
    """Whether the watched thread is running at this moment: two readings of its clock, some microseconds apart.

    The asking thread holds the interpreter's lock meanwhile, so a thread that was running Python appears blocked. That
    it held the lock shows in how long the asker had to wait for it.
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
    """How often the calling thread has given up the CPU to wait for something; None if the system does not report
    it."""
    if _resource is None:
        return None
    return int(_resource.getrusage(_resource.RUSAGE_THREAD).ru_nvcsw)


def own_faults() -> int | None:
    """How often the calling thread has waited for its memory to come from the disk; None if the system does not report
    it."""
    if _resource is None:
        return None
    return int(_resource.getrusage(_resource.RUSAGE_THREAD).ru_majflt)


def run_delay_seconds(task: int) -> float:
    """As `run_delay_or_none`; 0 if the system does not report it."""
    return run_delay_or_none(task) or 0.0


def run_delay_or_none(task: int) -> float | None:
    """How long a thread of this process was ready to run while others had the CPU; None if the system does not report
    it.

    `task`: its number in the system (`native_id`). Linux reports this. No descriptor is kept open, because descriptor
    numbers belong to the program. The interpreter's lock is released meanwhile.
    """
    try:
        with open(f"/proc/self/task/{task}/schedstat", "rb", buffering=0) as stream:
            return int((stream.read(96) or b"").split()[1]) * 1e-9
    except (OSError, ValueError, IndexError):
        return None


def steal_seconds() -> float:
    """How long the host of a virtual machine had processors that this wanted, of all of them together; 0 if the system
    does not report it (proc(5), /proc/stat: the eighth number of `cpu`, in ticks)."""
    try:
        with open("/proc/stat", "rb", buffering=0) as stream:
            return int((stream.read(200) or b"").split(b"\n", 1)[0].split()[8]) / _TICKS
    except (OSError, ValueError, IndexError):
        return 0.0


def pressure_seconds() -> float | None:
    """For how long at least one thread of the machine was ready to run and had no processor, so far; None if the system
    does not report it (Linux 4.20: /proc/pressure/cpu, the `total` of `some`, in microseconds)."""
    try:
        with open("/proc/pressure/cpu", "rb", buffering=0) as stream:
            return int((stream.read(200) or b"").split(b"\n", 1)[0].rpartition(b"total=")[2]) * 1e-6
    except (OSError, ValueError):
        return None


def runnable_threads() -> int:
    """How many threads of the whole machine run or could run at this moment; 0 if the system does not report it
    (proc(5), /proc/loadavg: the fourth field)."""
    try:
        with open("/proc/loadavg", "rb", buffering=0) as stream:
            return int((stream.read(100) or b"").split()[3].partition(b"/")[0])
    except (OSError, ValueError, IndexError):
        return 0


@dataclass(frozen=True, slots=True)
class Wait:
    """How a sample got the lock."""

    held: bool | None
    """Another thread held it when the sample was due: of all samples, the share of these is the share of the time in
    which the lock was held. None if the system does not report it."""
    forced: bool = False
    """That thread had to hand it over, wherever it was, and did not reach a call that releases it."""
    brief: bool = False
    """The wait was no longer than one operation of JAX takes."""


def judge_wait(late_seconds: float, switches: int | None) -> Wait:
    """What the lateness of a sample tells.

    `switches`: how often our thread gave up the CPU from before its sleep until now; None if the system does not report
    it.
    """
    if switches is None:
        held = True if late_seconds > LATE_SECONDS_UNSURE else None
    else:
        held = switches >= _SWITCHES_OF_A_WAIT
    return Wait(
        held, bool(held) and late_seconds >= FORCED_SHARE * sys.getswitchinterval(), late_seconds < BRIEF_SECONDS
    )
