"""What is exported: a session, and the runs of it that were chosen; intervals on tracks that nest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jaxprof.analysis.timeline import TimelineLane
from jaxprof.session import Run, Session


@dataclass(frozen=True, slots=True)
class ExportSource:
    """A session with the chosen runs."""

    session: Session
    runs: Sequence[Run]
    path: Path
    """Its file."""
    name: str = "last"
    """What a later command can call the session."""
    live: bool = False
    """Whether a process is writing it now."""


def tracks_of(lane: TimelineLane) -> tuple[list[int], int]:
    """On which track each interval is drawn, so that those of one track nest, and how many there are."""
    tracks: list[list[int]] = [[]]
    numbers = []
    for start, duration in zip(lane.starts, lane.durations, strict=True):
        end = start + duration
        chosen = next((number for number, open_ends in enumerate(tracks) if _fits(open_ends, start, end)), len(tracks))
        if chosen == len(tracks):
            tracks.append([])
        tracks[chosen].append(end)
        numbers.append(chosen)
    return numbers, len(tracks)


def _fits(open_ends: list[int], start: int, end: int) -> bool:
    """Whether an interval lies within the innermost of a track's that are still open (their ends), or none is."""
    while open_ends and open_ends[-1] <= start:
        open_ends.pop()
    return not open_ends or open_ends[-1] >= end
