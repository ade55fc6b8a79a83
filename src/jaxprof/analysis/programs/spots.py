"""The spots of the main thread, as finely as recorded: a line, its activity, and the loops around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Final

from jaxprof.events import STAGES, LoopSite, ProgramSampled, SourceLocation, StepsCounted
from jaxprof.light_dataclass import dataclass

WORKS: Final = frozenset({"compiled", "inline", "fed", "callback", "dispatch", "transfer", "sync", *STAGES})
"""Kinds of work that JAX does."""
_KINDS: Final = {"device_busy": "compiled", "host_busy": "host", "waiting": "host"}
"""Kind by state, for a session that was recorded before lines had a kind."""

BRIEF_SECONDS: Final = 1e-3
"""Mean iteration below which the median is the better figure. Most longer iterations may only have queued their step
while a few waited for all of them: then the mean is right."""

TIMED_SHARE: Final = 0.5
"""Share of a line's sampled time from which on its timed iterations count as most of the work."""
SPELL_EVENTS: Final = 500
SPELL_SECONDS: Final = 0.03
"""What the recorder takes of a loop in one spell of timing: so many beginnings of iterations and lines, or at least so
long."""

LoopKey = tuple[str, str, int]
"""File, function and first line of a loop."""


@dataclass(frozen=True, slots=True)
class Spot:
    """What one line of the user's source took in one kind of work: an estimate from samples."""

    place: SourceLocation
    state: str
    kind: str
    """As in `ProgramSampled.lines`."""
    call: str
    sites: tuple[LoopSite, ...]
    """The loops around it, innermost first."""
    seconds: float
    samples: float
    """Number of samples that it rests on."""
    bytes: int | None = None
    """Size of the largest array that was read there."""
    through: str = ""
    """The library that calls from there, such as `flax.nnx`."""

    def site_in(self, loop: LoopKey) -> LoopSite | None:
        """Its place in a loop; None outside that loop."""
        return next((site for site in self.sites if site.key == loop), None)


@dataclass(frozen=True, slots=True)
class LoopTimes:
    """The lines of a loop, timed while the program ran."""

    iterations: int
    seconds: float
    """Total of those iterations."""
    by_line: Mapping[int, tuple[float, int]]
    """Seconds, including all that the line calls, and how often it began."""
    typical: float = 1.0
    """The median iteration over the mean one: on a busy machine some wait long for a processor."""
    most_events: int = 0
    """Beginnings of iterations and of lines in the sample window that holds the most."""
    uneven: float = 0.0
    """Share of their time that iterations take beyond twice the median one, the longest of all left out: it may have
    compiled. A line that begins in all of them can still do its work in a few: `if i % 50 == 0: print(float(loss))`."""

    def each(self, line: int) -> float | None:
        """Seconds that a line takes once, in a typical iteration; None if it was not timed."""
        took, hits = self.by_line.get(line, (0.0, 0))
        return self.typical * took / hits if hits else None

    def accounts_for(self, line: int, sampled_seconds: float) -> bool:
        """Whether iterations like the timed ones can make up what samples saw at a line: either the timed ones are most
        of it, or there were as many as a spell of timing holds. Brief iterations fill a spell; if they did not, there
        were only a few of them. True where nothing was timed."""
        took, hits = self.by_line.get(line, (0.0, 0))
        if not hits or not self.iterations or sampled_seconds <= took / TIMED_SHARE:
            return True
        events = self.iterations + sum(count for _, count in self.by_line.values())
        a_spell = min(SPELL_EVENTS, SPELL_SECONDS * events / self.seconds) if self.seconds > 0 else SPELL_EVENTS
        return self.most_events >= a_spell / 2


class Spots:
    """Sums over the sample windows of one program. Takes each window once."""

    __slots__ = ("_found", "consumed")

    def __init__(self) -> None:
        self.consumed = 0
        self._found: dict[tuple[SourceLocation, str, str, str, tuple[LoopSite, ...], str], list[float]] = {}

    def take(self, sampled: Sequence[ProgramSampled]) -> None:
        """Adds the sample windows that have arrived since the last call."""
        for window in sampled[self.consumed :]:
            length = window.monotonic_seconds - window.began_seconds - window.states.get("stopped", 0.0)
            for line in window.lines:
                if not line.file or line.seconds <= 0:
                    continue
                around = tuple(site for number in line.sites if (site := _numbered(window.sites, number)) is not None)
                key = (
                    line.place,
                    line.state,
                    line.kind or _KINDS.get(line.state, line.state),
                    line.call,
                    around,
                    line.through,
                )
                total = self._found.setdefault(key, [0.0, 0.0, 0.0])
                total[0] += line.seconds
                total[1] += window.samples * line.seconds / length if length > 0 else 0.0
                total[2] = max(total[2], line.bytes or 0)
        self.consumed = len(sampled)

    def spots(self) -> tuple[Spot, ...]:
        """The spots, those that took most first."""
        merged = [
            Spot(where, state, kind, call, sites, took, samples, int(size) or None, through)
            for (where, state, kind, call, sites, through), (took, samples, size) in self._found.items()
        ]
        return tuple(sorted(merged, key=lambda spot: -spot.seconds))


def line_times(counted: Sequence[StepsCounted], loop: LoopKey | None) -> LoopTimes:
    """The timed lines of a loop; empty if none was timed."""
    lines: dict[int, tuple[float, int]] = {}
    iterations, seconds, most = 0, 0.0, 0
    single: list[float] = []
    for event in counted:
        where = event.where
        if (where.file, where.function, where.line) != loop:
            continue
        iterations += event.count
        seconds += event.seconds
        single += event.intervals_seconds
        most = max(most, event.count + sum(row.hits for row in event.lines))
        for row in event.lines:
            took, hits = lines.get(row.line, (0.0, 0))
            lines[row.line] = (took + row.seconds, hits + row.hits)
    brief = iterations > 0 and 0 < seconds < BRIEF_SECONDS * iterations
    typical = min(1.0, median(single) * iterations / seconds) if single and brief else 1.0
    return LoopTimes(iterations, seconds, lines, typical, most, _uneven(single))


def _uneven(iterations: Sequence[float]) -> float:
    kept = sorted(iterations)[:-1]
    whole = sum(kept)
    if whole <= 0:
        return 0.0
    bound = 2 * median(kept)
    return sum(took - bound for took in kept if took > bound) / whole


def _numbered(sites: Sequence[LoopSite | None], number: int) -> LoopSite | None:
    return sites[number] if 0 <= number < len(sites) else None
