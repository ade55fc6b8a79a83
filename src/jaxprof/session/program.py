"""What was recorded inside a program, as its events report it. `analysis` derives the tables when they are shown."""

from __future__ import annotations

from dataclasses import dataclass, field

from jaxprof import events as e


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
    arrays: list[e.ArraysCounted] = field(default_factory=list)
    transfers: list[e.TransfersSeen] = field(default_factory=list)
    windows: list[e.CaptureWindow] = field(default_factory=list)
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
            case e.ArraysCounted():
                self.arrays.append(event)
            case e.TransfersSeen():
                self.transfers.append(event)
            case e.CaptureWindow():
                self.windows.append(event)
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
    e.ArraysCounted,
    e.TransfersSeen,
    e.CaptureWindow,
    e.ProgramEnded,
)
