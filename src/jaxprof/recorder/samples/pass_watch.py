"""Follows the hot loop's passes: which of the two ways tells them, and when.

From Python 3.12 on the end of each pass is told, as long as passes are long enough for that to cost less than 1 % of
the loop: the first 50 passes decide, and others several times a second. Otherwise, and on 3.11, its counter is read
with the samples of the stack: the counts are exact, the times are those of the samples.
A loop without a counter has no passes then.
"""

from __future__ import annotations

import _thread
import sys
import time
from collections import deque
from types import FrameType
from typing import TYPE_CHECKING, Final

from jaxprof.events import StepsTaken
from jaxprof.recorder.samples.counters import READS_ANYWHERE, LoopCounter, counters_of, read_counter
from jaxprof.recorder.samples.line_clock import TracedLines, pending_call
from jaxprof.recorder.samples.loops import Loop
from jaxprof.recorder.samples.passes import PROOFS, CounterSearch, MomentLog, NumberLog

if TYPE_CHECKING:
    from jaxprof.recorder.samples.monitored_loop import MonitoredLines, WatchedPasses

_LONG_AGAIN_SECONDS: Final = 100e-6
"""Of passes that were too short to be told, and are tried again: twice that limit."""
_LOOPS_AT_MOST: Final = 100
_DEEPEST: Final = 300

_Key = tuple[int, int]


def line_clock(main_thread: int) -> MonitoredLines | TracedLines | None:
    """The line clock for this Python; None if it has none."""
    if sys.version_info >= (3, 12):
        from jaxprof.recorder.samples.monitored_loop import MonitoredLines

        return MonitoredLines(main_thread)
    clock = TracedLines(main_thread)
    return clock if clock.usable else None


class PassWatch:
    """Call `follow` when the hot loop is another one, `sample` with each sample, `look` a few times a second,
    `collect` at the end of each window."""

    def __init__(self, clock: MonitoredLines | TracedLines | None, main_thread: int) -> None:
        self._clock, self._main_thread = clock, main_thread
        self._began = time.monotonic()
        self._loop: Loop | None = None
        self._told: WatchedPasses | None = None
        self._moments: MomentLog | None = None
        self._numbers: NumberLog | None = None
        self._counter: LoopCounter | None = None
        self._found: dict[_Key, LoopCounter] = {}
        self._seen: dict[_Key, int] = {}
        self._ready: list[StepsTaken] = []
        self._search: _SpellSearch | None = None
        self._call = None if READS_ANYWHERE else pending_call(self._read_in_main)
        self._called = False
        self._reads: deque[tuple[float, int | None]] = deque(maxlen=1000)

    def follow(self, loop: Loop | None) -> None:
        """The passes of this loop are followed from now on, and those of an earlier one no longer."""
        self._leave()
        self._loop = loop
        if loop is None:
            return
        if len(self._seen) > _LOOPS_AT_MOST:
            self._seen.clear()
            self._found.clear()
        if isinstance(self._clock, TracedLines):
            counter = self._found.get(loop.key)
            if counter is not None:
                self._count_by(counter)
            else:
                self._search = _SpellSearch(counters_of(loop))
                self._clock.at_jump = self._search.at_jump
        elif self._clock is not None:
            self._watch(loop)

    def sample(self, frame: FrameType | None) -> None:
        """The main thread is in this frame now. Reads the counter of the loop, if its passes are counted by it."""
        if self._loop is None or (self._numbers is None and self._search is None):
            return
        if READS_ANYWHERE:
            if self._numbers is not None and self._counter is not None:
                self._numbers.saw(time.monotonic(), _number(frame, self._loop, self._counter))
        elif self._call is not None and not self._called:
            self._called = self._call()

    def look(self, usual_seconds: float | None) -> None:
        """Takes what was told since the last call. `usual_seconds`: of a pass, as the last spell timed it; None if it
        timed none."""
        if self._told is not None and self._moments is not None:
            self._take()
        elif self._search is not None:
            self._look_for_counter()
        elif self._numbers is not None:
            self._drain()
        if self._loop is None or isinstance(self._clock, TracedLines) or self._clock is None:
            return
        if self._told is None and usual_seconds is not None and usual_seconds > _LONG_AGAIN_SECONDS:
            self._leave()
            self._watch(self._loop)

    def collect(self, now: float, *, final: bool = False) -> list[StepsTaken]:
        """The passes since the last call. `final`: there will be no other one."""
        if self._told is not None:
            self._take()
        self._drain()
        age = now - self._began
        ready, self._ready = self._ready, []
        if self._moments is not None:
            ready += self._moments.events(now, age, final=final)
        if self._numbers is not None:
            ready += self._numbers.events(now, age, final=final)
        return ready

    def _watch(self, loop: Loop) -> None:
        assert self._clock is not None
        assert not isinstance(self._clock, TracedLines)
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
        if self._told is not None and self._clock is not None and not isinstance(self._clock, TracedLines):
            self._clock.unwatch()
        if self._moments is not None and self._told is not None:
            self._moments.take(*self._told.take())
            self._seen[self._told.loop.key] = self._moments.seen
            self._ready += self._moments.events(now, now - self._began, final=True)
        if self._numbers is not None:
            self._drain()
            self._ready += self._numbers.events(now, now - self._began, final=True)
        if isinstance(self._clock, TracedLines):
            self._clock.at_jump = None
        self._told = self._moments = self._numbers = self._counter = self._search = None
        self._reads.clear()

    def _look_for_counter(self) -> None:
        assert self._search is not None
        assert self._loop is not None
        self._reads.clear()
        if self._search.found is not None:
            counter = self._found[self._loop.key] = self._search.found
            self._leave()
            self._count_by(counter)

    def _drain(self) -> None:
        while self._numbers is not None and self._reads:
            self._numbers.saw(*self._reads.popleft())

    def _read_in_main(self) -> None:
        """Runs in the main thread, between two of its instructions, some time after `sample`."""
        self._called = False
        loop, counter, search = self._loop, self._counter, self._search
        if loop is None or _thread.get_ident() != self._main_thread:
            return
        frame = sys._getframe(1)
        if counter is not None:
            self._reads.append((time.monotonic(), _number(frame, loop, counter)))
        elif search is not None:
            inside = _frame_of(frame, loop)
            if inside is not None and loop.begins <= inside.f_lasti <= loop.ends:
                search.sampled(inside)


class _SpellSearch:
    """Finds the counter on Python 3.11: in spells, at successive passes; of passes that are too long for a spell, in
    samples. All but `found` runs in the main thread."""

    def __init__(self, counters: tuple[LoopCounter, ...]) -> None:
        self._counters = counters
        self._search = CounterSearch(counters)
        self._ordinal = 0
        self._targets: dict[LoopCounter, tuple[int, int | None]] = {
            counter: (0, None) for counter in counters if counter.target
        }
        self.found: LoopCounter | None = None

    def at_jump(self, frame: FrameType, first: bool) -> None:
        """A pass begins within a spell; `first`: it is the first one of the spell."""
        self._ordinal += 2 if first else 1
        if not self._search.over:
            self._search.saw(self._ordinal, [read_counter(frame, counter) for counter in self._counters])
            self.found = self._search.found or self.found

    def sampled(self, frame: FrameType) -> None:
        """The loop's frame at a sample. The target of a `for` is its counter if it went up by one at each change that
        was seen: one that is seen so passes more slowly than the samples are taken."""
        for counter, (rises, before) in self._targets.items():
            value = read_counter(frame, counter)
            if value == before:
                continue
            rose = before is not None and value is not None and value == before + 1
            self._targets[counter] = rises + 1 if rose else 0, value
            if rose and rises + 1 >= PROOFS and self.found is None:
                self.found = counter


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
