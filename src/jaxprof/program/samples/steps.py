"""Iterations of the program's hottest loop, counted where Python says that it jumps back (`sys.monitoring`, 3.12).

Only the jumps of one code object are watched, all others in it are switched off when they first happen, and after a
number of iterations the watching pauses until the next stretch: a loop of microseconds is measured by samples of its
intervals, one of milliseconds in full. Before Python 3.12 there is no way that costs nothing, and nothing is counted.
"""

from __future__ import annotations

import _thread
import sys
import time
from itertools import pairwise
from typing import Any, Final

from jaxprof.events import StepsCounted
from jaxprof.program.samples.loops import Loop

MOST_JUMPS: Final = 2_000
"""Watched in a stretch, at some 0.3 µs each."""
MOST_INTERVALS: Final = 100
LEAST_WEIGHT_SECONDS: Final = 0.3
"""A loop is counted once the program was seen in it for so long."""
CHANGE_FACTOR: Final = 2.0
"""Another loop is counted instead when the program was in it so much more of late."""
FADING: Final = 0.7
"""What was seen in a stretch counts by this factor less in the next."""
_TOOLS: Final = (4, 3)
"""The numbers that Python leaves to whoever comes; the named ones belong to debuggers, coverage and profilers."""


class StepCounter:
    """`saw` for each sample, `collect` at the end of each stretch, `close` at the end."""

    def __init__(self, main_thread: int) -> None:
        self._main_thread = main_thread
        self._weights: dict[tuple[int, int], tuple[Loop, float]] = {}
        self._loop: Loop | None = None
        self._tool: int | None = None
        self._times: list[float] = []
        self._unavailable = sys.version_info < (3, 12)

    def saw(self, loop: Loop | None, seconds: float) -> None:
        """The program was in this loop for about so long."""
        if loop is not None and not self._unavailable:
            key = (id(loop.code), loop.begins)
            known = self._weights.get(key)
            self._weights[key] = (loop, seconds + (known[1] if known else 0.0))

    def collect(self, now: float) -> StepsCounted | None:
        """What was counted since the last time; None where there are no two iterations. Chooses the loop anew."""
        if self._unavailable:
            return None
        times, loop = self._times, self._loop
        event = None
        if loop is not None and len(times) >= 2:
            event = _counted(loop, times, now)
        self._choose()
        self._arm()
        return event

    def close(self) -> None:
        """Watches nothing any more."""
        self._disarm(self._loop)
        self._loop = None
        if self._tool is not None:
            monitoring = _monitoring()
            monitoring.register_callback(self._tool, monitoring.events.JUMP, None)
            monitoring.free_tool_id(self._tool)
            self._tool = None
        self._unavailable = True

    def _choose(self) -> None:
        """The loop of most weight; the one that is counted keeps its place unless another has clearly more."""
        if not self._weights:
            return
        best, weight = max(self._weights.values(), key=lambda item: item[1])
        current = self._weights.get((id(self._loop.code), self._loop.begins)) if self._loop is not None else None
        if weight >= LEAST_WEIGHT_SECONDS and (current is None or weight > CHANGE_FACTOR * current[1]):
            self._disarm(self._loop)
            self._loop = best
        faded = {key: (loop, FADING * seconds) for key, (loop, seconds) in self._weights.items()}
        self._weights = {key: item for key, item in faded.items() if item[1] > 0.001}

    def _arm(self) -> None:
        """Switches the jumps of the chosen loop's code on again, and begins a new list of times."""
        loop = self._loop
        if loop is None:
            return
        monitoring = _monitoring()
        if self._tool is None and not self._take_tool():
            self._unavailable = True
            return
        times: list[float] = []
        self._times = times
        begins, main_thread = loop.begins, self._main_thread
        disable, clock, current = monitoring.DISABLE, time.perf_counter, _thread.get_ident

        def jumped(code: object, offset: int, destination: int) -> object:
            if destination != begins or len(times) >= MOST_JUMPS:
                return disable
            if current() == main_thread:
                times.append(clock())
            return None

        monitoring.register_callback(self._tool, monitoring.events.JUMP, jumped)
        monitoring.set_local_events(self._tool, loop.code, 0)
        monitoring.set_local_events(self._tool, loop.code, monitoring.events.JUMP)

    def _disarm(self, loop: Loop | None) -> None:
        if loop is not None and self._tool is not None:
            _monitoring().set_local_events(self._tool, loop.code, 0)
        self._times = []

    def _take_tool(self) -> bool:
        monitoring = _monitoring()
        for number in _TOOLS:
            if monitoring.get_tool(number) is None:
                try:
                    monitoring.use_tool_id(number, "jaxprof")
                except ValueError:  # somebody was faster
                    continue
                self._tool = number
                return True
        return False


def _monitoring() -> Any:
    return sys.monitoring  # type: ignore[attr-defined,unused-ignore]


def _counted(loop: Loop, times: list[float], now: float) -> StepsCounted:
    times = list(times)
    intervals = [after - before for before, after in pairwise(times)]
    every = max(1, -(-len(intervals) // MOST_INTERVALS))
    return StepsCounted(
        monotonic_seconds=now,
        where=loop.place,
        found_by="monitoring",
        count=len(intervals),
        seconds=times[-1] - times[0],
        intervals_seconds=intervals[::every],
    )
