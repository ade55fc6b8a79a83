"""The intervals of a lane on as few tracks as they need so that those of one track nest, as some formats want it."""

from __future__ import annotations

from jaxprof.analysis.timeline import TimelineLane


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
