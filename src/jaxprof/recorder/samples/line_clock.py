"""Times the lines of one loop with Python's own events while the program runs: in short spells of bounded cost.

Samples of the stack are taken where the main thread releases the interpreter's lock, so a line that holds it is seldom
seen. Here every line of the loop records when it begins. From Python 3.12 on, `sys.monitoring` reports this for one
code object alone. Earlier versions need a trace function, which only the main thread can set for itself: a pending call
(`Py_AddPendingCall`) sets it for some milliseconds, unless another tool is tracing.
"""

from __future__ import annotations

import _thread
import contextlib
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Final

from jaxprof.recorder.samples.loops import Loop

MOST_EVENTS: Final = 500
"""Line events in one spell, at about 0.3 µs each."""
SPELL_SECONDS: Final = 0.03
"""Length of a spell of tracing: meanwhile each call of a Python function costs about 0.3 µs."""
LONGEST_SPELL_SECONDS: Final = 0.6
TRACED_SHARE: Final = 0.05
"""The share of the time that spells of tracing may take."""
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
        self.seconds[line] = self.seconds.get(line, 0.0) + max(0.0, seconds)
        self.hits[line] = self.hits.get(line, 0) + 1


class TracedLines:
    """For Python 3.11: a trace function in the main thread, set and removed by a pending call."""

    found_by: Final = "tracing"
    goes_on: Final = False

    def __init__(self, main_thread: int, clock: Callable[[], float] = time.perf_counter) -> None:
        self._main_thread, self._clock = main_thread, clock
        self._spell = SPELL_SECONDS
        self._next = 0.0
        self._wanted: tuple[Loop, Moments] | None = None
        self._last: Moments | None = None
        self.at_jump: Callable[[FrameType, bool], None] | None = None
        """Called in the main thread when an iteration begins within a spell; true for the first one of a spell."""
        self.over = True
        """Whether the last requested spell has ended."""
        self._call = pending_call(self._set)

    @property
    def usable(self) -> bool:
        """Whether this Python lets another thread request a call in the main thread."""
        return self._call is not None

    def begin(self, loop: Loop) -> Moments | None:
        """Requests a spell, like `MonitoredLines.begin`; returns an empty one if the last spell ended too recently."""
        if self._call is None:
            return None
        if self._last is not None and sum(line == JUMP for line, _ in self._last) < 3:
            self._spell = min(LONGEST_SPELL_SECONDS, 2 * self._spell)
            if self._spell < LONGEST_SPELL_SECONDS:
                self._next = 0.0  # until the spells are long enough for a few iterations, which happens soon
        moments: Moments = []
        if self._clock() < self._next:
            self._last = None
            return moments
        self._wanted, self._last = (loop, moments), moments
        self._next = self._clock() + self._spell / TRACED_SHARE
        self.over = not self._call()
        return moments

    def end(self) -> None:
        """No new spell begins. A running one ends by itself, which `over` reports."""
        self._wanted = None

    def close(self) -> None:
        """Like `end`; the main thread removes its trace function at the next line or call."""
        self.end()
        self._spell = 0.0

    def _set(self) -> None:
        """Runs in the main thread, between two of its instructions."""
        wanted, self._wanted = self._wanted, None
        self.over = True
        if wanted is None or sys.gettrace() is not None or _thread.get_ident() != self._main_thread:
            return
        loop, moments = wanted
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and not (frame.f_code is loop.code and loop.begins <= frame.f_lasti <= loop.ends):
            frame = frame.f_back
        if frame is None or frame.f_trace is not None:
            return
        watched, clock, ends = frame, self._clock, self._clock() + self._spell
        begins, first, last = loop.begins, loop.line, loop.last_line

        def stop() -> None:
            if sys.gettrace() is called:
                sys.settrace(None)
            watched.f_trace = None
            self.over = True

        def called(_frame: FrameType, _event: str, _argument: object) -> None:
            if clock() > ends or not self._spell:
                stop()

        def lined(inner: FrameType, event: str, _argument: object) -> Any:
            now = clock()
            if event == "line":
                if inner.f_lasti == begins:
                    moments.append((JUMP, now))
                    if self.at_jump is not None:
                        self.at_jump(inner, len(moments) == 1 or all(mark != JUMP for mark, _ in moments[:-1]))
                moments.append((inner.f_lineno if first <= inner.f_lineno <= last else LEFT, now))
            if event == "return" or now > ends or len(moments) >= MOST_EVENTS or not self._spell:
                stop()
                return None  # what is returned here would become the frame's trace function again
            return lined

        self.over = False
        watched.f_trace = lined
        sys.settrace(called)


def pending_call(function: Callable[[], None]) -> Callable[[], bool] | None:
    """A function that asks the main thread to call `function` soon; None if this Python has none."""
    try:
        import ctypes

        add = ctypes.pythonapi.Py_AddPendingCall
    except (ImportError, AttributeError, OSError):
        return None

    def run(_: object) -> int:
        with contextlib.suppress(Exception):  # a traceback would go to the program's stderr; without one, no times
            function()
        return 0

    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
    kept = kind(run)
    add.argtypes, add.restype = [kind, ctypes.c_void_p], ctypes.c_int
    return lambda: add(kept, None) == 0
