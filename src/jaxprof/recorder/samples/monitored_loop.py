"""Watches one loop with `sys.monitoring` (Python 3.12 and later): each of its passes all the time, its lines in short
spells of bounded cost.

Samples of the stack are taken where the main thread releases the interpreter's lock, so a line that holds it is seldom
seen. Here every line of the loop records when it begins. Python 3.11 has nothing that a guest may use: a trace function
is the program's own, and a pending call that enters Python while one is set can repeat an instruction for ever. There
the times of lines are unknown.

Both share one tool number, since Python leaves only two free. Events that are local to a code object are one sum for a
tool, so the end of a spell leaves those of the passes on. One event a pass costs 0.2 to 0.4 µs: 2 %
of a pass of 20 µs, so that such passes are no longer told after the first few.
"""

from __future__ import annotations

import _thread
import functools
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from threading import RLock
from types import CodeType, FrameType
from typing import Any, Final, ParamSpec, TypeVar

from jaxprof.light_dataclass import dataclass, field
from jaxprof.recorder.guest import is_of_the_program
from jaxprof.recorder.samples.call_text import compiled_by
from jaxprof.recorder.samples.loops import Loop, loops_of
from jaxprof.recorder.samples.passes import LEFT as STRETCH_ENDS
from jaxprof.recorder.samples.passes import LoopCounter, Values, read_counter

_TOOLS: Final = (4, 3)
"""The tool numbers that Python leaves free; the named ones belong to debuggers, coverage tools and profilers."""
_MOST_SITES: Final = 100
_MOST_WAITING: Final = 100_000
"""Moments that wait for the sampler's thread. Without it, as in a process that the program forked, no more are kept."""

SHORTEST_SECONDS: Final = 50e-6
"""Of a pass that is told, at about 0.3 µs each. Measured by bench/passes.py."""
_FEW: Final = 50
"""Passes after which their mean is judged."""
_PAUSED: Final = 2
"""The longest of them, in which others may have had the processor, do not count."""

_P = ParamSpec("_P")
_R = TypeVar("_R")
_Jumped = Callable[[object, int, int], object]


MOST_EVENTS: Final = 500
"""Line events in one spell, at about 0.3 µs each."""
EVENT_SECONDS_AT_MOST: Final = 2e-6
"""What recording the beginning of a line takes of it at most: the least that any line took is that, such as the head of
a `for`, which takes next to nothing itself."""
JUMP: Final = -1
"""Takes the place of a line number: the loop begins another iteration."""
LEFT: Final = -2
"""Takes the place of a line number: the loop has been left, and the time until its next iteration is not part of it."""

Moments = list[tuple[int, float]]


@dataclass(slots=True)
class LineTimes:
    """What the spells of one sample window measured of a loop."""

    loop: Loop
    intervals: list[float] = field(default_factory=list)
    """Seconds of whole iterations."""
    seconds: dict[int, float] = field(default_factory=dict)
    """Seconds by line, including everything that the line calls, over those iterations."""
    hits: dict[int, int] = field(default_factory=dict)
    _least: float = EVENT_SECONDS_AT_MOST

    def own_seconds(self, line: int) -> float:
        """Seconds of a line, without what recording it took."""
        return max(0.0, self.seconds[line] - self.hits[line] * self._least)

    def take(self, moments: Moments) -> int:
        """Adds the time between the first and the last beginning of an iteration; returns the number of moments it has
        used up."""
        jumps = [index for index, (line, _) in enumerate(moments) if line == JUMP]
        if len(jumps) < 2:
            return jumps[0] if jumps else len(moments)
        began: float | None = None
        line: int | None = None
        since, took = 0.0, list[tuple[int, float]]()
        for mark, at in moments[jumps[0] : jumps[-1] + 1]:
            if line is not None or (mark == JUMP and began is not None):
                took.append((self.loop.line if line is None else line, at - since))
            if mark == JUMP:  # the line that the loop jumped to comes right after, and began here
                if began is not None:
                    self.intervals.append(at - began)
                    for number, seconds in took:
                        self._add(number, seconds)
                began, line, since, took = at, None, at, []
            elif mark == LEFT:
                began, line, took = None, None, []
            else:
                since = at if line is not None or began is None else since
                line = mark
        return jumps[-1]

    def _add(self, line: int, seconds: float) -> None:
        self._least = min(self._least, max(0.0, seconds))
        self.seconds[line] = self.seconds.get(line, 0.0) + max(0.0, seconds)
        self.hits[line] = self.hits.get(line, 0) + 1


@dataclass(slots=True)
class CallTimes:
    """What the spells measured of a function that the loop calls: its lines, over its whole calls."""

    calls: int = 0
    seconds: dict[int, float] = field(default_factory=dict)
    """By line, including everything that the line calls."""

    def take(self, moments: Moments) -> None:
        """Adds the calls that began and ended: `JUMP` is the beginning of one, `LEFT` its end."""
        took: dict[int, float] | None = None
        line, since = None, 0.0
        for mark, at in moments:
            if took is not None and line is not None:
                took[line] = took.get(line, 0.0) + max(0.0, at - since)
            if mark == JUMP:
                took, line = {}, None
            elif mark == LEFT:
                if took is not None:
                    self.calls += 1
                    for number, seconds in took.items():
                        self.seconds[number] = self.seconds.get(number, 0.0) + seconds
                took = line = None
            else:
                line, since = mark, at

    @property
    def each_call(self) -> float:
        """Mean seconds of one call."""
        return sum(self.seconds.values()) / self.calls if self.calls else 0.0


@dataclass(slots=True)
class WatchedPasses:
    """The ends of passes, as they come."""

    loop: Loop
    counters: tuple[LoopCounter, ...]
    moments: deque[float] = field(default_factory=lambda: deque(maxlen=_MOST_WAITING))
    """Monotonic, in seconds; `passes.LEFT` where the loop was left."""
    read: deque[tuple[float, Values]] = field(default_factory=lambda: deque(maxlen=_MOST_WAITING))
    """The values of the counters at some of these moments, always there before the moment is."""
    wanted: list[bool] = field(default_factory=list)
    """Looks at so many of the next passes, the last of the list first: True reads the counters at its end."""
    looked: list[float] = field(default_factory=list)
    """The ends of passes that were looked at. What lies between two of them is no pass where the loop was left; it is
    time all the same, of which telling the passes may take a part."""
    short: bool = False
    """Passes are too short for each to be told, and none is any longer."""

    def judge(self) -> None:
        """The lengths of the next passes decide whether they are too short."""
        self.looked.clear()
        self.wanted[:0] = [False] * (_FEW + 1)

    def ended(self, at: float) -> bool:
        """A pass that is looked at ended; whether it was the last one that needs to be told."""
        self.looked.append(at)
        if len(self.looked) > _FEW:
            lengths = sorted(after - before for before, after in pairwise(self.looked))
            usual = lengths[:-_PAUSED]
            self.looked.clear()
            self.short = sum(usual) < SHORTEST_SECONDS * len(usual)
        return self.short

    @property
    def overflowed(self) -> bool:
        """Whether moments may have been dropped."""
        return len(self.moments) >= _MOST_WAITING

    def take(self) -> tuple[list[float], dict[float, Values]]:
        """The moments since the last call, and the counters that were read at some of them, or right after."""
        moments = [self.moments.popleft() for _ in range(len(self.moments))]
        return moments, dict(self.read.popleft() for _ in range(len(self.read)))


def _in_turn(method: Callable[_P, _R]) -> Callable[_P, _R]:
    """The method, in which the tool's number does not change hands."""

    @functools.wraps(method)
    def in_turn(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        (lines,) = args[:1]
        with lines._turn:  # type: ignore[attr-defined]
            return method(*args, **kwargs)

    return in_turn


def _spell_callbacks(
    loop: Loop,
    moments: Moments,
    calls: Mapping[CodeType, Moments],
    watched: tuple[CodeType, _Jumped, _Jumped] | None,
    main_thread: int,
) -> dict[str, Callable[..., object]]:
    """What is called in a spell, by the name of the event. It fills `moments` and `calls`; `watched`: what else is
    called for this code. Closures: a variable of theirs costs half as much as an attribute."""
    begins, first, last = loop.begins, loop.line, loop.last_line
    disable, clock, current = _monitoring().DISABLE, time.perf_counter, _thread.get_ident
    most = MOST_EVENTS

    def jumped(code: object, offset: int, destination: int) -> object:
        further = watched[1](code, offset, destination) if watched is not None else disable
        if destination != begins or len(moments) >= most:
            return further
        if current() == main_thread:
            moments.append((JUMP, clock()))
        return None

    def called_at(code: CodeType, mark: int) -> object:
        if len(calls[code]) >= most:
            return disable
        if current() == main_thread:
            calls[code].append((mark, clock()))
        return None

    def started(code: CodeType, offset: int) -> object:
        if code in calls:
            return called_at(code, JUMP)
        return watched[2](code, offset, 0) if watched is not None else disable

    def lined(code: CodeType, line: int) -> object:
        if code in calls:
            return called_at(code, line)
        inside = first <= line <= last
        if len(moments) >= most or (not inside and moments and moments[-1][0] == LEFT):
            return disable  # lines outside cost nothing, except the one at which the loop is left
        if current() == main_thread:
            moments.append((line if inside else LEFT, clock()))
        return None

    def returned(code: CodeType, offset: int, value: Any) -> object:
        if code in calls:
            return called_at(code, LEFT)
        further = watched[2](code, offset, value) if watched is not None else disable
        if len(moments) >= most:
            return further
        if current() == main_thread:
            moments.append((LEFT, clock()))
        return None

    return {"JUMP": jumped, "LINE": lined, "PY_RETURN": returned, "PY_START": started}


class MonitoredLines:
    """For Python 3.12 and later. Any thread may switch it on and off."""

    def __init__(self, main_thread: int) -> None:
        self._main_thread = main_thread
        self._tool: int | None = None
        self._former: tuple[Any, Any] | None = None
        """Python's own `use_tool_id` and `get_tool`, while ours are in their place."""
        self._wanted_back = False
        """The program took our number, and keeps it."""
        self._turn = RLock()
        """Held for microseconds, and by the program's thread only to take the number."""
        self._code: CodeType | None = None
        self.compiled: deque[tuple[CodeType, int]] = deque(maxlen=_MOST_SITES)
        """Instructions that were seen to call a compiled function: code, and offset."""
        self._called: list[CodeType] = []
        """Of the spell: functions whose lines are timed beside those of the loop."""
        self._watched: tuple[CodeType, _Jumped, _Jumped] | None = None
        """The code whose passes are watched, and what is called at the end of one, and where the function begins or
        returns."""

    @_in_turn
    def begin(self, loop: Loop, called: Sequence[CodeType] = ()) -> tuple[Moments, dict[CodeType, Moments]] | None:
        """Begins a spell, which fills the returned lists: of the loop, and of each function that is `called` in it;
        None if Python has no free number for another tool."""
        if self._tool is None and not self._take_tool():
            return None
        moments: Moments = []
        own = self._watched[0] if self._watched is not None else None
        calls: dict[CodeType, Moments] = {code: [] for code in called if code not in (loop.code, own)}
        watched = self._watched if self._watched is not None and self._watched[0] is loop.code else None
        self.end()
        self._code, self._called = loop.code, list(calls)
        events = _monitoring().events
        spell = _spell_callbacks(loop, moments, calls, watched, self._main_thread)
        for name, callback in (*spell.items(), ("CALL", self._calling)):
            _monitoring().register_callback(self._tool, getattr(events, name), callback)
        for code in self._called:
            _monitoring().set_local_events(
                self._tool, code, events.LINE | events.PY_START | events.PY_RETURN | events.CALL
            )
        self._set(loop.code, spell=True)
        return moments, calls

    def _calling(self, code: CodeType, offset: int, callee: object, _first: object) -> object:
        try:
            if compiled_by(callee) == "user":
                self.compiled.append((code, offset))
        except Exception as error:  # it would be one of the program's
            if is_of_the_program(error):
                raise
        return _monitoring().DISABLE

    @_in_turn
    def end(self) -> None:
        """Ends the spell."""
        if self._code is not None and self._tool is not None:
            for code in self._called:
                _monitoring().set_local_events(self._tool, code, 0)
            self._set(self._code, spell=False)
            self._call_watched()
        self._code, self._called = None, []

    @_in_turn
    def watch(self, loop: Loop, counters: tuple[LoopCounter, ...]) -> WatchedPasses | None:
        """From now on the end of each pass is told, of this loop instead of an earlier one; None if Python has no free
        number for another tool."""
        if self._tool is None and not self._take_tool():
            return None
        self.unwatch()
        told = WatchedPasses(loop, counters)
        self._watched = (loop.code, *_callbacks(told, self._main_thread))
        self._call_watched()
        self._set(loop.code, spell=self._code is loop.code)
        return told

    @_in_turn
    def unwatch(self) -> None:
        """Ends the spell, and no longer tells the ends of passes."""
        self.end()
        if self._watched is not None and self._tool is not None:
            code, self._watched = self._watched[0], None
            self._set(code, spell=False)
            self._call_watched()

    @_in_turn
    def close(self) -> None:
        """Gives the tool number back."""
        self.unwatch()
        if self._tool is not None:
            events = _monitoring().events
            for event in (events.JUMP, events.LINE, events.PY_RETURN, events.PY_START, events.CALL):
                _monitoring().register_callback(self._tool, event, None)
            _monitoring().free_tool_id(self._tool)
            self._tool = None
        if self._former is not None:
            use, get = self._former
            self._former = None
            if getattr(_monitoring().use_tool_id, "__wrapped__", None) is use:  # else somebody has replaced it since
                _monitoring().use_tool_id, _monitoring().get_tool = use, get

    def _set(self, code: CodeType, *, spell: bool) -> None:
        """The events that Python reports of this code: an event that is switched on anew is so at all places, those
        included at which its callback had it switched off."""
        events = _monitoring().events
        wanted = 0
        if self._watched is not None and self._watched[0] is code:
            wanted |= events.JUMP | events.PY_START | events.PY_RETURN
        if spell:
            wanted |= events.JUMP | events.LINE | events.PY_RETURN | events.CALL
        _monitoring().set_local_events(self._tool, code, wanted)

    def _call_watched(self) -> None:
        events = _monitoring().events
        jumped, left = self._watched[1:] if self._watched is not None else (None, None)
        for event, callback in ((events.JUMP, jumped), (events.PY_START, left), (events.PY_RETURN, left)):
            _monitoring().register_callback(self._tool, event, callback)

    def _take_tool(self) -> bool:
        if self._wanted_back:
            return False
        monitoring = _monitoring()
        for number in _TOOLS:
            if monitoring.get_tool(number) is None:
                try:
                    monitoring.use_tool_id(number, "jaxprof")
                except ValueError:  # another tool was faster
                    continue
                self._tool = number
                self._give_way()
                return True
        return False

    def _give_way(self) -> None:
        """For the program our number is free: it sees no tool there, and gets the number when it asks for it."""
        monitoring, owner = _monitoring(), os.getpid()
        use, get = self._former = monitoring.use_tool_id, monitoring.get_tool

        @functools.wraps(use)
        def use_tool_id(tool_id: int, name: str, /) -> None:
            if tool_id == self._tool:
                self._wanted_back = True
                if os.getpid() != owner:  # forked: whoever had the turn is not here
                    self._turn = RLock()
                self.close()
            use(tool_id, name)

        @functools.wraps(get)
        def get_tool(tool_id: int, /) -> str | None:
            name: str | None = get(tool_id)
            return None if tool_id == self._tool else name

        monitoring.use_tool_id, monitoring.get_tool = use_tool_id, get_tool


def _callbacks(told: WatchedPasses, main_thread: int) -> tuple[_Jumped, _Jumped]:
    """What Python calls at each jump of the loop's code, and where the function begins or returns. An exception here
    would be one of the program's."""
    code, begins = told.loop.code, told.loop.begins
    around = {
        other.begins for other in loops_of(told.loop.code) if other.begins < begins and told.loop.ends <= other.ends
    }
    disable, clock, current, append = _monitoring().DISABLE, time.monotonic, _thread.get_ident, told.moments.append
    wanted = told.wanted

    def jumped(_code: object, _offset: int, destination: int) -> object:
        if destination == begins:
            if current() == main_thread:
                if wanted:
                    return look()
                append(clock())
            return None
        if destination in around:  # the loop was left, and the one around it goes on
            left(_code, _offset)
            return None
        return disable

    def look() -> object:
        if told.short:
            return disable
        at = clock()
        if wanted and wanted.pop():
            frame: FrameType | None = sys._getframe(2)
            if frame is not None and frame.f_code is not code:  # a spell's callback is in between
                frame = frame.f_back
            if frame is not None:
                told.read.append((at, [read_counter(frame, counter) for counter in told.counters]))
        append(at)
        if not told.ended(at):
            return None
        append(STRETCH_ENDS)
        wanted.append(False)  # comes here again, should a spell switch the event on
        return disable

    def left(_code: object, _offset: int, _value: Any = None) -> None:
        if current() == main_thread and not told.short:
            append(STRETCH_ENDS)
            if not (wanted and wanted[-1]):  # the numbers may begin again
                wanted.append(True)

    return jumped, left


def _monitoring() -> Any:
    return sys.monitoring  # type: ignore[attr-defined,unused-ignore]
