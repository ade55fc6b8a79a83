"""When the launches of compared runs end, where their number is not fixed: at a width of the intervals, or in time.

Launches come before the length of their turns: two processes of one program differ, and what disturbs the machine for a
second disturbs one launch. So turns are as short as it takes for `WANTED_LAUNCHES` to fit, and no shorter than shows
something.

It never looks at a verdict: whoever measures until one comes finds one for two runs of the same program.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

from jaxprof.runner.planning import PlannedRun
from jaxprof.session import Session

LEAST_LAUNCHES = 3
"""Before that nothing ends them. Two say next to nothing: their interval is six times as wide as that of five."""
WANTED_LAUNCHES = 5
"""So many have to fit into the time, if their turns can be made short enough."""
LEAST_TURNS_SECONDS = 1.0
"""The turns of a launch last at least so long."""
LONGER = 1.5
"""The least launches may take so many times the time that was given, or `LEAST_SECONDS`; else there is one launch."""
LEAST_SECONDS = 120.0


class LaunchRule:
    """The rule of one group of runs. Its time begins when it is made."""

    def __init__(
        self, seconds: float | None, half_width: float | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`seconds`: of the whole group; `half_width`: of each speed-up's 95 % interval, as a share. None: no limit."""
        self._seconds, self._half_width, self._clock = seconds, half_width, clock
        self._began = self._last = clock()
        self._took: list[float] = []

    @classmethod
    def of(cls, plans: Sequence[PlannedRun]) -> LaunchRule | None:
        """The rule that the baseline's plan states; None if the runs are no sides of a comparison."""
        head = plans[0]
        if not head.spec.side:
            return None
        return cls(head.group_seconds, head.spec.until_half_width)

    def is_over(self, turns_seconds: float = math.inf) -> bool:
        """Whether the turns of this launch are over, which have lasted `turns_seconds`: so that the launches that are
        wanted fit into the time."""
        if self._seconds is None or turns_seconds < LEAST_TURNS_SECONDS:
            return False
        begun = self._last - self._began
        launches = max(1, WANTED_LAUNCHES - len(self._took))
        return self._clock() - self._last >= (self._seconds - begun) / launches

    def ends(self, session: Session, runs: Sequence[str]) -> bool:
        """Called after each launch: whether there is no other. `runs`: those still measured, the baseline first."""
        now = self._clock()
        self._took.append(now - self._last)
        self._last = now
        expected = max(self._took[1:] or self._took)  # the first one alone captures, checks and times copies
        missing = max(1, LEAST_LAUNCHES - len(self._took))
        if self._seconds is not None and now - self._began + missing * expected > self._allowed(self._seconds):
            return True
        return len(self._took) >= LEAST_LAUNCHES and self._narrow(session, runs)

    def _allowed(self, seconds: float) -> float:
        return seconds if len(self._took) >= LEAST_LAUNCHES else max(LONGER * seconds, LEAST_SECONDS)

    def _narrow(self, session: Session, runs: Sequence[str]) -> bool:
        from jaxprof.analysis.speedup import compared
        from jaxprof.stats import narrow_enough

        if self._half_width is None:
            return False
        baseline = session.runs[runs[0]]
        others = [session.runs[run] for run in runs[1:]]
        return all(
            narrow_enough(compared(session, baseline, run), self._half_width)
            for run in others
            if not run.plan.is_control
        )
