"""Counts the iterations of the program's hot loop and times each of its lines, if Python offers the events for it.

The loop is chosen from the stack samples. A spell of watching begins a few times a second and ends after a number of
lines: a loop of microseconds is measured by a sample of its iterations, one of milliseconds in full.

All of its iterations are followed, by one of two methods. The end of each is recorded if iterations are long enough for
that to cost less than 1 % of the loop, as the first ones after each look show. Otherwise the loop's counter is read
with the stack samples: the counts are exact, the times are those of the samples. A loop without a counter then has no
iterations. Python 3.11 has no events for iterations, and lets no other thread read a local variable.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Sequence
from types import CodeType, FrameType

from jaxprof.events import StepsCounted, StepsTaken, TimedLine
from jaxprof.events.programs import SPELL_EVENTS, hot_loop
from jaxprof.recorder.cpython import HAS_MONITORING, IS_KNOWN, READS_ANYWHERE
from jaxprof.recorder.samples.iterations import PROOFS, MomentLog, NumberLog, counters_of
from jaxprof.recorder.samples.loops import Loop
from jaxprof.recorder.samples.monitored_loop import (
    BRIEF_SECONDS,
    MOST_MOMENTS,
    SHORTEST_SECONDS,
    LineTimes,
    Moments,
    MonitoredLines,
    WatchedIterations,
)
from jaxprof.recorder.samples.sample_window import TimedLoop
from jaxprof.recorder.samples.states import GENERATORS, UNSEEN, Seen, UserLine

MOST_INTERVALS = 100
LEAST_WEIGHT_SECONDS = 0.05
"""A loop is counted once samples have seen the program in it for this long."""
FADING = 0.7
"""Factor by which the weights of one window fade in the next."""
LEAST_HITS = 5
"""A line that was timed less often does not represent the time between the spells."""
FEW_INTERVALS = 10
"""Number of the last iterations whose mean is the usual length."""
_CALLED_TIMED = 4
"""Number of functions between the loop and JAX whose lines are timed, too."""
_SUSPENDED = GENERATORS | inspect.CO_COROUTINE
"""Flags of functions that others interrupt: the time of a line with a `yield` or an `await` has theirs in it."""

_LONG_AGAIN_SECONDS = 2 * SHORTEST_SECONDS
"""Length from which on iterations that were too short to record are tried again."""
_LOOPS_AT_MOST = 100

_Key = tuple[int, int]


def line_clock(main_thread: int) -> MonitoredLines | None:
    """Return the line clock for this Python; None if it has no events for one code object, as before 3.12."""
    return MonitoredLines(main_thread) if HAS_MONITORING else None


class IterationWatch:
    """Call `follow` when another loop is hot, `sample` with each sample, `look` a few times a second, and `collect` at
    the end of each window."""

    def __init__(self, clock: MonitoredLines | None) -> None:
        self._clock = clock
        self._began = time.monotonic()
        self._loop: Loop | None = None
        self._watched: WatchedIterations | None = None
        self._moments: MomentLog | None = None
        self._numbers: NumberLog | None = None
        self._seen: dict[_Key, int] = {}
        self._ready: list[StepsTaken] = []

    @property
    def progress(self) -> int | None:
        """A number that changes with each iteration that ends; None if nothing counts them: before Python 3.12, without
        a free tool number, and in loops of microseconds without a counter."""
        if self._moments is not None:
            return self._moments.seen
        return self._numbers.number if self._numbers is not None else None

    @property
    def last_number(self) -> int | None:
        """Number of the last iteration that ended; None if the iterations are not numbered by a counter."""
        log = self._numbers or self._moments
        return log.last_number if log is not None else None

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
        if self._numbers is not None:
            self._numbers.sample(time.monotonic(), frame)

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
            self._moments = MomentLog(loop, counters, self._seen.get(loop.key, 0))
            self._watched.wanted.extend([None] * (PROOFS + 1))

    def _take(self) -> None:
        """Take what the watched loop has recorded, and choose how it is watched from now on."""
        watched, log = self._watched, self._moments
        if watched is None or log is None:
            return
        moments, read = watched.take()
        log.take(moments, read)
        counter = log.search.found
        if log.search.over:
            watched.counters = log.search.counters if counter is not None else ()
        if watched.short:
            self._leave()
            if counter is not None and READS_ANYWHERE:
                self._numbers = NumberLog(watched.loop, counter)
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
        self._watched = self._moments = self._numbers = None


class StepCounter:
    """Call `saw` for each sample, `look` a few times a second, `collect` at each window's end, `close` at the end."""

    def __init__(self, main_thread: int) -> None:
        self._weights: dict[tuple[tuple[_Key, ...], bool], float] = {}
        self._loops: dict[_Key, Loop] = {}
        self._compiled: dict[tuple[_Key, ...], tuple[Loop, ...]] = {}
        """Loops around the stages of compilations: the hot loop is one of them if samples miss its calls."""
        self._saw_user_loop = False
        self._loop: Loop | None = None
        self._clock = line_clock(main_thread)
        self._saw_loop = False
        self.iterations = IterationWatch(self._clock)
        self._spell: tuple[Moments, dict[CodeType, Moments]] | None = None
        self._called: list[CodeType] = []
        """Functions whose lines are timed in this spell."""
        self._paths: dict[CodeType, float] = {}
        """Functions between the loop and its calls of JAX, with the seconds for which samples saw them there."""
        self._calls: dict[CodeType, LineTimes] = {}
        """Times of these functions since the last `collect`."""
        self._timed: dict[CodeType, LineTimes] = {}
        self.times: LineTimes | None = None
        """Times of the counted loop since the last `collect`."""
        self._pauses: list[tuple[float, float]] = []
        """When the process was paused, and for how long, while the last events were taken."""

    def saw(self, seen: Seen, seconds: float) -> None:
        """Note that the program was in these loops for about this long."""
        self._saw_loop = self._saw_loop or bool(seen.sites)
        if self._clock is None or not seen.sites:
            return
        of_library = seen.sites[0].at.library
        self._saw_user_loop = self._saw_user_loop or not of_library
        if self._saw_user_loop and of_library:  # the user has loops: those of libraries belong to them
            return
        loops = [site.loop for site in seen.sites if site.loop is not None]
        if self._loop is not None and (seen.works or seen.doubtful or seen.kind == UNSEEN):
            codes = [inner for inner, _ in seen.path]
            at = codes.index(self._loop.code) if self._loop.code in codes else 0
            for code in codes[:at]:  # functions that the loop's function calls
                if not code.co_flags & _SUSPENDED and (code in self._paths or len(self._paths) < 50):
                    self._paths[code] = self._paths.get(code, 0.0) + seconds
        key = (tuple(loop.key for loop in loops), seen.works or seen.doubtful)
        if key in self._weights or len(self._weights) < 200:
            self._weights[key] = self._weights.get(key, 0.0) + seconds
            self._loops.update((loop.key, loop) for loop in loops)

    def saw_compiling(self, seen: Seen) -> None:
        """Note that JAX compiled in these loops."""
        loops = tuple(site.loop for site in seen.sites if site.loop is not None and not site.at.library)
        if loops and len(self._compiled) < _LOOPS_AT_MOST:
            self._compiled[tuple(loop.key for loop in loops)] = loops

    def note_pause(self, began_seconds: float, seconds: float) -> None:
        """Note that the process was paused from then on (monotonic): no line and no iteration took that time."""
        self._pauses = [*self._pauses[-20:], (began_seconds, seconds)]

    def look(self) -> None:
        """Take the events of the last spell, and begin another one, of the loop that is hot now."""
        if self._clock is None:
            return
        self._take()
        sampled = [(chain, seconds, works) for (chain, works), seconds in self._weights.items()]
        key = hot_loop(sampled) or hot_loop([*sampled, *((chain, 0.0, True) for chain in self._compiled)])
        weight = sum(seconds for (chain, _), seconds in self._weights.items() if key in chain)
        best = self._loops.get(key) if key is not None and weight >= LEAST_WEIGHT_SECONDS else None
        if best is not None and (self._loop is None or best.key != self._loop.key):
            self._take()
            self._loop, self.times = best, LineTimes(best.line)
            self._paths, self._calls, self._timed = {}, {}, {}
            self._end()
            self.iterations.follow(best)
        brief = self.times.intervals[-FEW_INTERVALS:] if self.times is not None else []
        self.iterations.look(sum(brief) / len(brief) if len(brief) == FEW_INTERVALS else None)
        if self._loop is not None and self._spell is None:
            self._called = self._functions_to_time()
            begun = self._clock.begin(self._loop, self._called)
            if begun is None:
                self.close()
            else:
                self._spell = (begun[0], dict(begun[1]))

    def collect(self, now: float) -> StepsCounted | None:
        """Return the iterations counted since the last call; None without a whole one."""
        self._take()
        times, loop = self.times, self._loop
        faded = {key: FADING * seconds for key, seconds in self._weights.items()}
        self._weights = {key: seconds for key, seconds in faded.items() if seconds > 0.001}
        recent = {key for chain, _ in self._weights for key in chain}
        self._loops = {key: kept for key, kept in self._loops.items() if key in recent}
        if loop is None or self._clock is None:
            return None
        self.times = LineTimes(loop.line)
        if times is None or not times.intervals:
            return None
        every = max(1, -(-len(times.intervals) // MOST_INTERVALS))
        took = {} if loop.code.co_flags & _SUSPENDED else times.own_seconds()
        lines = sorted(took.items(), key=lambda item: -item[1])[:40]
        return StepsCounted(
            monotonic_seconds=now,
            where=loop.location,
            count=len(times.intervals),
            seconds=sum(times.intervals),
            intervals_seconds=times.intervals[::every],
            lines=[TimedLine(line=line, seconds=seconds, hits=times.hits[line]) for line, seconds in lines],
        )

    def take_compiled_calls(self) -> list[tuple[CodeType, int]]:
        """Return the instructions seen to call a compiled function since the last call: code and offset."""
        compiled = self._clock.compiled if self._clock is not None else ()
        return [compiled.popleft() for _ in range(len(compiled))] if compiled else []

    @property
    def unavailable(self) -> str:
        """Why a loop that was seen cannot be followed: `unknown_python` (a version newer than jaxprof), `old_python`
        or `no_slot` (other tools use all monitoring slots); empty if it can."""
        if not IS_KNOWN:  # no loop is ever seen
            return "unknown_python"
        if self._clock is not None or not self._saw_loop:
            return ""
        if not HAS_MONITORING:
            return "old_python"
        return "no_slot"

    def take_timed(
        self,
        counted: StepsCounted | None,
        at_line: Callable[[CodeType, int, int], tuple[str, UserLine]],
        is_shared: Callable[[CodeType, int], bool],
    ) -> TimedLoop | None:
        """Return the loop with its lines that were timed often enough in this count, and the functions that it calls on
        its way to JAX. None if no iteration was counted: the program may hang in one, and earlier ones say nothing
        about that. `at_line`, `is_shared`: as those of `Classifier`."""
        self._timed |= {code: timed for code, timed in self._calls.items() if len(timed.intervals) >= LEAST_HITS}
        self._calls = {}
        loop = self._loop
        lines = [line for line in counted.lines if line.hits >= LEAST_HITS] if counted is not None else []
        if loop is None or counted is None or not lines:
            return None
        return TimedLoop(
            loop,
            {line.line: line.seconds for line in lines},
            lambda code, line: at_line(code, line, loop.line),
            {line.line: line.hits for line in lines},
            self._timed,
            is_shared,
            holds_waits=counted.seconds >= BRIEF_SECONDS * counted.count,
        )

    def close(self) -> None:
        self.iterations.follow(None)
        if self._clock is not None:
            self._clock.close()
        self._clock = self._loop = self._spell = None

    def _take(self) -> None:
        """Take the moments of the spell. One that is not full continues: its current iteration counts later."""
        if self._spell is None or self.times is None:
            return
        moments, calls = self._spell
        done = self.times.take(without(moments, self._pauses))
        for code, made in list(calls.items()):
            taken = without(made, self._pauses)
            times = self._calls.setdefault(code, LineTimes(code.co_firstlineno))
            finished = times.take(taken, self.times.lost)
            if len(taken) >= SPELL_EVENTS:  # a function that has filled its list is not recorded any further
                del calls[code]
            else:
                _drop(made, finished)
        if len(moments) < SPELL_EVENTS:
            _drop(moments, done)
            if not done or set(self._functions_to_time()) <= set(self._called):
                return
        self._end()

    def _functions_to_time(self) -> list[CodeType]:
        return sorted(self._paths, key=lambda code: -self._paths[code])[:_CALLED_TIMED]

    def _end(self) -> None:
        if self._clock is not None and self._spell is not None:
            self._clock.end()
        self._spell = None


def _drop(moments: Moments, count: int) -> None:
    for _ in range(count):
        moments.popleft()


def without(moments: Moments, pauses: Sequence[tuple[float, float]]) -> list[tuple[int, float]]:
    """Return the moments by a clock that did not go on while the process was paused. Where pauses are known (Linux),
    the clocks of the moments and of the sampler are the same."""
    if not pauses:
        return list(moments.copy())  # the program's thread may add to the original meanwhile
    return [(mark, at - sum(min(took, max(0.0, at - began)) for began, took in pauses)) for mark, at in moments.copy()]
