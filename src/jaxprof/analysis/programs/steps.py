"""The loops of a program: how many steps they took, how long these were, and which lines of theirs were timed.

A step is one iteration of a loop. The figures come from steps that were counted or timed while the program ran; samples
are a second source for the time spent in the loop, and time the steps that only a counter of the program shows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median

from jaxprof.base.grouping import grouped, totals
from jaxprof.base.values import field, frozen
from jaxprof.events import ProgramSampled, SourceLocation, StepsCounted, StepsTaken
from jaxprof.events.programs import SPELL_EVENTS

_FEW_STEPS = 5
"""Number of single steps below which no jitter is given."""
BRIEF_SECONDS = 1e-3
"""Mean iteration in seconds below which the median is the better figure. Most longer iterations may only queue their
step while a few wait for all of them; the mean is then right."""


@frozen
class StepFigures:
    """Figures of one loop of the program, some of whose steps and lines were timed while it ran."""

    where: SourceLocation
    """First line of the loop."""
    count: int = 0
    seconds: float = 0.0
    """Total seconds of the timed steps."""
    median_seconds: float | None = None
    jitter: float | None = None
    """Median absolute deviation of the single steps over their median; None for fewer than five steps."""
    per_second: float | None = None
    """Steps per second, from all steps that were reported one by one, if any. The timing of lines makes brief steps
    longer.

    None for spells that can miss the steps that wait for a processor or the device, and if the reported steps fill less
    than half of the time in which samples saw the loop.
    """
    by_line: Mapping[int, tuple[float, int]] = field(default_factory=dict)
    """Seconds of each line, including everything that it calls, and how often the line began."""
    most_events: int = 0
    """Beginnings of steps and lines in the sample window that holds the most of them."""
    uneven: float = 0.0
    """Share of their time that steps take beyond twice the median. The longest step is left out, because it may have
    compiled. A line that begins in every step can do its work in only a few: `if i % 50 == 0: print(float(loss))`."""

    def iterations_in(self, seconds: float) -> float:
        """Return the number of steps in so much time of the loop; 0 if none was timed."""
        if self.per_second is not None:
            return seconds * self.per_second
        return seconds * self.count / self.seconds if self.seconds else 0.0

    def each(self, line: int) -> float | None:
        """Return the seconds that a line takes once, in a typical step; None if it was not timed. On a busy machine
        some brief steps wait long for a processor: the median is then typical."""
        took, hits = self.by_line.get(line, (0.0, 0))
        if not hits:
            return None
        typical = 1.0
        if self.median_seconds is not None and 0 < self.seconds < BRIEF_SECONDS * self.count:
            typical = min(1.0, self.median_seconds * self.count / self.seconds)
        return typical * took / hits

    def accounts_for(self, line: int, sampled_seconds: float) -> bool:
        """Return whether steps like the timed ones can make up the time that samples saw at a line.

        They can if the timed time is most of it, or if at least as many steps were timed as fill a spell: a spell of
        brief steps that is not full means that there were few. True if nothing was timed.
        """
        took, hits = self.by_line.get(line, (0.0, 0))
        # The timed iterations are most of the work if they took half of the line's sampled time.
        if not hits or not self.count or sampled_seconds <= took / 0.5:
            return True
        events = self.count + sum(count for _, count in self.by_line.values())
        # A timing spell of the recorder ends after this many beginnings of iterations and lines, or 30 ms.
        a_spell = min(SPELL_EVENTS, 0.03 * events / self.seconds) if self.seconds > 0 else SPELL_EVENTS
        return self.most_events >= a_spell / 2


def loops(
    counted: Sequence[StepsCounted], taken: Sequence[StepsTaken] = (), sampled: Sequence[ProgramSampled] = ()
) -> tuple[StepFigures, ...]:
    """Return the loops of a program, longest first. `taken` holds steps that were reported one by one. `sampled` is a
    second source for the time spent in the loops."""
    groups = grouped((event.where, event) for event in counted)
    counts = totals((event.where, event.count) for event in taken)
    took = totals((event.where, sum(event.seconds)) for event in taken)
    # How long samples saw the program in each loop, from its first reported step on.
    first: dict[SourceLocation, float] = {}
    for steps in taken:
        first[steps.where] = min(steps.began_seconds, first.get(steps.where, steps.began_seconds))
    seen: dict[SourceLocation, float] = {}
    for window in sampled:
        reported = {where for where, began in first.items() if window.began_seconds >= began}
        for line in window.lines:
            sites = [window.sites[index] for index in line.sites if 0 <= index < len(window.sites)]
            heads = {SourceLocation(site.file, site.loop_line, site.function) for site in sites}
            for where in heads & reported:
                seen[where] = seen.get(where, 0.0) + line.seconds
    figures = []
    for where, events in groups.items():
        single = [seconds for event in events for seconds in event.intervals_seconds]
        middle = median(single) if single else None
        jitter = None
        if middle and len(single) >= _FEW_STEPS:
            jitter = median(abs(seconds - middle) for seconds in single) / middle
        count, spent = sum(event.count for event in events), sum(event.seconds for event in events)
        # Spells of a few hundred such brief iterations do not represent the time between them: a spell begins when
        # the thread has a processor, and ends before the thread loses it.
        is_brief = spent < 100e-6 * count
        rated = (count, 0.0 if is_brief else spent)
        if took.get(where, 0.0) > 0:  # unless samples saw the program in the loop for longer
            # The reported steps represent all only if they fill half of the loop's sampled time: the first steps of a
            # loop that queues its calls take microseconds, later steps as long as the device.
            is_most = took[where] >= 0.5 * seen.get(where, 0.0)
            rated = (counts[where], took[where]) if is_most else (count, 0.0)
        rows = [row for event in events for row in event.lines]
        hits, by_line = totals((row.line, row.hits) for row in rows), totals((row.line, row.seconds) for row in rows)
        kept = sorted(single)[:-1]
        bound = 2 * median(kept) if kept else 0.0
        beyond = sum(seconds - bound for seconds in kept if seconds > bound)
        uneven = beyond / sum(kept) if sum(kept) > 0 else 0.0
        figures.append(
            StepFigures(
                where=where,
                count=count,
                seconds=spent,
                median_seconds=middle,
                jitter=jitter,
                per_second=rated[0] / rated[1] if rated[1] > 0 else None,
                by_line={line: (seconds, hits[line]) for line, seconds in by_line.items()},
                most_events=max((event.count + sum(row.hits for row in event.lines) for event in events), default=0),
                uneven=uneven,
            )
        )
    return tuple(sorted(figures, key=lambda loop: -loop.seconds))


def loops_around(where: SourceLocation, sampled: Sequence[ProgramSampled]) -> int:
    """Return how many loops of its function samples saw around the loop at `where`."""
    inside = {
        (site.loop_line, site.last_line)
        for window in sampled
        for site in window.sites
        if (site.file, site.function) == (where.file, where.function)
    }
    last = max((last for first, last in inside if first == where.line), default=0)
    return sum(first < (where.line or 0) and last <= end for first, end in inside)


@frozen
class IterationSeries:
    """Timed iterations of one loop, in order of time, with numbers that never decrease: if a counter begins again, or
    the recorder returns from another loop, they continue from the last one."""

    where: SourceLocation
    """First line of the loop."""
    found_by: str
    """One of `ITERATIONS_FOUND_BY`; `number` if any of the times come from samples."""
    numbered_by: str
    """Variable of the program whose values are the numbers; empty if iterations are counted from the first one seen, or
    if the variable covers only part of the program."""
    events: tuple[StepsTaken, ...]
    """Recorded events, at least one, with ascending numbers."""

    @property
    def first(self) -> int:
        """Number of the first timed iteration."""
        return self.events[0].first

    @property
    def last(self) -> int:
        """Number of the last timed iteration."""
        return self.events[-1].first + self.events[-1].count - 1

    @property
    def count(self) -> int:
        """Number of iterations from the first timed one to the last, including those in between that were not timed."""
        return self.last - self.first + 1

    @property
    def timed(self) -> int:
        return sum(event.count for event in self.events)

    @property
    def seconds(self) -> float:
        return sum(sum(event.seconds) for event in self.events)


def iteration_series(taken: Sequence[StepsTaken], where: SourceLocation | None = None) -> IterationSeries | None:
    """Return the iterations of the loop at `where`; if it has none, of the loop with the most timed seconds. None if no
    iteration was timed."""
    by_loop = grouped((event.where, event) for event in taken)
    if not by_loop:
        return None
    if where is None or where not in by_loop:
        where = max(by_loop, key=lambda loop: sum(sum(event.seconds) for event in by_loop[loop]))
    events = sorted(by_loop[where], key=lambda event: event.began_seconds)
    numbered: list[StepsTaken] = []
    names = {event.numbered_by for event in events}
    shift, reached = 0, events[0].first
    for event in events:
        if event.first + shift < reached:
            shift = reached - event.first
            names.add("")
        numbered.append(replace(event, first=event.first + shift) if shift else event)
        reached = event.first + shift + event.count
    return IterationSeries(
        where=where,
        found_by="number" if any(event.found_by == "number" for event in events) else "monitoring",
        numbered_by=names.pop() if len(names) == 1 else "",
        events=tuple(numbered),
    )
