"""What is known of the lines of one loop from the moments at which they began, in short spells of bounded cost.

Samples of the stack are taken where the main thread releases the interpreter's lock, so a line that holds it is seldom
seen. Here every line of the loop records when it begins. From Python 3.12 on, `sys.monitoring` reports this for one
code object alone (`monitored_loop`). Python 3.11 has nothing that a guest may use: a trace function is the program's
own, and a pending call that enters Python while one is set can repeat an instruction for ever. There the times of lines
are unknown.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from jaxprof.recorder.samples.loops import Loop

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
