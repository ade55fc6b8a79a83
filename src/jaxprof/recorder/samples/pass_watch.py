"""Follows the hot loop's passes: which of the two ways tells them, and when.

The end of each pass is told, as long as passes are long enough for that to cost less than 1 % of the loop: the first 50
passes decide, and others several times a second. Otherwise its counter is read with the samples of the stack: the
counts are exact, the times are those of the samples. A loop without a counter has no passes then. Python 3.11 tells of
none, and lets no other thread read a local variable.
"""

from __future__ import annotations

import sys
import time
from types import FrameType
from typing import TYPE_CHECKING, Final

from jaxprof.events import StepsTaken
from jaxprof.recorder.samples.loops import Loop
from jaxprof.recorder.samples.passes import (
    PROOFS,
    READS_ANYWHERE,
    LoopCounter,
    MomentLog,
    NumberLog,
    counters_of,
    read_counter,
)

if TYPE_CHECKING:
    from jaxprof.recorder.samples.monitored_loop import MonitoredLines, WatchedPasses

_LONG_AGAIN_SECONDS: Final = 100e-6
"""Of passes that were too short to be told, and are tried again: twice that limit."""
_LOOPS_AT_MOST: Final = 100
_DEEPEST: Final = 300

_Key = tuple[int, int]


def line_clock(main_thread: int) -> MonitoredLines | None:
    """The line clock for this Python; None before 3.12, which has no events for one code object."""
    if sys.version_info < (3, 12):
        return None
    from jaxprof.recorder.samples.monitored_loop import MonitoredLines

    return MonitoredLines(main_thread)


class PassWatch:
    """Call `follow` when the hot loop is another one, `sample` with each sample, `look` a few times a second,
    `collect` at the end of each window."""

    def __init__(self, clock: MonitoredLines | None) -> None:
        self._clock = clock
        self._began = time.monotonic()
        self._loop: Loop | None = None
        self._told: WatchedPasses | None = None
        self._moments: MomentLog | None = None
        self._numbers: NumberLog | None = None
        self._counter: LoopCounter | None = None
        self._found: dict[_Key, LoopCounter] = {}
        self._seen: dict[_Key, int] = {}
        self._ready: list[StepsTaken] = []

    def follow(self, loop: Loop | None) -> None:
        """The passes of this loop are followed from now on, and those of an earlier one no longer."""
        self._leave()
        self._loop = loop
        if loop is None:
            return
        if len(self._seen) > _LOOPS_AT_MOST:
            self._seen.clear()
            self._found.clear()
        self._watch(loop)

    def sample(self, frame: FrameType | None) -> None:
        """The main thread is in this frame now. Reads the counter of the loop, if its passes are counted by it."""
        if self._loop is not None and self._numbers is not None and self._counter is not None:
            self._numbers.saw(time.monotonic(), _number(frame, self._loop, self._counter))

    def look(self, usual_seconds: float | None) -> None:
        """Takes what was told since the last call. `usual_seconds`: of a pass, as the last spell timed it; None if it
        timed none."""
        self._take()
        if self._loop is None or self._told is not None:
            return
        if usual_seconds is not None and usual_seconds > _LONG_AGAIN_SECONDS:
            self._leave()
            self._watch(self._loop)

    def collect(self, now: float, *, final: bool = False) -> list[StepsTaken]:
        """The passes since the last call. `final`: there will be no other one."""
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
        self._told = self._clock.watch(loop, counters)
        if self._told is not None:
            self._moments = MomentLog(loop, counters, self._seen.get(loop.key, 0))
            self._told.judge()
            self._told.wanted.extend([True] * (PROOFS + 1))

    def _take(self) -> None:
        told, log = self._told, self._moments
        if told is None or log is None:
            return
        if told.overflowed:
            log.lost()
        log.take(*told.take())
        if log.search.found is not None:
            self._found[told.loop.key] = log.search.found
            told.counters = log.search.counters
        if told.short:
            self._count_short()
            return
        if not told.wanted:
            told.judge()
        if told.wanted[-1:] != [True] and (log.search.found is not None or not log.search.over):
            told.wanted.extend([True] * (1 if log.search.over else PROOFS + 1))

    def _count_short(self) -> None:
        """Each pass costs too much to be told: by its counter, if there is one."""
        assert self._loop is not None
        counter = self._found.get(self._loop.key)
        self._leave()
        if counter is not None and READS_ANYWHERE:
            self._count_by(counter)

    def _count_by(self, counter: LoopCounter) -> None:
        assert self._loop is not None
        self._counter, self._numbers = counter, NumberLog(self._loop, counter)

    def _leave(self) -> None:
        """Ends what is under way, and keeps what it gave."""
        now = time.monotonic()
        if self._told is not None and self._clock is not None:
            self._clock.unwatch()
        if self._moments is not None and self._told is not None:
            self._moments.take(*self._told.take())
            self._seen[self._told.loop.key] = self._moments.seen
            self._ready += self._moments.events(now, now - self._began, final=True)
        if self._numbers is not None:
            self._ready += self._numbers.events(now, now - self._began, final=True)
        self._told = self._moments = self._numbers = self._counter = None


def _frame_of(frame: FrameType | None, loop: Loop) -> FrameType | None:
    """The innermost frame that runs the loop's function."""
    for _ in range(_DEEPEST):
        if frame is None or frame.f_code is loop.code:
            return frame
        frame = frame.f_back
    return None


def _number(frame: FrameType | None, loop: Loop, counter: LoopCounter) -> int | None:
    """The number of the pass that is under way: what the counter will be at its end. None outside the loop."""
    frame = _frame_of(frame, loop)
    if frame is None:
        return None
    at = frame.f_lasti
    value = read_counter(frame, counter)
    if value is None or not loop.begins <= at <= loop.ends or frame.f_lasti != at:
        return None
    return value + 1 if at < counter.offset or at == loop.ends else value
