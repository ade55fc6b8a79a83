"""Export runs in the JSON of speedscope (https://www.speedscope.app/file-format-schema.json): each lane of a timeline
in order of time, then kernels, compile passes or the lines of a program as weighted stacks.

The name of a profile notes whether its times are estimates, or only a lower bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from jaxprof.analysis.flame import StackFrame, WeightedStack, pass_stacks, run_stacks
from jaxprof.analysis.timeline import TEXT_NAME, TimelineLane, read_timeline, tracks_of
from jaxprof.exports.formats import ExportSource
from jaxprof.session import Run, Session
from jaxprof.text import json_text
from jaxprof.version import __version__

SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def runs(session: Session) -> list[Run]:
    """Return the runs with a timeline, kernels, compile passes or lines."""
    return [
        run
        for run in session.runs.values()
        if TEXT_NAME in run.texts or run.compile_passes is not None or run_stacks(session, run)
    ]


def pieces(source: ExportSource) -> Iterator[str]:
    """Yield the file, a profile at a time."""
    frames = _Frames()
    head = {"$schema": SCHEMA, "name": source.name, "exporter": f"jaxprof {__version__}", "activeProfileIndex": 0}
    yield json_text(head, compact=True)[:-1] + ',"profiles":[\n'
    separator = ""
    for run in source.runs:
        for profile in _profiles(source.session, run, frames):
            yield separator + json_text(profile, compact=True)
            separator = ",\n"
    yield '\n],"shared":' + json_text({"frames": frames.listed}, compact=True) + "}\n"


class _Frames:
    """The frames of all profiles, each once, with their numbers."""

    def __init__(self) -> None:
        self.listed: list[dict[str, Any]] = []
        self._numbers: dict[StackFrame, int] = {}

    def number(self, frame: StackFrame) -> int:
        number = self._numbers.get(frame)
        if number is None:
            number = self._numbers[frame] = len(self.listed)
            data: dict[str, Any] = {"name": frame.name or "(no name)"}
            if frame.file:
                data |= {"file": frame.file} | ({"line": frame.line} if frame.line else {})
            self.listed.append(data)
        return number


def _profiles(session: Session, run: Run, frames: _Frames) -> Iterator[dict[str, Any]]:
    stored = session.text(run.id, TEXT_NAME)
    for lane in read_timeline(stored).lanes if stored else ():
        track_of, tracks = tracks_of(lane)
        for track in range(tracks):
            name = f"{run.id} {lane.device} {lane.name}" + (f" ({track + 1})" if track else "")
            rows = [row for row, on in enumerate(track_of) if on == track]
            if rows:
                yield _evented(name, lane, rows, frames)
    if stacks := run_stacks(session, run):
        what = (
            "lines of the source, estimated from samples"
            if run.is_program
            else "kernels, self time"
            if all(stack.measured for stack in stacks)
            else "kernels, least time (a lower bound)"
        )
        yield _sampled(f"{run.id} {run.label}: {what}", stacks, frames)
    if run.compile_passes is not None:
        stacks = pass_stacks(run.compile_passes.tree)
        yield _sampled(f"{run.id} {run.label}: compile passes, self time of all threads", stacks, frames)


def _evented(name: str, lane: TimelineLane, rows: Sequence[int], frames: _Frames) -> dict[str, Any]:
    """Return a profile of nested intervals, each with its opening and closing event; an inner one is closed first."""
    events: list[dict[str, Any]] = []
    open_ends: list[tuple[int, int]] = []

    def close(until: int | None) -> None:
        while open_ends and (until is None or open_ends[-1][0] <= until):
            end, frame = open_ends.pop()
            events.append({"type": "C", "frame": frame, "at": end})

    for row in rows:
        start = lane.starts[row]
        close(start)
        frame = frames.number(StackFrame(lane.labels[lane.label_of[row]][0]))
        events.append({"type": "O", "frame": frame, "at": start})
        open_ends.append((start + lane.durations[row], frame))
    close(None)
    return {
        "type": "evented",
        "name": name,
        "unit": "nanoseconds",
        "startValue": lane.starts[rows[0]],
        "endValue": events[-1]["at"],
        "events": events,
    }


def _sampled(name: str, stacks: Sequence[WeightedStack], frames: _Frames) -> dict[str, Any]:
    weights = [stack.seconds for stack in stacks]
    return {
        "type": "sampled",
        "name": name,
        "unit": "seconds",
        "startValue": 0,
        "endValue": sum(weights),
        "samples": [[frames.number(frame) for frame in stack.frames] for stack in stacks],
        "weights": weights,
    }
