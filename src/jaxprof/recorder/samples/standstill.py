"""Whether the whole process stood still, from what its own sampler finds when it goes on.

A sampler that is due and does not run has one of four reasons. The processor was given to others: the system counts
that. Another thread kept the interpreter's lock: then the sampler asked for it every few milliseconds, which the system
counts as well. Its memory had to come from the disk: a page fault. Or the process was stopped: by a signal, with its
container, by a debugger. Only the last leaves nothing behind in these counts, and no time of the processor either.
Several of them may share one lateness: on a full machine, each try for the lock is followed by a wait for a processor.
So each takes its part off, and what is left over must be nearly all of it. The main thread's wait for a processor is
taken off as well: whoever it keeps from running waits without a count of its own. In a virtual machine the host may
take a processor away (steal time): then a thread neither runs nor waits, as in a stop, but the system counts it.
A second witness has to agree: while a process is stopped on a quiet machine, nobody waits for a processor. Where others
did for much of that time (the system's pressure), the processor may have been given to them: that time is no line's
either, and no stop. What is left of a lateness on a machine with more to run than processors can still be its own:
timers of such a machine come late, too. So the more threads there are to run for each processor, the longer a
standstill has to be.
Where the system does not count (macOS), nothing is called a standstill.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Final

from jaxprof.light_dataclass import dataclass
from jaxprof.recorder.samples.cpu_clock import (
    own_faults,
    pressure_seconds,
    run_delay_or_none,
    run_delay_seconds,
    runnable_threads,
    steal_seconds,
)

LEAST_SECONDS: Final = 0.2
"""A shorter one is not told from other delays, where each processor has one thread to run. Of three threads a
processor, none is that is shorter than three times this."""
LEAST_SECONDS_BUSY: Final = 0.75
"""However many they are."""
_OTHER_REASONS: Final = 0.25
"""Share of a standstill that the waits for the interpreter's lock, of the main thread for a processor, and of the
virtual machine for its host may account for."""
_PRESSED: Final = 0.25
"""Share of a standstill for which threads may have waited for a processor."""
STOOD_STILL, GIVEN_AWAY = "standstill", "pressure"
"""What a lateness was: as `STOP_WITNESSES`."""
_BUSY: Final = 0.1
"""Share of the lateness for which the process may have had a processor, beside what it may use while it runs."""


@dataclass(frozen=True, slots=True)
class _Counts:
    faults: int
    delay: float
    main_delay: float


class StandstillTest:
    """Call `mark` a few times a second, and `seconds` for a sample that came late; both on the sampler's thread."""

    def __init__(self, task: int, main_task: int) -> None:
        """The system's numbers of the sampler's thread and of the main thread."""
        self._task, self._main_task = task, main_task
        self._processors = os.cpu_count() or 1
        self._before: _Counts | None = None
        self._steal = 0.0
        self._pressure: float | None = None
        self._busy = 1.0
        self._pause = 0.0
        self._ran = 0.0
        self.mark()
        self.mark_host()

    def mark(self) -> None:
        """Remembers the counts at a moment at which the process runs."""
        self._before, self._pressure = self._counts(), pressure_seconds()

    def mark_host(self) -> None:
        """The same of the whole machine, which costs more on a large one: once in a second is enough."""
        self._steal = steal_seconds()
        self._busy = max(1.0, runnable_threads() / self._processors)

    def pausing(self, seconds: float) -> None:
        """The sampler sleeps for so long now. What runs later on has not stood still."""
        self._pause, self._ran = seconds, time.process_time()

    def seconds(self, late_seconds: float, switches: int | None) -> tuple[float, str]:
        """For how much of the lateness of a sample the process did not run, and whether it `STOOD_STILL` or the
        processor was `GIVEN_AWAY`; 0 if it ran, or if that cannot be known. An estimate: a stop begins at any moment of
        the pause before. `switches`: how often our thread gave up the processor since the last sample; None if the
        system does not report it."""
        if late_seconds < LEAST_SECONDS or switches is None:
            return 0.0, STOOD_STILL
        ran, before, steal, busy = time.process_time() - self._ran, self._before, self._steal, self._busy
        pressure = self._pressure
        self.mark()
        self.mark_host()
        after = self._before
        if before is None or after is None or after.faults != before.faults:
            return 0.0, STOOD_STILL
        still = standstill(
            late_seconds,
            switches=switches,
            delay_seconds=after.delay - before.delay,
            main_delay_seconds=after.main_delay - before.main_delay,
            steal_seconds=self._steal - steal,
            process_seconds=ran,
            running_seconds=self._processors * self._pause,
            least_seconds=min(LEAST_SECONDS_BUSY, LEAST_SECONDS * max(busy, self._busy)),
        )
        waited = 0.0 if pressure is None or self._pressure is None else self._pressure - pressure
        return still, GIVEN_AWAY if waited > _PRESSED * still else STOOD_STILL

    def _counts(self) -> _Counts | None:
        faults, delay = own_faults(), run_delay_or_none(self._task)
        if faults is None or delay is None:
            return None
        return _Counts(faults, delay, run_delay_seconds(self._main_task))


def standstill(
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
    """Seconds of a lateness that nothing but a stop of the process explains; 0 if something else does.

    `switches`: how often the thread gave up the processor since the last sample: a few times for its own work, and once
    for each time that it asked for the interpreter's lock in vain. The delays are since a moment shortly before that:
    `delay_seconds`: for how long others had the processor while it was ready; `main_delay_seconds`: the same of the
    main thread; `steal_seconds`: for how long the host had processors that the virtual machine wanted.
    `process_seconds`: processor time of all the process's threads since its sampler paused; `running_seconds`: what
    they may have used of it before the stop. `least_seconds`: what may remain without an explanation.
    """
    asked_every = sys.getswitchinterval()
    still = late_seconds - delay_seconds
    running = running_seconds + _BUSY * late_seconds + (os.cpu_count() or 1) * delay_seconds
    if asked_every > late_seconds / 20 or process_seconds > running:
        return 0.0
    unexplained = still - main_delay_seconds - steal_seconds - switches * asked_every
    return still if unexplained >= max(least_seconds, (1 - _OTHER_REASONS) * still) else 0.0
