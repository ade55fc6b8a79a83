"""What the checks of a program share: what a check is; the record of claims, by which each second of a program belongs
to one finding, the first to claim it; and about the hot loop, whether lines are worth changing, and how they and their
cost are named."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace

from jaxprof.analysis.programs import COMPILE, DEVICE
from jaxprof.analysis.programs.functions import WORTH_EXACT, row_seconds
from jaxprof.analysis.programs.result import ProgramResult, is_single
from jaxprof.analysis.programs.spots import Spot
from jaxprof.analysis.programs.verdict import interval
from jaxprof.base.grouping import totals
from jaxprof.base.text import safe, shorten
from jaxprof.base.units import counted, percent, seconds
from jaxprof.base.values import dataclass, field, frozen
from jaxprof.events import Compiled, SourceLocation
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

    def hides(self, spot: Spot) -> bool:
        """Return whether time of the hot loop is hidden behind its device, which is behind the loop. Python that runs
        is not where the device is made of the same processors, nor is what a compiled function calls."""
        loop, known = self.result.hot, self.result.run.environment is not None
        beside = spot.state == "waiting" or (known and not loop.shares_processors)
        if self.result.behind_seconds is None or not beside:
            return False
        return loop.part(spot) != DEVICE and spot.kind != "callback"

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


LARGE_BYTES = 1 << 20
"""Bytes of an array from which fetching it counts as a copy, not as a wait for a value."""
FEW_ITERATIONS = 0.5
"""Share of the loop's iterations below which a line already runs only every few iterations."""
LEAST_OF_LOOP = 0.1
"""Share of the hot loop that the lines of a finding must take; below it they are not the first thing to change."""
KEPT_SHARE = 0.1
"""Share of a cost that remains if it is paid every ten iterations, or once for many."""
LINES_NAMED = 3
_LIBRARY_LOOP = (
    "The loop is in {0}, which is not yours to change: give it options by which it does less in each iteration (no "
    "progress bar, log, checks or callbacks) or more work in fewer ones (larger batches or chunks), or call a part of "
    "{0} that loops in a compiled function."
)
_STALLED = (
    "One iteration took most of it, so that doing it less often saves nothing: look at what the line waited for then "
    "(a file, a server, a lock), and give it a timeout."
)
PACKAGE = re.compile(r"[/\\](?:site|dist)-packages[/\\](\w+)")


def finding_of_lines(
    result: ProgramResult,
    claims: Claims,
    what: str,
    spots: Sequence[Spot],
    saves: float,
    within: str = "",
    own_fix: str | None = None,
    *,
    of_library: str = _LIBRARY_LOOP,
) -> Finding:
    """Claim the spots, and return the finding about their lines; `within` follows their cost in its sentence. What is
    done in a library's loop is changed where the user calls it, unless the fix `of_library` is empty."""
    took = claims.take(spots)
    if of_library and (package := package_of_loop(result)):
        own_fix = of_library.format(safe(package))
    lines = {spot.location for spot in spots}
    stalled = [lasted for location, lasted in result.stalls if location in lines]
    if stalled and sum(stalled) > took / 2:
        within += f", {seconds(min(sum(stalled), took), 2)} of it in {counted(len(stalled), 'iteration')}"
        own_fix = _STALLED if len(stalled) == 1 else own_fix
    return Finding(
        f"{what}: {_calls_text(result, spots)}, {cost_text(result, took)}{within}{_lines_text(result, spots)}",
        lines_of(result, spots),
        own_fix=own_fix,
        seconds=took,
        saves_seconds=saves * _visible_share(claims, spots),
        estimate=True,
    )


def package_of_loop(result: ProgramResult) -> str:
    """Return the package whose code has the hot loop; empty if it is the user's, or if there is none."""
    package = PACKAGE.search(result.hot.key[0]) if result.hot.library and result.hot.key is not None else None
    return package[1] if package is not None else ""


def is_in_loop(result: ProgramResult, spot: Spot) -> bool:
    """Return whether a spot of the hot loop is in a loop: if there is no hot one, in any of the user's."""
    return any(result.hot.key is not None or not site.library for site in spot.sites)


def is_of_compiled_function(result: ProgramResult, spot: Spot) -> bool:
    """Return whether the call of a compiled function itself waits. Equinox's `filter_jit` does, to raise errors of the
    device where they arise."""
    name = spot.call.removesuffix("()").rpartition(".")[2]
    return bool(name) and any(row.function == name and not is_single(row) for row in result.compiles)


def most_through(spots: Sequence[Spot]) -> str:
    """Return the library or callback that takes most of the spots' time; empty if most time goes through none."""
    took = totals((spot.through, spot.seconds) for spot in spots)
    return max(took, key=lambda name: took[name], default="")


def sum_seconds(spots: Sequence[Spot] | Iterator[Spot]) -> float:
    return sum(spot.seconds for spot in spots)


def sum_samples(spots: Sequence[Spot]) -> float:
    return sum(spot.samples for spot in spots)


def is_large_part(claims: Claims, spots: Sequence[Spot]) -> bool:
    """Return whether the spots take a part of the loop that is worth changing."""
    return sum_seconds(spots) >= LEAST_OF_LOOP * claims.factor * claims.steady


def is_worth_changing(claims: Claims, spots: Sequence[Spot], saves: float) -> bool:
    """Return whether there are spots, which take a part of the loop that is worth changing, and enough is saved."""
    if not spots or not is_large_part(claims, spots):
        return False
    return claims.worth(saves * _visible_share(claims, spots), sum_samples(spots))


def _visible_share(claims: Claims, spots: Sequence[Spot]) -> float:
    """Return the share of the spots' time that is not hidden behind the device."""
    took = sum_seconds(spots)
    return 1 - sum_seconds(spot for spot in spots if claims.hides(spot)) / took if took > 0 else 1.0


def in_each_iteration(result: ProgramResult, spots: Sequence[Spot]) -> bool:
    """Return whether the line of most of these spots does its work in every iteration, as far as timings show. It must
    begin in most iterations, and its time must not come from only a few of them: those that wait for a processor are
    long, too, so that the length of a typical one decides where iterations are uneven."""
    loop = result.hot
    if loop.key is None:
        return False
    at = [(site, spot.seconds) for spot in spots if (site := spot.site_in(loop.key)) is not None]
    by_line = totals((site.line, took) for site, took in at)
    conditional = {site.line for site, _ in at if site.conditional}
    line = max(by_line, key=lambda number: by_line[number], default=None)
    if line is None or not loop.times.count:
        return line is not None and line not in conditional
    timed, hits = loop.times.by_line.get(line, (0.0, 0))
    if loop.times.uneven * loop.seconds > FEW_ITERATIONS * sum_seconds(spots):
        sites = ((spot.site_in(loop.key), spot.seconds) for spot in loop.spots)
        at_line = sum(took for site, took in sites if site is not None and site.line == line)
        beside = (loop.times.seconds - timed * by_line[line] / at_line) / loop.times.count
        # Half of the iterations do not take twice the mean of all else in the loop, unless they do this work.
        if (loop.times.median_seconds or 0.0) <= 2 * beside:
            return False
    return hits >= FEW_ITERATIONS * loop.times.count


def is_seldom(result: ProgramResult, spots: Sequence[Spot]) -> bool:
    """Return whether the lines of most of these spots do their work in few of the loop's iterations."""
    return result.hot.key is not None and not in_each_iteration(result, spots)


def cost_text(result: ProgramResult, took: float) -> str:
    whole = result.hot.seconds
    share = f", {percent(took / whole)} of the loop" if whole > 0 and result.hot.key is not None else ""
    return f"about {seconds(took, 2)}{share}"


def seconds_by(spots: Sequence[Spot], key: Callable[[Spot], SourceLocation]) -> dict[SourceLocation, float]:
    """Return the seconds of the spots by a location of each, longest first."""
    by_place = totals((key(spot), spot.seconds) for spot in spots)
    return dict(sorted(by_place.items(), key=lambda item: -item[1]))


def loop_line(result: ProgramResult, spot: Spot) -> SourceLocation:
    """Return the line of the loop itself that leads to a spot."""
    site = spot.site_in(result.hot.key)
    return site.location if site is not None else spot.location


def lines_of(result: ProgramResult, spots: Sequence[Spot]) -> tuple[SourceLocation, ...]:
    """Return the lines of the loop that lead to the spots, unless they are a library's, then the most expensive lines
    below them."""
    at_loop = {} if result.hot.library else seconds_by(spots, lambda spot: loop_line(result, spot))
    below = seconds_by(spots, lambda spot: spot.location)
    return tuple(dict.fromkeys([*list(at_loop)[:LINES_NAMED], *list(below)[:LINES_NAMED]]))


def _lines_text(result: ProgramResult, spots: Sequence[Spot]) -> str:
    """Return text such as `: train.py:91 (6.0 s), train.py:95 (1.2 s)`; empty for a line the finding names."""
    lines = seconds_by(spots, lambda spot: spot.location)
    if list(lines) == [loop_line(result, spots[0])] or (result.hot.library and len(lines) == 1):
        return ""
    named = [f"{at.short(result.directory)} ({seconds(took, 2)})" for at, took in lines.items()]
    more_lines = len(named) - LINES_NAMED
    more = f" and {counted(more_lines, 'more line')}" if more_lines > 0 else ""
    return f": {safe(', '.join(named[:LINES_NAMED]))}{more}"


def _calls_text(result: ProgramResult, spots: Sequence[Spot]) -> str:
    """Name the calls of the most expensive lines: in the loop, else below it."""
    at: dict[SourceLocation, str] = {}
    for spot in result.spots:
        at.setdefault(spot.location, spot.call)

    def call_of(spot: Spot) -> str:
        return spot.call or at.get(spot.location) or next((site.call for site in spot.sites if site.call), "")

    calls = totals((call, spot.seconds) for spot in spots if (call := call_of(spot)))
    ranked = sorted(calls, key=lambda call: -calls[call])
    # parts of an expression that is already named add nothing
    whole = [call for call in ranked if not any(call != other and call in other for other in ranked)]
    without = "a statement without a call" if spots[0].state == "waiting" else "Python"
    return safe(shorten(", ".join(whole[:LINES_NAMED]), 80)) if whole else without
