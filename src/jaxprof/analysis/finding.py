"""One thing that is worth changing in a program or in a process of a job, as its check has found it."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Protocol

from jaxprof.events import SourceLocation


class Sentence(Protocol):
    """What a check says, whatever it looks at: findings of programs, jobs and HLO, and warnings about measurements."""

    @property
    def code(self) -> str:
        """An entry of the catalogue."""

    @property
    def message(self) -> str:
        """The sentence, with its figures."""

    @property
    def advice(self) -> str:
        """What to change, and where."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding about a recorded program or a job; `explain` ranks those of all sources."""

    code: str
    """An entry of the catalogue."""
    message: str
    advice: str
    """What to change, and where."""
    places: tuple[SourceLocation | None, ...] = ()
    """The lines that it is about, the one to change first. Unknown ones count for nothing."""
    _: KW_ONLY
    seconds: float | None = None
    """What it cost; None if unknown. No second is in two findings of a program."""
    saves_seconds: float | None = None
    """How many of these seconds changing it would have saved, an estimate: findings of a program are ranked by it."""
    estimate: bool = False
    """Whether `seconds` of a program rests on samples of the stack rather than on what JAX announced."""
    announced_seconds: float = 0.0
    """Of the `seconds` of an estimate, those that JAX announced."""
    bytes: int | None = None
    """Memory that it costs; None if that is unknown, or not what it costs."""
    function: str = ""
    """The compiled function whose rows of the ledger it rests on; empty for a finding about lines."""
    index: int | None = None
    """Of the process of a job; None for what all of them have, and for a program."""
    part: str = ""
    """Of a process that is late: the part of its loop, `own` where it is not known which one, or `device`."""
    since_seconds: float | None = None
    """Of a process that is late: how long its loop had gone on when it became late; 0 from the start."""
    until_seconds: float | None = None
    """How long its loop had gone on when it was late no more; None if it is late to the end."""
    since_step: int | None = None
    """Number of the first step from which it is late; None if steps were not numbered."""

    @property
    def where(self) -> SourceLocation | None:
        """The line to change; None if there is no such line."""
        return next((place for place in self.places if place is not None), None)

    @property
    def others(self) -> tuple[SourceLocation, ...]:
        """More lines that it is about."""
        return tuple(dict.fromkeys(place for place in self.places if place is not None))[1:]
