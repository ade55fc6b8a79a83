"""Follows the hot loop's iterations, and decides which of two methods finds them.

The end of each iteration is recorded if iterations are long enough for that to cost less than 1 % of the loop, as their
number between two looks shows. Otherwise the loop's counter is read with the stack samples: the counts are exact, the
times are those of the samples. A loop without a counter then has no iterations. Python 3.11 has no events for
iterations, and lets no other thread read a local variable.
"""

from __future__ import annotations

import sys
import time
from types import FrameType
from typing import Final

from jaxprof.events import StepsTaken
from jaxprof.recorder.places import outwards
from jaxprof.recorder.samples.loops import Loop
from jaxprof.recorder.samples.monitored_loop import MOST_MOMENTS, MonitoredLines, WatchedPasses
from jaxprof.recorder.samples.passes import (
    PROOFS,
    READS_ANYWHERE,
    LoopCounter,
    MomentLog,
    NumberLog,
    counters_of,
    read_counter,
)
from jaxprof.recorder.samples.stack import DEEPEST

SHORTEST_SECONDS: Final = 50e-6
"""Mean length of iterations whose ends are recorded, at about 0.3 µs each. Measured by bench/passes.py."""
_FEWEST: Final = 50
"""Number of iterations whose mean decides."""
_LONG_AGAIN_SECONDS: Final = 2 * SHORTEST_SECONDS
"""Length from which on iterations that were too short to record are tried again."""
_LOOPS_AT_MOST: Final = 100

_Key = tuple[int, int]


def line_clock(main_thread: int) -> MonitoredLines | None:
    """Return the line clock for this Python; None before 3.12, which has no events for one code object."""
    return MonitoredLines(main_thread) if sys.version_info >= (3, 12) else None


class PassWatch:
    """Call `follow` when another loop is hot, `sample` with each sample, `look` a few times a second, and `collect` at
    the end of each window."""

    def __init__(self, clock: MonitoredLines | None) -> None:
        self._clock = clock
        self._began = self._looked = time.monotonic()
        self._loop: Loop | None = None
        self._watched: WatchedPasses | None = None
        self._moments: MomentLog | None = None
        self._numbers: NumberLog | None = None
        self._counter: LoopCounter | None = None
        self._seen: dict[_Key, int] = {}
        self._ready: list[StepsTaken] = []

    def follow(self, loop: Loop | None) -> None:
        """Follow the iterations of this loop from now on, and no longer those of an earlier one."""
        self._leave()
        self._loop = loop
        if loop is None:
            return
        if len(self._seen) > _LOOPS_AT_MOST:
            self._seen.clear()
        self._watch(loop)

    def sample(self, frame: FrameType | None) -> None:
        """Take a sample of the main thread's frame. Reads the counter of the loop, if it counts the iterations."""
        if self._loop is not None and self._numbers is not None and self._counter is not None:
            self._numbers.saw(time.monotonic(), _number(frame, self._loop, self._counter))

    def look(self, usual_seconds: float | None) -> None:
        """Take the iterations recorded since the last call. `usual_seconds`: length of an iteration, as the last spell
        timed it; None if it timed none."""
        self._take()
        if self._loop is None or self._watched is not None:
            return
        if usual_seconds is not None and usual_seconds > _LONG_AGAIN_SECONDS:
            self._leave()
            self._watch(self._loop)

    def collect(self, now: float, *, final: bool = False) -> list[StepsTaken]:
        """Return the iterations since the last call. `final`: there is no later call."""
        self._take()
        age = now - self._began
        ready, self._ready = self._ready, []
        if self._moments is not None:
            ready += self._moments.events(now, age, final=final)
        if self._numbers is not None:
            ready += self._numbers.events(now, age, final=final)
        return ready

    def _watch(self, loop: Loop) -> None:
        if self._clock is None:
            return
        counters = counters_of(loop)
        self._watched = self._clock.watch(loop, counters)
        if self._watched is not None:
            self._looked = time.monotonic()
            self._moments = MomentLog(loop, counters, self._seen.get(loop.key, 0))
            self._watched.wanted.extend([None] * (PROOFS + 1))

    def _take(self) -> None:
        watched, log = self._watched, self._moments
        if watched is None or log is None:
            return
        (moments, read), before, self._looked = watched.take(), self._looked, time.monotonic()
        log.take(moments, read)
        counter = log.search.found
        if counter is not None:
            watched.counters = log.search.counters
        if len(moments) >= _FEWEST and self._looked - before < SHORTEST_SECONDS * len(moments):
            self._leave()
            if counter is not None and READS_ANYWHERE:  # they are too short to record, and counted
                self._counter, self._numbers = counter, NumberLog(watched.loop, counter)
        elif len(moments) >= MOST_MOMENTS:  # none is recorded any longer
            self._leave()
            self._watch(watched.loop)
        elif not watched.wanted and (counter is not None or not log.search.over):
            watched.wanted.extend([None] * (1 if log.search.over else PROOFS + 1))

    def _leave(self) -> None:
        """End the current method, and keep what it recorded."""
        now = time.monotonic()
        if self._watched is not None and self._clock is not None:
            self._clock.unwatch()
        if self._moments is not None and self._watched is not None:
            self._moments.take(*self._watched.take())
            self._seen[self._watched.loop.key] = self._moments.seen
            self._ready += self._moments.events(now, now - self._began, final=True)
        if self._numbers is not None:
            self._ready += self._numbers.events(now, now - self._began, final=True)
        self._watched = self._moments = self._numbers = self._counter = None


def _number(frame: FrameType | None, loop: Loop, counter: LoopCounter) -> int | None:
    """Return the number of the iteration in progress: the value of the counter at its end. None outside the loop."""
    frame = next((caller for caller in outwards(frame, DEEPEST) if caller.f_code is loop.code), None)
    if frame is None:
        return None
    at = frame.f_lasti
    value = read_counter(frame, counter)
    if value is None or not loop.begins <= at <= loop.ends or frame.f_lasti != at:
        return None
    return value + 1 if at < counter.offset or at == loop.ends else value
