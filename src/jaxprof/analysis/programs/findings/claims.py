"""Each second of a program belongs to one finding: the first to claim it, and the more specific checks run first."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from jaxprof.analysis.programs.functions import row_seconds
from jaxprof.analysis.programs.verdict import DEVICE, interval

if TYPE_CHECKING:
    from jaxprof.analysis.finding import Finding
    from jaxprof.analysis.programs.result import ProgramResult
    from jaxprof.analysis.programs.verdict import Spot
    from jaxprof.events import Compiled

WORTH: Final = 0.05
"""Share of the hot loop that a fix must save where the figure rests on samples."""
SURELY: Final = 0.03
"""The same at the lower end of the interval that the samples allow."""
LEAST_SAMPLES: Final = 6
"""Samples that a finding needs: fewer may be one odd moment."""
WORTH_EXACT: Final = 0.01
"""Share of the program's own time (imports left out) that any fix must save; sufficient where JAX announced the
seconds."""


@dataclass(slots=True)
class Claims:
    """Which of a program's seconds are claimed; passed to each check in turn."""

    result: ProgramResult
    taken: set[Hashable] = field(default_factory=set)
    waits: float | None = None
    """Where each brief pass waits for a value: the seconds of these waits. The device has nothing to do before and
    after them, so that calls of compiled functions are the work of the host."""

    @property
    def work(self) -> float:
        """The program's own seconds."""
        return self.result.work_seconds

    @property
    def least(self) -> float:
        """Sampled seconds below this are not reported."""
        return WORTH * min(self.work, self.result.hot.seconds)

    @property
    def left(self) -> float:
        """Seconds of the hot loop in which its device was not at work: no change of what the host does saves more."""
        device = self.result.hot.parts[DEVICE]
        return self.result.hot.seconds - (device if self.waits is None else min(device, self.waits))

    def free_spots(self, spots: Iterable[Spot]) -> list[Spot]:
        """The spots that no finding has claimed."""
        return [spot for spot in spots if spot not in self.taken]

    def free_rows(self, rows: Iterable[Compiled]) -> list[Compiled]:
        """Compilations that no finding has claimed."""
        return [row for row in rows if id(row) not in self.taken]

    def take(self, spots: Sequence[Spot] = (), rows: Sequence[Compiled] = ()) -> float:
        """Claims them and returns the seconds."""
        self.taken.update(spots)
        self.taken.update(map(id, rows))
        return sum(spot.seconds for spot in spots) + sum(map(row_seconds, rows))

    def bounded(self, findings: Sequence[Finding]) -> list[Finding]:
        """The findings, of which those about the hot loop together save no more than there is beside its device's work.
        What they save of what JAX announced, and of times in which the program was stopped, is not of that loop."""
        of_loop = {id(each): _of_loop(each) for each in findings}
        whole, left = sum(of_loop.values()), max(0.0, self.left)
        if whole <= left:
            return list(findings)
        return [
            replace(each, saves_seconds=(each.saves_seconds or 0.0) - of_loop[id(each)] * (1 - left / whole))
            if of_loop[id(each)]
            else each
            for each in findings
        ]

    def worth(self, saves: float, samples: float | None = None) -> bool:
        """Whether saving this many seconds is worth a finding. `samples` is the number they rest on, None for exact
        seconds. Sampled seconds are compared with the hot loop, so that the findings do not depend on its
        length."""
        work = self.work
        if work <= 0 or saves < WORTH_EXACT * work:
            return False
        if samples is None:
            return True
        if samples < LEAST_SAMPLES:
            return False
        # compiling takes most of a short run, and almost nothing of a long run's loop
        work = min(work, self.result.hot.seconds)
        seen = self.result.samples_of_work
        low, _ = interval(min(1.0, samples / seen), seen) if seen > 0 else (0.0, 1.0)
        sure = low * seen / samples if samples > 0 else 0.0  # the lower bound that the samples give for their seconds
        return saves >= WORTH * work and saves * sure >= SURELY * work


def _of_loop(finding: Finding) -> float:
    """What a finding saves of the hot loop's sampled time."""
    if not finding.estimate or finding.code == "stopped":
        return 0.0
    return max(0.0, (finding.saves_seconds or 0.0) - finding.announced_seconds)
