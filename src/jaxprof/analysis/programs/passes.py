"""The passes of one loop that were timed by themselves, with numbers that never go back.

A counter that begins again, and passes that the recorder saw after it had followed another loop, go on from the last
number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from jaxprof.events import SourceLocation, StepsTaken
from jaxprof.light_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class PassEntry:
    """Passes that were timed together, mostly one."""

    number: int
    """Of the first one."""
    count: int
    began_seconds: float
    """Monotonic."""
    seconds: float
    """Of all of them."""


@dataclass(frozen=True, slots=True)
class PassSeries:
    """The timed passes of one loop, in the order of time."""

    where: SourceLocation
    """The loop's first line."""
    found_by: str
    """One of `PASSES_FOUND_BY`: `number` if the times of any of them are those of samples."""
    numbered_by: str
    """The program's own variable whose values the numbers are; empty if they are counted from the first pass seen, or
    are for a part of the program."""
    stretches: tuple[StepsTaken, ...]
    """Not empty; their numbers go up."""

    @property
    def first(self) -> int:
        """Number of the first timed pass."""
        return self.stretches[0].first

    @property
    def last(self) -> int:
        """Number of the last timed pass."""
        return self.stretches[-1].first + self.stretches[-1].count - 1

    @property
    def count(self) -> int:
        """How many passes there were from the first timed one to the last, by their numbers: those in between that were
        not timed are among them."""
        return self.last - self.first + 1

    @property
    def timed(self) -> int:
        """How many passes were timed."""
        return sum(event.count for event in self.stretches)

    @property
    def seconds(self) -> float:
        """What the timed passes took."""
        return sum(sum(event.seconds) for event in self.stretches)

    def entries(self) -> Iterator[PassEntry]:
        """The passes, in the order of time."""
        for event in self.stretches:
            number, began = event.first, event.began_seconds
            for seconds, count in zip(event.seconds, event.counts or [1] * len(event.seconds), strict=True):
                yield PassEntry(number, count, began, seconds)
                number, began = number + count, began + seconds


def pass_series(taken: Sequence[StepsTaken], where: SourceLocation | None = None) -> PassSeries | None:
    """The passes of the loop at `where`; if there are none, of the loop whose passes took most time. None without
    any."""
    by_loop: dict[SourceLocation, list[StepsTaken]] = {}
    for event in taken:
        by_loop.setdefault(event.where, []).append(event)
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
