"""What a run says while it goes on: phases with their times, progress, warnings, as events to one listener."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from jaxprof.events import Event, PhaseEnded, PhaseStarted, ProgressMade, WarningRaised
from jaxprof.measure.control import RunControl

Emit = Callable[[Event], None]


@dataclass(slots=True)
class Phase:
    """What is to be said of a phase when it ends; `seconds` left at None is filled with the time that it took."""

    seconds: float | None = None
    measured: bool = True
    """False where the time that it took says nothing: the event's seconds are then unknown."""
    bytes: int | None = None
    zero_copy: bool | None = None
    note: str = ""


class Recorder:
    """Emits events, and lets a run stop where its control wants it to."""

    def __init__(self, emit: Emit, control: RunControl) -> None:
        self.emit = emit
        self.control = control
        self.samples = 0
        """Samples of the steady run so far: with some, a run that met its cap has still a result."""
        self.current_phase = ""
        self.shared_transfers: list[str] = []
        """Directions in which a transfer turned out to copy nothing."""

    @contextmanager
    def phase(self, name: str) -> Iterator[Phase]:
        """A phase around the block. One that raises has no end: how the run finished says the rest."""
        self.control.check()
        self.current_phase = name
        self.emit(PhaseStarted(phase=name))
        phase = Phase()
        began = time.perf_counter()
        yield phase
        took = time.perf_counter() - began
        seconds = phase.seconds if phase.seconds is not None else took
        self.ended(name, seconds if phase.measured else None, phase)
        self.current_phase = ""

    def ended(self, name: str, seconds: float | None, phase: Phase | None = None) -> None:
        """The end of a phase whose time was found otherwise."""
        found = phase or Phase()
        self.emit(
            PhaseEnded(phase=name, seconds=seconds, bytes=found.bytes, zero_copy=found.zero_copy, note=found.note)
        )

    def warn(self, code: str, message: str, advice: str = "") -> None:
        """Something that makes the numbers mean less than they seem to."""
        self.emit(WarningRaised(code=code, message=message, advice=advice))

    def progress(self, note: str = "", fraction: float | None = None, remaining_seconds: float | None = None) -> None:
        """How far the run is."""
        self.emit(ProgressMade(fraction=fraction, remaining_seconds=remaining_seconds, note=note))
