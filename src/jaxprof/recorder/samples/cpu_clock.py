"""Whether a thread runs or is blocked: from its CPU clock, from the system's counts, and from how long a sample had to
wait for the interpreter's lock.

Another thread reads these, without a signal and without touching the program. On a system that has no such clock, the
answer is None, and whatever follows from it is unknown.

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
from importlib.machinery import BuiltinImporter, PathFinder
from importlib.util import module_from_spec
from types import ModuleType

from jaxprof.base.values import frozen


def resource_module() -> ModuleType | None:
    """Return Python's own module `resource`, not a file of this name in the program's folder; None on Windows, and on
    macOS, where it counts for no thread."""
    extensions = os.path.join(os.path.dirname(os.__file__), "lib-dynload")
    spec = BuiltinImporter.find_spec("resource") or PathFinder.find_spec("resource", [extensions])
    if spec is None or spec.loader is None:
        return None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module if hasattr(module, "RUSAGE_THREAD") else None


_resource = resource_module()
_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
RUNNING_SHARE = 0.3
"""A thread was running if its CPU clock advanced by more than this share of the time between two readings."""
BRIEF_SECONDS = 0.0002
LATE_SECONDS_UNSURE = 0.001
"""A longer delay counts as a wait for the lock, if the system does not report whether the thread waited at all."""
FORCED_SHARE = 0.9
"""Share of the switch interval after which the holder had to hand over the lock wherever it was."""
_SWITCHES_OF_A_WAIT = 2
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
        """Return the CPU seconds so far, or None if unknown."""
        return None if self._clock is None else time.clock_gettime(self._clock)


class RunningTest:
    """Whether the watched thread is running at this moment: two readings of its clock, some microseconds apart.

    The sampler holds the interpreter's lock meanwhile, so a thread that was running Python appears blocked. That the
    thread held the lock shows in how long the sampler had to wait for it.
    """

    def __init__(self, cpu: CpuClock) -> None:
        self._cpu = cpu
        self._cpu_began: float | None = None
        self._began = 0.0

    def begin(self) -> None:
        self._cpu_began = self._cpu.seconds()
        self._began = time.perf_counter()

    def end(self) -> bool | None:
        """Return whether the thread ran between the two readings, or None if unknown."""
        ended, cpu_ended = time.perf_counter(), self._cpu.seconds()
        if cpu_ended is None or self._cpu_began is None or ended <= self._began:
            return None
        return cpu_ended - self._cpu_began > RUNNING_SHARE * (ended - self._began)


def own_switches() -> int | None:
    """Return how often the calling thread has given up the CPU to wait; None if the system does not say."""
    return _own_count("ru_nvcsw")


def own_faults() -> int | None:
    """Return how often the calling thread has waited for memory from the disk; None if the system does not say."""
    return _own_count("ru_majflt")


def _own_count(name: str) -> int | None:
    return None if _resource is None else int(getattr(_resource.getrusage(_resource.RUSAGE_THREAD), name))


def run_delay_seconds(task: int) -> float | None:
    """Return how long a thread of this process was ready to run while others had the CPU; None if the system does not
    report it (only Linux does). `task`: the system's id of the thread (`native_id`)."""
    return _read(f"/proc/self/task/{task}/schedstat", lambda text: int(text.split()[1]) * 1e-9)


def steal_seconds() -> float:
    """Return how long the host of a virtual machine had processors that this machine wanted, summed over them; 0 if the
    system does not report it (proc(5), /proc/stat: the eighth number of `cpu`, in ticks)."""
    return _read("/proc/stat", lambda text: int(text.split()[8]) / _TICKS) or 0.0


def pressure_seconds() -> float | None:
    """Return how long, so far, at least one thread of the machine was ready to run and had no processor; None if the
    system does not report it (Linux 4.20: /proc/pressure/cpu, the `total` of `some`, in microseconds)."""
    return _read("/proc/pressure/cpu", lambda text: int(text.rpartition(b"total=")[2]) * 1e-6)


def runnable_threads() -> float:
    """Return how many threads of the whole machine run or could run at this moment; 0 if the system does not report it
    (proc(5), /proc/loadavg: the fourth field)."""
    return _read("/proc/loadavg", lambda text: int(text.split()[3].partition(b"/")[0])) or 0


def _read(path: str, figure: Callable[[bytes], float]) -> float | None:
    """Return the figure in the first line of one of the system's files; None if there is no such file or figure.

    No descriptor is kept open, because descriptor numbers belong to the program. The interpreter's lock is released
    meanwhile.
    """
    try:
        with open(path, "rb", buffering=0) as stream:
            return figure((stream.read(200) or b"").partition(b"\n")[0])
    except (OSError, ValueError, IndexError):
        return None


@frozen
class Wait:
    """How a sample got the interpreter's lock."""

    held: bool | None
    """Whether another thread held the lock when the sample was due; None if the system does not report it. The share of
    such samples is the share of the time in which the lock was held."""
    forced: bool = False
    """Whether that thread had to hand the lock over, wherever it was, before it reached a call that releases it."""
    brief: bool = False
    """Whether the wait was no longer than one operation of JAX."""


def judge_wait(late_seconds: float, switches: int | None) -> Wait:
    """Return what the lateness of a sample shows.

    `switches`: how often the sampler gave up the CPU from before its sleep until now; None if the system does not
    report it.
    """
    if switches is None:
        held = True if late_seconds > LATE_SECONDS_UNSURE else None
    else:
        held = switches >= _SWITCHES_OF_A_WAIT
    return Wait(
        held, bool(held) and late_seconds >= FORCED_SHARE * sys.getswitchinterval(), late_seconds < BRIEF_SECONDS
    )
