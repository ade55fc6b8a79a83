"""What a check of a program is, and the record of claims, by which each second of a program belongs to one finding, the
first to claim it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace

from jaxprof.analysis.programs import COMPILE, DEVICE
from jaxprof.analysis.programs.functions import WORTH_EXACT, row_seconds
from jaxprof.analysis.programs.result import ProgramResult
from jaxprof.analysis.programs.spots import Spot
from jaxprof.analysis.programs.verdict import interval
from jaxprof.base.values import dataclass, field, frozen
from jaxprof.events import Compiled
from jaxprof.events.finding import CatalogueEntry, Finding

WORTH = 0.05
"""Share of the hot loop that a fix must save if the figure rests on samples."""
SURELY = 0.03
"""Share of the hot loop that a fix must save at the lower end of the samples' interval."""
LEAST_SAMPLES = 6
"""Number of samples that a finding needs; fewer may be one odd moment."""


@dataclass(slots=True)
class Claims:
    """Record of the seconds of a program that findings have claimed; passed to each check in turn."""

    result: ProgramResult
    factor: float = 1.0
    """Factor on what a cost is compared with: below 1, lesser costs are findings, too."""
    taken: set[Hashable] = field(default_factory=set)
    waits: float | None = None
    """Seconds of waits for a value, if each brief iteration waits for one. The device has nothing to do before and
    after these waits, so calls of compiled functions are then work of the host."""

    is_lock_held: bool = False
    """Whether another thread of the program holds Python's lock while the loop needs it, so that one more does not
    help."""
    spared: float = 0.0
    """Seconds of the device's own work in the hot loop that fixes take away."""

    @property
    def work(self) -> float:
        """Seconds of the program's own work, for comparison with a cost."""
        return self.factor * self.result.work_seconds

    @property
    def loop(self) -> float:
        """Seconds of the hot loop, for comparison with a cost."""
        return self.factor * self.result.hot.seconds

    @property
    def least(self) -> float:
        """Sampled seconds below which nothing is reported."""
        return WORTH * min(self.work, self.loop)

    @property
    def left(self) -> float:
        """Seconds of the hot loop in which its device did not work, and nothing was compiled; no change of the loop on
        the host can save more."""
        device = self.result.hot.parts[DEVICE] - self.spared
        return self.steady - (device if self.waits is None else min(device, self.waits))

    @property
    def steady(self) -> float:
        """Seconds of the hot loop without its compilations, which are findings of their own."""
        return self.result.hot.seconds - self.result.hot.parts.get(COMPILE, 0.0)

    def free_spots(self, spots: Iterable[Spot]) -> list[Spot]:
        return [spot for spot in spots if spot not in self.taken]

    def free_rows(self, rows: Iterable[Compiled]) -> list[Compiled]:
        """Return the compilations that no finding has claimed."""
        return [row for row in rows if id(row) not in self.taken]

    def take(self, spots: Sequence[Spot] = (), rows: Sequence[Compiled] = ()) -> float:
        """Claim spots and rows, and return their seconds."""
        self.taken.update(spots)
        self.taken.update(map(id, rows))
        return sum(spot.seconds for spot in spots) + sum(map(row_seconds, rows))

    def limit_savings(self, findings: Sequence[Finding]) -> list[Finding]:
        """Limit the savings of all findings about the hot loop to `left`. Savings of time that JAX reported, and of
        pauses, are not part of that time."""
        of_loop = {}
        for each in findings:
            sampled = (each.saves_seconds or 0.0) - each.announced_seconds
            of_loop[id(each)] = max(0.0, sampled) if each.estimate and each.code != "paused" else 0.0
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
        """Return whether saving this many seconds is worth a finding.

        `samples` is the number of samples that the seconds rest on, None for exact seconds. Sampled seconds are
        compared with the hot loop, so that findings do not depend on its length.
        """
        work = self.work
        if work <= 0 or saves < WORTH_EXACT * work:
            return False
        if samples is None:
            return True
        if samples < self.factor * LEAST_SAMPLES:
            return False
        # compiling takes most of a short run, and almost nothing of a long run's loop
        work = min(work, self.loop)
        seen = self.result.samples_of_work
        low, _ = interval(min(1.0, samples / seen), seen) if seen > 0 else (0.0, 1.0)
        sure = low * seen / samples  # lower bound of the seconds, relative to the sampled value
        return saves >= WORTH * work and saves * sure >= SURELY * work


@frozen
class ProgramCheck(CatalogueEntry):
    """A finding about programs: its entry, and how it is found."""

    find: Callable[[ProgramResult, Claims], Iterator[Finding]]
    """Yields the findings of a program, without the fix that all cases share."""
    sampled: bool
    """Whether it says nothing if JAX works in another thread than the sampled one."""


def check(
    title: str, means: str, fix: str, *, sampled: bool = False
) -> Callable[[Callable[[ProgramResult, Claims], Iterator[Finding]]], ProgramCheck]:
    """Make a check of the function that finds; its code is the function's name."""
    return lambda find: ProgramCheck(find.__name__, title, means, fix, "program", "programs.md#findings", find, sampled)
