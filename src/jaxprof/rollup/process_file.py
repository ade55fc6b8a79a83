"""The session of one process of a job, with what all tables of its roll-up are derived from."""

from __future__ import annotations

from dataclasses import dataclass, replace

from jaxprof.analysis.jobs.figures import ProcessFigures
from jaxprof.analysis.jobs.loop_trace import LoopTrace
from jaxprof.analysis.programs.derive import ProgramResult
from jaxprof.query.schema import SessionFile


@dataclass(frozen=True, slots=True)
class ProcessFile(SessionFile):
    """The session of one process of a job, and what is derived from it once for all tables."""

    index: int = 0
    figures: ProcessFigures | None = None
    trace: LoopTrace | None = None
    result: ProgramResult | None = None
    bytes: int = 0
    """Size of the session's file when it was read."""
    modified_ns: int = 0

    @property
    def stored_figures(self) -> str:
        """The figures as JSON, without the sample windows, which are the table `parts`, and without the folder, which
        may be another one where they are read."""
        import msgspec

        if self.figures is None:
            return ""
        return msgspec.json.encode(replace(self.figures, windows=(), path=self.path.name)).decode()
