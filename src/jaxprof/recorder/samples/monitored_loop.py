"""Watches one loop with `sys.monitoring` (Python 3.12 and later): each iteration all the time, its lines in short
spells of bounded cost.

Stack samples come where the main thread releases the interpreter's lock, so they seldom see a line that holds it. Here
every line of the loop records when it begins. Python 3.11 has nothing that a guest may use: a trace function belongs to
the program, and a pending call that enters Python while one is set can repeat an instruction for ever. The times of
lines are unknown there.

Both kinds of events share one tool number, since Python leaves only two free. A tool has one set of local events for a
code object, so the end of a spell leaves the events of the iterations on. One event costs 0.2 to 0.4 µs per iteration:
2 % of an iteration of 20 µs. So the ends are recorded only of longer iterations: the first ones after each look decide,
in the callback, because a loop of microseconds would record thousands until the next look.
"""

from __future__ import annotations

import _thread
import math
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from threading import RLock
from types import CodeType, FrameType
from typing import Any

from jaxprof.base.values import dataclass, field
from jaxprof.events.programs import SPELL_EVENTS
from jaxprof.recorder.cpython import monitoring
from jaxprof.recorder.guest import ReplacedName, raised_by_program
from jaxprof.recorder.samples.call_text import maker_of
from jaxprof.recorder.samples.cpu_clock import own_preemptions
from jaxprof.recorder.samples.iterations import LEFT as LOOP_LEFT
from jaxprof.recorder.samples.iterations import LoopCounter, Values, read_counter
from jaxprof.recorder.samples.loops import Loop, loops_of

_TOOLS = (4, 3)
"""Tool numbers that Python leaves free; the named ones belong to debuggers, coverage tools and profilers."""
_SITES_AT_MOST = 100
MOST_MOMENTS = 20_000
"""Limit for the moments that wait for the sampler's thread. A loop that reaches it has iterations too short to record
each, or is in a process that the program forked, where that thread does not run."""
SHORTEST_SECONDS = 50e-6
"""Mean length of iterations whose ends are recorded, at about 0.3 µs each. Measured by bench/iterations.py."""
_FEWEST = 200
"""Number of iterations since the last look from which their mean decides: so few cost next to nothing."""

_Callback = Callable[[object, int, int], object]


EVENT_SECONDS_AT_MOST = 2e-6
"""Upper limit for the cost of recording the beginning of a line. Below it, the estimate is the mean of the line that
takes least, such as the head of a `for`, which takes next to nothing itself."""
JUMP = -1
"""Replaces a line number: the loop begins another iteration."""
LEFT = -2
"""Replaces a line number: the loop has been left, and the time until its next iteration is not part of it."""
PREEMPTED = -3
"""Replaces a line number: the thread lost its processor in the iteration that ends."""
_WAIT_SECONDS = 100e-6
"""Length of an iteration from which it is asked whether the thread lost its processor; a wait for one is longer."""
BRIEF_SECONDS = 1e-3
"""Mean iteration below which those that lost the processor are left out. A spell of such a loop lasts for milliseconds,
so that one wait would be most of it, at a line that chance picks."""

Moments = deque[tuple[int, float]]
"""Not a list: one that grows beyond 1024 bytes, in the program's thread, has the C library join its free blocks then,
which took 0.3 to 3 ms beside XLA, in a spell of 1.2 ms."""


@dataclass(slots=True)
class LineTimes:
    """Times of a loop's lines in the spells of one sample window; or of those of a function that the loop calls, each
    call of which is an iteration."""

    head: int
    """Line of the time between two iterations without a line."""
    intervals: list[float] = field(default_factory=list)
    """Seconds of whole iterations."""
    seconds: dict[int, float] = field(default_factory=dict)
    """Seconds by line, including everything that the line calls, over those iterations."""
    hits: dict[int, int] = field(default_factory=dict)
    lost: list[tuple[float, float]] = field(default_factory=list)
    """When the iterations began and ended that were left out."""

    @property
    def each(self) -> float:
        """Mean seconds of the lines of one iteration."""
        return sum(self.seconds.values()) / len(self.intervals) if self.intervals else 0.0

    def own_seconds(self) -> dict[int, float]:
        """Return the seconds of each line, without the cost of recording it: what the briefest of several takes."""
        each = [seconds / self.hits[line] for line, seconds in self.seconds.items()]
        cost = min(EVENT_SECONDS_AT_MOST, *each) if len(each) > 1 else 0.0
        return {line: max(0.0, seconds - self.hits[line] * cost) for line, seconds in self.seconds.items()}

    def take(self, moments: Sequence[tuple[int, float]], lost: Sequence[tuple[float, float]] = ()) -> int:
        """Add the time between the first and the last beginning of an iteration; return the number of moments used.
        `lost`: when no iteration counts."""
        jumps = [index for index, (line, _) in enumerate(moments) if line == JUMP]
        if len(jumps) < 2:
            return jumps[0] if jumps else len(moments)
        began: float | None = None
        line: int | None = None
        preempted, since, took = False, 0.0, list[tuple[int, float]]()
        iterations = list[tuple[float, float, bool, list[tuple[int, float]]]]()
        for mark, at in moments[jumps[0] : jumps[-1] + 1]:
            if mark == PREEMPTED:
                preempted = True
                continue
            if line is not None or (mark == JUMP and began is not None):
                took.append((self.head if line is None else line, at - since))
            if mark == JUMP:
                if began is not None:
                    iterations.append((began, at, preempted, took))
                began, line, preempted, since, took = at, None, False, at, []
            elif mark == LEFT:
                began, line, took = None, None, []
            else:  # between the jump and the first line is only the recording of the jump, and our samples
                line, since = mark, at
        whole = [ended - began for began, ended, preempted, _ in iterations if not preempted] + self.intervals
        # One that is about as long as others are without a wait is kept.
        most = 2 * max(whole) if whole and sum(whole) < BRIEF_SECONDS * len(whole) else math.inf
        for began, ended, preempted, took in iterations:
            if (preempted and ended - began > most) or any(began < until and since < ended for since, until in lost):
                self.lost.append((began, ended))
                continue
            self.intervals.append(ended - began)
            for number, seconds in took:
                self.seconds[number] = self.seconds.get(number, 0.0) + max(0.0, seconds)
                self.hits[number] = self.hits.get(number, 0) + 1
        return jumps[-1]


@dataclass(slots=True)
class WatchedIterations:
    """The ends of iterations, as they come."""

    loop: Loop
    counters: tuple[LoopCounter, ...]
    moments: deque[float] = field(default_factory=deque)
    """Monotonic times in seconds; `iterations.LEFT` where the loop was left."""
    read: deque[tuple[float, Values]] = field(default_factory=deque)
    """Values of the counters at some of these moments, always added before the moment."""
    wanted: list[None] = field(default_factory=list)
    """One entry for each of the next iterations at whose end the counters are read."""
    since: float = field(default_factory=time.monotonic)
    """When the moments were last taken."""
    limit: int = _FEWEST
    """Number of moments at which `is_full` decides next whether more are recorded. It doubles, so that what is recorded
    before iterations are found too short costs at most twice what those of `SHORTEST_SECONDS` cost."""
    short: bool = False
    """Whether iterations are too short to record each; then none is recorded any longer."""

    def is_full(self) -> bool:
        """Return whether no more moments are recorded until these are taken."""
        count = len(self.moments)
        self.short = self.short or time.monotonic() - self.since < SHORTEST_SECONDS * count
        if not self.short:
            self.limit = min(2 * count, MOST_MOMENTS)
        return self.short or count >= MOST_MOMENTS

    def take(self) -> tuple[list[float], dict[float, Values]]:
        """Return the moments since the last call, and the counters read at some of them, or right after."""
        moments = [self.moments.popleft() for _ in range(len(self.moments))]
        self.since, self.limit = time.monotonic(), _FEWEST
        return moments, dict(self.read.popleft() for _ in range(len(self.read)))


def _spell_callbacks(
    loop: Loop,
    moments: Moments,
    calls: Mapping[CodeType, Moments],
    watched: tuple[CodeType, _Callback, _Callback] | None,
    main_thread: int,
) -> dict[str, Callable[..., object]]:
    """Return the callbacks of a spell by the name of their event.

    They fill `moments` and `calls`; `watched`: what else is called for this code. They are closures, because a closure
    variable costs half as much as an attribute."""
    targets, first, last = loop.targets, loop.line, loop.last_line
    disable, clock, current = monitoring().DISABLE, time.perf_counter, _thread.get_ident
    most = SPELL_EVENTS
    began = 0.0
    preemptions: int | None = None

    def on_jump(code: object, offset: int, destination: int) -> object:
        further = watched[1](code, offset, destination) if watched is not None else disable
        if destination not in targets or len(moments) >= most:
            return further
        if current() == main_thread:
            nonlocal began, preemptions
            at = clock()
            if at - began > _WAIT_SECONDS and preemptions != (preemptions := own_preemptions()):
                moments.append((PREEMPTED, at))
            began = at
            moments.append((JUMP, at))
        return None

    def note_call(code: CodeType, *marks: int) -> object:
        if len(calls[code]) >= most:
            return disable
        if current() == main_thread:
            at = clock()
            for mark in marks:
                calls[code].append((mark, at))
        return None

    def on_start(code: CodeType, offset: int) -> object:
        if code in calls:
            return note_call(code, LEFT, JUMP)  # an exception may have ended the call before
        return watched[2](code, offset, 0) if watched is not None else disable

    def on_line(code: CodeType, line: int) -> object:
        if code in calls:
            return note_call(code, line)
        inside = first <= line <= last
        if len(moments) >= most or (not inside and moments and moments[-1][0] == LEFT):
            return disable  # lines outside cost nothing, except the one at which the loop is left
        if current() == main_thread:
            moments.append((line if inside else LEFT, clock()))
        return None

    def on_return(code: CodeType, offset: int, value: Any) -> object:
        if code in calls:
            return note_call(code, JUMP, LEFT)  # the function may have called itself
        further = watched[2](code, offset, value) if watched is not None else disable
        if len(moments) >= most:
            return further
        if current() == main_thread:
            moments.append((LEFT, clock()))
        return None

    return {"JUMP": on_jump, "LINE": on_line, "PY_RETURN": on_return, "PY_START": on_start}


class MonitoredLines:
    """Line and iteration events, for Python 3.12 and later. Any thread may switch them on and off."""

    def __init__(self, main_thread: int) -> None:
        self._main_thread = main_thread
        self._tool: int | None = None
        self._replaced: list[ReplacedName] = []
        """Python's `use_tool_id` and `get_tool`, while ours replace them."""
        self._number_lost = False
        """Whether the program took our number; it keeps it."""
        self._tool_lock = RLock()
        """Held for microseconds; the program's thread takes it only to get the tool number."""
        self._code: CodeType | None = None
        self.compiled: deque[tuple[CodeType, int]] = deque(maxlen=_SITES_AT_MOST)
        """Instructions that were seen to call a compiled function: code and offset."""
        self._known: dict[tuple[int, int], CodeType] = {}
        """The same ones by the id of their code, also those taken: asking again would take 0.1 ms of each spell."""
        self._called: list[CodeType] = []
        """Functions whose lines are timed in the spell, in addition to those of the loop."""
        self._watched: tuple[CodeType, _Callback, _Callback] | None = None
        """The watched code, and the callbacks at the end of an iteration and where the function begins or ends."""

    def begin(self, loop: Loop, called: Sequence[CodeType] = ()) -> tuple[Moments, dict[CodeType, Moments]] | None:
        """Begin a spell, which fills the returned lists: for the loop, and for each function that is `called` in it.
        None if Python has no free tool number."""
        with self._tool_lock:
            if self._tool is None and not self._take_tool():
                return None
            moments: Moments = deque()
            own = self._watched[0] if self._watched is not None else None
            calls: dict[CodeType, Moments] = {code: deque() for code in called if code not in (loop.code, own)}
            watched = self._watched if self._watched is not None and self._watched[0] is loop.code else None
            self.end()
            self._code, self._called = loop.code, list(calls)
            events = monitoring().events
            spell = _spell_callbacks(loop, moments, calls, watched, self._main_thread)
            for name, callback in (*spell.items(), ("CALL", self._calling)):
                monitoring().register_callback(self._tool, getattr(events, name), callback)
            for code in self._called:
                monitoring().set_local_events(
                    self._tool, code, events.LINE | events.PY_START | events.PY_RETURN | events.CALL
                )
            self._set(loop.code, spell=True)
            return moments, calls

    def _calling(self, code: CodeType, offset: int, callee: object, _first: object) -> object:
        try:
            if (id(code), offset) not in self._known and maker_of(callee) == "user":
                self.compiled.append((code, offset))
                if len(self._known) < _SITES_AT_MOST:
                    self._known[id(code), offset] = code
        except Exception as error:  # it would be one of the program's
            if raised_by_program(error):
                raise
        return monitoring().DISABLE

    def end(self) -> None:
        """End the spell, if there is one: lines are not timed any more."""
        with self._tool_lock:
            if self._code is not None and self._tool is not None:
                for code in self._called:
                    monitoring().set_local_events(self._tool, code, 0)
                self._set(self._code, spell=False)
                self._register_watched()
            self._code, self._called = None, []

    def watch(self, loop: Loop, counters: tuple[LoopCounter, ...]) -> WatchedIterations | None:
        """Record the end of each iteration of this loop from now on, instead of those of an earlier one. None if Python
        has no free tool number."""
        with self._tool_lock:
            if self._tool is None and not self._take_tool():
                return None
            self.unwatch()
            watched = WatchedIterations(loop, counters)
            self._watched = (loop.code, *_watch_callbacks(watched, self._main_thread))
            self._register_watched()
            self._set(loop.code, spell=self._code is loop.code)
            return watched

    def unwatch(self) -> None:
        """End the spell, and stop recording the ends of iterations."""
        with self._tool_lock:
            self.end()
            if self._watched is not None and self._tool is not None:
                code, self._watched = self._watched[0], None
                self._set(code, spell=False)
                self._register_watched()

    def close(self) -> None:
        """Give the tool number back."""
        with self._tool_lock:
            self.unwatch()
            if self._tool is not None:
                events = monitoring().events
                for event in (events.JUMP, events.LINE, events.PY_RETURN, events.PY_START, events.CALL):
                    monitoring().register_callback(self._tool, event, None)
                monitoring().free_tool_id(self._tool)
                self._tool = None
            for replaced in self._replaced:
                replaced.restore()
            self._replaced = []

    def _set(self, code: CodeType, *, spell: bool) -> None:
        """Set the events that Python reports for this code. Switching an event on again switches it on at every
        instruction, also where its callback had switched it off."""
        events = monitoring().events
        wanted = 0
        if self._watched is not None and self._watched[0] is code:
            wanted |= events.JUMP | events.PY_START | events.PY_RETURN
        if spell:
            wanted |= events.JUMP | events.LINE | events.PY_RETURN | events.CALL
        monitoring().set_local_events(self._tool, code, wanted)

    def _register_watched(self) -> None:
        events = monitoring().events
        on_jump, on_leave = self._watched[1:] if self._watched is not None else (None, None)
        for event, callback in ((events.JUMP, on_jump), (events.PY_START, on_leave), (events.PY_RETURN, on_leave)):
            monitoring().register_callback(self._tool, event, callback)

    def _take_tool(self) -> bool:
        if self._number_lost:
            return False
        for number in _TOOLS:
            if monitoring().get_tool(number) is None:
                try:
                    monitoring().use_tool_id(number, "jaxprof")
                except ValueError:  # another tool was faster
                    continue
                self._tool = number
                self._hide_tool()
                return True
        return False

    def _hide_tool(self) -> None:
        """Show our number as free to the program: it sees no tool there, and gets the number when it asks for it."""
        owner = os.getpid()

        def giving_up(use: Callable[[int, str], None]) -> Callable[[int, str], None]:
            def use_tool_id(tool_id: int, name: str, /) -> None:
                if tool_id == self._tool:
                    self._number_lost = True
                    if os.getpid() != owner:  # forked: a thread that held the lock is not here
                        self._tool_lock = RLock()
                    self.close()
                use(tool_id, name)

            return use_tool_id

        def hiding(get: Callable[[int], str | None]) -> Callable[[int], str | None]:
            def get_tool(tool_id: int, /) -> str | None:
                name = get(tool_id)
                return None if tool_id == self._tool else name

            return get_tool

        around = (("use_tool_id", giving_up), ("get_tool", hiding))
        self._replaced = [ReplacedName(monitoring(), name, ours) for name, ours in around]


def _watch_callbacks(watched: WatchedIterations, main_thread: int) -> tuple[_Callback, _Callback]:
    """Return the callbacks at each jump of the loop's code, and where the function begins or returns. An exception
    here would be raised in the program."""
    code, begins, targets = watched.loop.code, watched.loop.begins, watched.loop.targets
    outer = (other for other in loops_of(code) if other.begins < begins and watched.loop.ends <= other.ends)
    around = {target for other in outer for target in other.targets}
    disable, clock, current, moments = monitoring().DISABLE, time.monotonic, _thread.get_ident, watched.moments
    append, wanted = moments.append, watched.wanted

    def on_jump(_code: object, _offset: int, destination: int) -> object:
        if destination in targets:
            if len(moments) >= watched.limit and watched.is_full():
                return disable
            if current() == main_thread:
                at = clock()
                if wanted:
                    read(at)
                append(at)
            return None
        if destination in around:  # the loop was left, and the one around it goes on
            on_leave(_code, _offset)
            return None
        return disable

    def read(at: float) -> None:
        wanted.pop()
        frame: FrameType | None = sys._getframe(2)
        if frame is not None and frame.f_code is not code:  # a spell's callback is in between
            frame = frame.f_back
        if frame is not None:
            watched.read.append((at, [read_counter(frame, counter) for counter in watched.counters]))

    def on_leave(_code: object, _offset: int, _value: Any = None) -> None:
        if current() == main_thread and not watched.short and len(moments) < MOST_MOMENTS:
            append(LOOP_LEFT)
            if not wanted:  # the numbers may begin again
                wanted.append(None)

    return on_jump, on_leave
