"""A finding: one thing that is worth changing in a program or in a process of a job, as its check reports it."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Protocol

from jaxprof.events import SourceLocation


class Sentence(Protocol):
    """What a check reports: findings of programs, jobs and HLO, and warnings about measurements."""

    @property
    def code(self) -> str:
        """Code of an entry in the catalogue."""

    @property
    def message(self) -> str:
        """Sentence with the figures."""

    @property
    def advice(self) -> str:
        """What to change, and where."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding about a recorded program or a job; `explain` ranks the findings of all sources."""

    code: str
    """Code of an entry in the catalogue."""
    message: str
    places: tuple[SourceLocation | None, ...] = ()
    """Lines that the finding is about, the one to change first; unknown ones are None."""
    _: KW_ONLY
    own_fix: str | None = None
    """What to change in this case; None if the fix in the catalogue holds."""
    seconds: float | None = None
    """Seconds that it cost; None if unknown. No second is in two findings of a program."""
    saves_seconds: float | None = None
    """Estimate of the seconds that a fix would have saved; findings of a program are ranked by it."""
    estimate: bool = False
    """Whether `seconds` of a program rests on stack samples rather than on what JAX reported."""
    announced_seconds: float = 0.0
    """Part of an estimate's `seconds` that JAX reported."""
    bytes: int | None = None
    """Bytes of memory that it costs; None if unknown, or if memory is not the cost."""
    function: str = ""
    """Compiled function whose ledger rows the finding rests on; empty for a finding about lines."""
    index: int | None = None
    """Index of the job's process; None for a finding about all processes, and for a program."""
    part: str = ""
    """For a late process: the part of its loop, `own` if that part is unknown, or `device`."""
    since_seconds: float | None = None
    """For a late process: seconds into its loop at which it became late; 0 if late from the start."""
    until_seconds: float | None = None
    """For a late process: seconds into its loop at which it was no longer late; None if late to the end."""
    since_step: int | None = None
    """Number of the first step from which the process is late; None if steps were not numbered."""

    @property
    def advice(self) -> str:
        """What to change, and where."""
        from jaxprof.analysis.explain.catalogue import find_entry

        return find_entry(self.code).fix if self.own_fix is None else self.own_fix

    @property
    def where(self) -> SourceLocation | None:
        """The line to change; None if there is no such line."""
        return next((place for place in self.places if place is not None), None)

    @property
    def others(self) -> tuple[SourceLocation, ...]:
        """Further lines that the finding is about."""
        return tuple(dict.fromkeys(place for place in self.places if place is not None))[1:]
