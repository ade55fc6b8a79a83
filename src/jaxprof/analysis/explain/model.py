"""An explanation as a value: findings with their cost and evidence, and what cannot be said, with the reason."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from jaxprof.events import SourceLocation
from jaxprof.files import is_as_recorded

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jaxprof.analysis.explain.trial import FixTrial
    from jaxprof.analysis.jobs.job import JobFigures
    from jaxprof.hlo.open.stages import ModuleStages
    from jaxprof.session import Session

Subject: TypeAlias = Literal["program", "job", "runs", "comparison", "profile", "hlo", "nothing"]
"""What was explained: a recorded program, a job of several processes, measured runs, the sides of `ab`, a profile, HLO
without a session, or a session without a run."""
Scope: TypeAlias = Literal["program", "call", "compile", "profile", "module"]
"""What a cost is a part of: the wall time of a program, one call of a measured function, one compile,
the devices' time in a
profile, or one run of a compiled module."""
MOST_FINDINGS: Final = 5
MOST_ABSTENTIONS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingCost:
    """What a finding costs. None is unknown, which is not 0."""

    scope: Scope
    seconds: float | None = None
    low: float | None = None
    high: float | None = None
    """The 95 % interval of `seconds`; None where it is exact, and where its error is unknown."""
    bytes: int | None = None
    """Traffic of one run of the module; memory that is `held`."""
    held: bool = False
    """Whether `bytes` is memory."""
    share: float | None = None
    """Share of its scope, in 0..1."""
    saves_seconds: float | None = None
    """How much of `seconds` the change would have saved, an estimate; None: unknown."""
    estimate: bool = False
    """Whether `seconds` was derived rather than announced or timed."""
    at_most: bool = False
    """Whether `seconds` is the whole time of kernels of which the change saves only a part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedFinding:
    """One thing that is worth changing, whichever source it comes from."""

    code: str
    """An entry of the catalogue."""
    message: str
    fix: str
    cost: FindingCost
    verify: str
    """The command that shows whether the change helped."""
    run: str = ""
    """The id of the run that it is about; of HLO without a session the module's name."""
    also: tuple[str, ...] = ()
    """More runs that have it."""
    where: SourceLocation | None = None
    directory: str = ""
    """The folder that makes `where` short."""
    code_line: str = ""
    """The text of the line, where the file is here and has not been changed since."""
    kernels: tuple[str, ...] = ()
    """Names of kernels or instructions in the run's HLO, those with the most weight first."""
    function: str = ""
    """The function in the compile ledger."""
    compilations: int = 0
    """How many rows of the ledger it rests on."""
    fault: bool = False
    """Whether it makes the figures of its run meaningless: such findings come first."""
    mechanical: str = ""
    """What `--try` changes to measure the fix; empty where the fix is a change of the program."""
    trial: FixTrial | None = None
    """What that showed; None where it was not asked for."""
    process: int | None = None
    """Of a job: which of its processes; else None."""
    host: str = ""
    """Where that process ran."""


@dataclass(frozen=True, slots=True)
class Abstention:
    """Something that cannot be said."""

    code: str
    """`no-capture`, `no-hlo`, ..., or the code of the warning or trust row that forbids it."""
    reason: str
    command: str = ""
    """What would fill the gap; empty where no command can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The answer first: what to change, the most expensive first, and what is not known."""

    name: str
    """The session, file or profile, as commands take it."""
    subject: Subject
    findings: tuple[RankedFinding, ...]
    """At most `MOST_FINDINGS`."""
    left_out: int
    """How many more there are."""
    abstentions: tuple[Abstention, ...]
    """At most `MOST_ABSTENTIONS`."""
    session: Session | None = field(default=None, repr=False)
    modules: tuple[ModuleStages, ...] = field(default=(), repr=False)
    """Of HLO without a session."""
    job: JobFigures | None = field(default=None, repr=False)
    """Of a job."""


_LONGEST_LINE: Final = 100


def code_line(
    place: SourceLocation | None, recorded_seconds: float | None, sources: Mapping[str, str] | None = None
) -> str:
    """The line without its indentation; empty where the file is not here, is no Python file, or was changed after
    `recorded_seconds` (Unix time), or since its digest in `sources` was taken: the line may be another one by now.

    A session can come from anywhere and name any file; only what looks like Python source is read.
    """
    if place is None or place.line is None or not place.file.endswith(".py") or not recorded_seconds:
        return ""
    if not is_as_recorded(place.file, sources or {}, recorded_seconds):
        return ""
    from jaxprof.hlo.analysis.origin import HloSourceLocation, source_lines

    lines = source_lines(HloSourceLocation(place.file, place.line))
    return lines[-1][1].strip()[:_LONGEST_LINE] if lines else ""
