"""What was recorded inside a program, as its events report it. `analysis` derives the tables when they are shown."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from jaxprof import events as e

ENTRIES_AT_MOST: Final = 100_000
"""In one `StepsTaken`: fifty times what the recorder sends."""
_LARGEST_NUMBER: Final = 1 << 53
"""Passes beyond it would not be told apart in tables of floating-point numbers."""


def are_passes(event: e.StepsTaken) -> bool:
    """Whether the entries of an event from outside can be passes one after another: as many counts as times, none of
    them negative, none of them out of bounds."""
    counts = event.counts
    return (
        0 < len(event.seconds) <= ENTRIES_AT_MOST
        and (not counts or (len(counts) == len(event.seconds) and min(counts) >= 1))
        and min(event.seconds) >= 0.0
        and event.began_seconds >= 0.0
        and abs(event.first) + event.count <= _LARGEST_NUMBER
    )


@dataclass(slots=True)
class RecordedProgram:
    """The part of a run that only a program has. Every list is in order of arrival."""

    started: e.ProgramStarted | None = None
    jax: e.JaxImported | None = None
    """None until JAX is imported."""
    compiled: list[e.Compiled] = field(default_factory=list)
    running: dict[str, e.StageRunning] = field(default_factory=dict)
    """The current stage by thread name (empty: the main thread)."""
    sampled: list[e.ProgramSampled] = field(default_factory=list)
    steps: list[e.StepsCounted] = field(default_factory=list)
    passes: list[e.StepsTaken] = field(default_factory=list)
    arrays: list[e.ArraysCounted] = field(default_factory=list)
    transfers: list[e.TransfersSeen] = field(default_factory=list)
    windows: list[e.CaptureWindow] = field(default_factory=list)
    stops: list[e.ProgramStopped] = field(default_factory=list)
    """A stop that was found in two ways is here twice."""
    ended: e.ProgramEnded | None = None

    def apply(self, event: e.Event) -> None:
        """Fold one event of the program; other events are ignored."""
        match event:
            case e.ProgramStarted():
                self.started = event
            case e.JaxImported():
                self.jax = event
            case e.StageRunning():
                self.running[event.thread] = event
            case e.Compiled():
                self.compiled.append(event)
                self.running.pop(event.thread, None)
            case e.ProgramSampled():
                self.sampled.append(event)
            case e.StepsCounted():
                self.steps.append(event)
            case e.StepsTaken():
                self.passes.append(event)
            case e.ArraysCounted():
                self.arrays.append(event)
            case e.TransfersSeen():
                self.transfers.append(event)
            case e.CaptureWindow():
                self.windows.append(event)
            case e.ProgramStopped() if event.seconds >= 0:
                self.stops.append(event)
            case e.ProgramEnded():
                self.ended = event
                self.running.clear()


PROGRAM_EVENTS: tuple[type[e.Event], ...] = (
    e.ProgramStarted,
    e.JaxImported,
    e.StageRunning,
    e.Compiled,
    e.ProgramSampled,
    e.StepsCounted,
    e.StepsTaken,
    e.ArraysCounted,
    e.TransfersSeen,
    e.CaptureWindow,
    e.ProgramStopped,
    e.ProgramEnded,
)
