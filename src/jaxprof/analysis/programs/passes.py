"""The iterations of one loop that were timed by themselves, with numbers that never decrease.

If a counter begins again, or the recorder returns from another loop, the numbers continue from the last one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from jaxprof.events import SourceLocation, StepsTaken
from jaxprof.grouping import grouped
from jaxprof.light_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class PassSeries:
    """Timed iterations of one loop, in order of time."""

    where: SourceLocation
    """First line of the loop."""
    found_by: str
    """One of `PASSES_FOUND_BY`; `number` if any of the times come from samples."""
    numbered_by: str
    """Variable of the program whose values are the numbers; empty if iterations are counted from the first one seen, or
    if the variable covers only part of the program."""
    stretches: tuple[StepsTaken, ...]
    """Recorded events, at least one, with ascending numbers."""

    @property
    def first(self) -> int:
        """Number of the first timed iteration."""
        return self.stretches[0].first

    @property
    def last(self) -> int:
        """Number of the last timed iteration."""
        return self.stretches[-1].first + self.stretches[-1].count - 1

    @property
    def count(self) -> int:
        """Number of iterations from the first timed one to the last, including those in between that were not timed."""
        return self.last - self.first + 1

    @property
    def timed(self) -> int:
        """Number of timed iterations."""
        return sum(event.count for event in self.stretches)

    @property
    def seconds(self) -> float:
        """Seconds of the timed iterations."""
        return sum(sum(event.seconds) for event in self.stretches)


def pass_series(taken: Sequence[StepsTaken], where: SourceLocation | None = None) -> PassSeries | None:
    """Return the iterations of the loop at `where`; if it has none, of the loop with the most timed seconds. None if no
    iteration was timed."""
    by_loop = grouped((event.where, event) for event in taken)
    if not by_loop:
        return None
    if where is None or where not in by_loop:
        where = max(by_loop, key=lambda loop: sum(sum(event.seconds) for event in by_loop[loop]))
    events = sorted(by_loop[where], key=lambda event: event.began_seconds)
    stretches: list[StepsTaken] = []
    names = {event.numbered_by for event in events}
    shift, reached = 0, events[0].first
    for event in events:
        if event.first + shift < reached:
            shift = reached - event.first
            names.add("")
        stretches.append(replace(event, first=event.first + shift) if shift else event)
        reached = event.first + shift + event.count
    return PassSeries(
        where=where,
        found_by="number" if any(event.found_by == "number" for event in events) else "monitoring",
        numbered_by=names.pop() if len(names) == 1 else "",
        stretches=tuple(stretches),
    )
