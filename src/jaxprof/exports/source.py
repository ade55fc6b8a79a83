"""Input of an export: a session with the selected runs; and the division of a lane into tracks of nested intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jaxprof.analysis.timeline import TimelineLane
from jaxprof.session import Run, Session


@dataclass(frozen=True, slots=True)
class ExportSource:
    """A session with the runs to export."""

    session: Session
    runs: Sequence[Run]
    path: Path
    """File of the session."""
    name: str = "last"
    """Name of the session for later commands."""
    live: bool = False
    """Whether a process is writing the session now."""


def tracks_of(lane: TimelineLane) -> tuple[list[int], int]:
    """Divide the intervals of a lane into tracks, so that those of one track nest. Returns the track of each interval,
    and the number of tracks."""
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
    """Return whether an interval lies inside the innermost open interval of a track, or none is open. `open_ends`: ends
    of the open intervals, from which those before `start` are removed."""
    while open_ends and open_ends[-1] <= start:
        open_ends.pop()
    return not open_ends or open_ends[-1] >= end
