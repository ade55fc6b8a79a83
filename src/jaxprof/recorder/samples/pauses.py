"""Whether the whole process was paused, from what its own sampler finds when it goes on.

A sampler that is due and does not run has one of four reasons:
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

from jaxprof.base.values import frozen
from jaxprof.recorder.samples.cpu_clock import (
    own_faults,
    pressure_seconds,
    run_delay_seconds,
    runnable_threads,
    steal_seconds,
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
        pressure = self._pressure
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
            running_seconds=self._processors * self._slept,
            least_seconds=min(LEAST_SECONDS_BUSY, LEAST_SECONDS * max(busy, self._busy)),
        )
        waited = 0.0 if pressure is None or self._pressure is None else self._pressure - pressure
        return paused, GIVEN_AWAY if waited > _PRESSED * paused else PAUSED


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
    running = running_seconds + _BUSY * late_seconds + (os.cpu_count() or 1) * delay_seconds
    if asked_every > late_seconds / 20 or process_seconds > running:
        return 0.0
    unexplained = paused - main_delay_seconds - steal_seconds - switches * asked_every
    return paused if unexplained >= max(least_seconds, (1 - _OTHER_REASONS) * paused) else 0.0
