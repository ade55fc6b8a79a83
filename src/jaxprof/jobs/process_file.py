"""What a job derives from one process's session: figures, loop and captured collectives, each on demand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from jaxprof.jobs.figures import ProcessFigures, process_figures
from jaxprof.jobs.step_grid import LoopTrace, trace_of
from jaxprof.session import Session

if TYPE_CHECKING:
    from jaxprof.jobs.arrivals import CollectiveEvents


@dataclass(frozen=True)
class ProcessFile:
    """The session of one process of a job, with results that are derived on demand."""

    path: Path
    session: Session
    index: int
    bytes: int = 0
    """Size of the session's file before it was read."""
    modified_ns: int = 0

    @cached_property
    def figures(self) -> ProcessFigures:
        """Figures of the process for the findings of the job."""
        return process_figures(self.index, str(self.path), self.session)

    @cached_property
    def trace(self) -> LoopTrace | None:
        """Hot loop of the process; None if none was seen."""
        program = next((run.program for run in self.session.programs if run.program is not None), None)
        if program is None:
            return None
        where = self.figures.loop.where if self.figures.loop is not None else None
        return trace_of(where, self.figures.windows, program.iterations, program.steps)

    @cached_property
    def captures(self) -> Mapping[str, CollectiveEvents]:
        """Captured collectives of the process by name."""
        from jaxprof.jobs.arrivals import collective_events

        return collective_events(self.index, self.session)

    @property
    def clock_seconds(self) -> float:
        """Unix time minus the monotonic time of the session."""
        return self.session.header.wall_seconds - self.session.header.monotonic_seconds

    @cached_property
    def extent(self) -> tuple[float | None, float | None]:
        """Begin and end of the hot loop, in the unit of the trace; None for both without a loop."""
        extent = self.trace.extent if self.trace is not None else None
        return extent if extent is not None else (None, None)
