"""What a run reports while it goes on: phases with their times, progress, warnings, as events to one listener."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from jaxprof.engine.measure.control import RunControl
from jaxprof.events import Event, PhaseEnded, PhaseStarted, ProgressMade, WarningRaised

Emit = Callable[[Event], None]


@dataclass(slots=True)
class PhaseReport:
    """The facts about a phase that are known at its end; if `seconds` is None, the measured time is filled in."""

    seconds: float | None = None
    measured: bool = True
    """False if the measured time means nothing: the event's seconds are then unknown."""
    bytes: int | None = None
    zero_copy: bool | None = None
    note: str = ""


class Reporter:
    """Emits events, and stops the run where its control requests it."""

    def __init__(self, emit: Emit, control: RunControl) -> None:
        self.emit = emit
        self.control = control
        self.samples = 0
        """Samples of the steady run so far: if there are some, a run that reaches its cap still has a result."""
        self.current_phase = ""
        self.shared_transfers: list[str] = []
        """Directions in which a transfer copied nothing."""

    @contextmanager
    def phase(self, name: str) -> Iterator[PhaseReport]:
        """A phase around the block. If the block raises, the phase has no end event: the end of the run explains the
        rest."""
        self.control.check()
        self.current_phase = name
        self.emit(PhaseStarted(phase=name))
        phase = PhaseReport()
        began = time.perf_counter()
        yield phase
        took = time.perf_counter() - began
        seconds = phase.seconds if phase.seconds is not None else took
        self.ended(name, seconds if phase.measured else None, phase)
        self.current_phase = ""

    def ended(self, name: str, seconds: float | None, phase: PhaseReport | None = None) -> None:
        """The end of a phase whose time was measured elsewhere."""
        report = phase or PhaseReport()
        self.emit(
            PhaseEnded(phase=name, seconds=seconds, bytes=report.bytes, zero_copy=report.zero_copy, note=report.note)
        )

    def warn(self, code: str, message: str, advice: str = "") -> None:
        """Something that makes the numbers mean less than they seem to."""
        self.emit(WarningRaised(code=code, message=message, advice=advice))

    def progress(self, note: str = "", fraction: float | None = None, remaining_seconds: float | None = None) -> None:
        """How far the run has come."""
        self.emit(ProgressMade(fraction=fraction, remaining_seconds=remaining_seconds, note=note))
