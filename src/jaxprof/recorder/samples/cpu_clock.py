"""Whether a thread runs or is blocked: from its CPU clock, from the system's counts, and from how long a sample had to
wait for the interpreter's lock.

Another thread reads these, without a signal and without touching the program. On a system that has no such clock, the
answer is None, and whatever follows from it is unknown.

A thread that asks for the lock gets it either when the holder releases it by itself (a call into XLA, a sleep) or after
the switch interval, wherever the holder is. In the first case the stack shows the call that released the lock, and not
the Python before it that was running when the sampler asked. Without this correction, samples find a program always at
the same few calls.

The same counts show whether the whole process was paused (`PauseTest`). A sampler that is due and does not run has one
of four reasons:
- Others had the processor: the system counts that.
- Another thread kept the interpreter's lock: the sampler then asked for it every few milliseconds, which the system
  counts as well.
- Its memory had to come from the disk: the system counts a page fault.
- The process was paused: by a signal, with its container, or by a debugger. Only this leaves nothing in these counts,
  and uses no processor time.

Several reasons may share one delay: on a full machine, each try for the lock is followed by a wait for a processor. So
the time of each is subtracted, and the remainder must be nearly all of the delay. The main thread's wait for a
processor is subtracted as well, because a thread that it keeps from running has no count of its own. In a virtual
machine the host may take a processor away (steal time): a thread then neither runs nor waits, as in a pause, but the
system counts it.

A second witness must agree: while a process is paused on a quiet machine, no thread waits for a processor. If others
waited for much of that time (the system's pressure), the processor may have been given to them; that time belongs to no
line either, but is no pause. On a machine with more threads than processors, timers come late, too, so the remainder
may not be a pause: the more threads there are for each processor, the longer a pause must be to be reported. On a
system that does not count these (macOS), no pause is reported.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from importlib.machinery import BuiltinImporter, PathFinder
from importlib.util import module_from_spec
from types import ModuleType
from typing import TypeVar

from jaxprof.base.values import frozen

_Number = TypeVar("_Number", int, float)


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
"""A shorter delay is a brief wait: see `Seen.while_locked`."""
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


def own_preemptions() -> int | None:
    """Return how often the calling thread has lost the CPU to others; None if the system does not say."""
    return _own_count("ru_nivcsw")


def own_faults() -> int | None:
    """Return how often the calling thread has waited for memory from the disk; None if the system does not say."""
    return _own_count("ru_majflt")


def _own_count(name: str) -> int | None:
    return None if _resource is None else int(getattr(_resource.getrusage(_resource.RUSAGE_THREAD), name))


def run_delay_seconds(task: int) -> float | None:
    """Return how long a thread of this process was ready to run while others had the CPU; None if the system does not
    report it (only Linux does). `task`: the system's id of the thread (`native_id`)."""
    return read_figure(f"/proc/self/task/{task}/schedstat", lambda text: int(text.split()[1]) * 1e-9)


def cpu_seconds(task: int) -> float | None:
    """Return how long a thread of this process has run; None if the system does not report it (only Linux does)."""
    return read_figure(f"/proc/self/task/{task}/schedstat", lambda text: int(text.split()[0]) * 1e-9)


def steal_seconds() -> float:
    """Return how long the host of a virtual machine had processors that this machine wanted, summed over them; 0 if the
    system does not report it (proc(5), /proc/stat: the eighth number of `cpu`, in ticks)."""
    return read_figure("/proc/stat", lambda text: int(text.split()[8]) / _TICKS) or 0.0


def pressure_seconds() -> float | None:
    """Return how long, so far, at least one thread of the machine was ready to run and had no processor; None if the
    system does not report it (Linux 4.20: /proc/pressure/cpu, the `total` of `some`, in microseconds)."""
    return read_figure("/proc/pressure/cpu", lambda text: int(text.rpartition(b"total=")[2]) * 1e-6)


def runnable_threads() -> float:
    """Return how many threads of the whole machine run or could run at this moment; 0 if the system does not report it
    (proc(5), /proc/loadavg: the fourth field)."""
    return read_figure("/proc/loadavg", lambda text: int(text.split()[3].partition(b"/")[0])) or 0


def read_figure(path: str, figure: Callable[[bytes], _Number]) -> _Number | None:
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


LEAST_SECONDS = 0.2
"""Shortest pause reported where each processor has one thread to run: a shorter one looks like other delays. With three
threads for each processor, the shortest is three times this."""
LEAST_SECONDS_BUSY = 0.75
"""Upper limit for the shortest pause reported, however many threads there are."""
_OTHER_REASONS = 0.25
"""Share of a pause that may be explained by waits for the interpreter's lock, by the main thread's waits for a
processor, and by the virtual machine's waits for its host."""
_PRESSED = 0.25
"""Share of a pause for which threads may have waited for a processor; beyond it, others had the processor."""
PAUSED, GIVEN_AWAY = "standstill", "pressure"
"""Why a late sampler did not run, of `STOP_WITNESSES`: the process was paused, or others had its processor."""
_BUSY = 0.1
"""Share of the delay for which the process may have used a processor, beyond its own use before the pause."""


@frozen
class _Counts:
    """What the system has counted of the sampler's thread so far, and the main thread's `delay`."""

    faults: int
    delay: float
    main_delay: float


class PauseTest:
    """Judges late samples: call `mark` a few times a second, `seconds` for a late sample, on the sampler's thread."""

    def __init__(self, task: int, main_task: int) -> None:
        """Take the system's ids of the sampler's thread and of the main thread."""
        self._task, self._main_task = task, main_task
        self._processors = os.cpu_count() or 1
        self._before: _Counts | None = None
        self._steal = 0.0
        self._pressure: float | None = None
        self._busy = 1.0
        self._slept = 0.0
        self._ran = 0.0
        self.mark()
        self.mark_host()

    def mark(self) -> None:
        """Remember the counts at a moment at which the process runs."""
        faults, delay = own_faults(), run_delay_seconds(self._task)
        self._before = None
        if faults is not None and delay is not None:
            self._before = _Counts(faults, delay, run_delay_seconds(self._main_task) or 0.0)
        self._pressure = pressure_seconds()

    def mark_host(self) -> None:
        """Remember the counts of the whole machine, which cost more on a large one: once a second is enough."""
        self._steal = steal_seconds()
        self._busy = max(1.0, runnable_threads() / self._processors)

    def sleeping(self, seconds: float) -> None:
        """Note that the sampler now sleeps for this long. A process that runs after that has not been paused."""
        self._slept, self._ran = seconds, time.process_time()

    def seconds(self, late_seconds: float, switches: int | None) -> tuple[float, str]:
        """Return for how much of a sample's delay the process did not run, and whether it `PAUSED` or the
        processor was `GIVEN_AWAY`; 0 if the process ran, or if that is unknown. An estimate, because a pause may begin
        at any moment of the sleep before. `switches`: how often our thread gave up the processor since the last sample;
        None if the system does not report it."""
        if late_seconds < LEAST_SECONDS or switches is None:
            return 0.0, PAUSED
        ran, before, steal, busy = time.process_time() - self._ran, self._before, self._steal, self._busy
        running, pressure = self._processors * self._slept, self._pressure
        if before is not None:
            # One file before all others: each gives the lock away, and such a delay may be that of getting it back.
            delay = (run_delay_seconds(self._task) or 0.0) - before.delay
            if ran > _most_running(late_seconds, running, delay):
                return 0.0, PAUSED
        self.mark()
        self.mark_host()
        after = self._before
        if before is None or after is None or after.faults != before.faults:
            return 0.0, PAUSED
        paused = pause_seconds(
            late_seconds,
            switches=switches,
            delay_seconds=after.delay - before.delay,
            main_delay_seconds=after.main_delay - before.main_delay,
            steal_seconds=self._steal - steal,
            process_seconds=ran,
            running_seconds=running,
            least_seconds=min(LEAST_SECONDS_BUSY, LEAST_SECONDS * max(busy, self._busy)),
        )
        waited = 0.0 if pressure is None or self._pressure is None else self._pressure - pressure
        return paused, GIVEN_AWAY if waited > _PRESSED * paused else PAUSED


def _most_running(late_seconds: float, running_seconds: float, delay_seconds: float) -> float:
    """Return the most processor time that a process uses that is paused for nearly all of such a delay."""
    return running_seconds + _BUSY * late_seconds + (os.cpu_count() or 1) * delay_seconds


def pause_seconds(
    late_seconds: float,
    *,
    switches: int,
    delay_seconds: float,
    main_delay_seconds: float,
    steal_seconds: float,
    process_seconds: float,
    running_seconds: float,
    least_seconds: float = LEAST_SECONDS,
) -> float:
    """Return the seconds of a delay that only a pause of the process explains; 0 if something else explains them.

    `switches`: how often the thread gave up the processor since the last sample: a few times for its own work, and once
    for each unsuccessful try for the interpreter's lock. Counted from a moment shortly before that sample:
    `delay_seconds`: how long others had the processor while the thread was ready; `main_delay_seconds`: the same for
    the main thread; `steal_seconds`: how long the host had processors that the virtual machine wanted.
    `process_seconds`: processor time of all threads of the process since its sampler began to sleep; `running_seconds`:
    the part of it that they may have used before the pause. `least_seconds`: what must remain unexplained.
    """
    asked_every = sys.getswitchinterval()
    paused = late_seconds - delay_seconds
    running = _most_running(late_seconds, running_seconds, delay_seconds)
    if asked_every > late_seconds / 20 or process_seconds > running:
        return 0.0
    unexplained = paused - main_delay_seconds - steal_seconds - switches * asked_every
    return paused if unexplained >= max(least_seconds, (1 - _OTHER_REASONS) * paused) else 0.0
