"""A finding: one thing that is worth changing, with its cost, source locations and a command that verifies a fix; and
its entry of the catalogue, which holds for all findings of its code.

A check reports what it has seen; `explain` adds what only the whole session shows: the share, the interval, the code
line, and how to measure again.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, replace
from typing import Literal, TypeAlias

from jaxprof.base.values import frozen
from jaxprof.events import SourceLocation

Scope: TypeAlias = Literal["program", "call", "compile", "profile", "kernels", "steps", "module"]
"""What a cost is a part of: the wall time of a program, one call of a measured function, one compilation, a profile,
the time of its kernels, its steps, or one call of a compiled module."""
_NEARLY_ALL = 0.9
"""Share of a cost from which the saving is not clearly less."""


@frozen
class Finding:
    """A finding about a program, a job, a run, a capture or a module. An unknown cost is None, not 0."""

    message: str
    """Sentence with the figures."""
    places: tuple[SourceLocation | None, ...] = ()
    """Lines that the finding is about, the one to change first; unknown ones are None, or `NOWHERE`."""
    _: KW_ONLY
    code: str = ""
    """Name of its check, or of another `CatalogueEntry`, which `complete` adds."""
    own_fix: str | None = None
    """What to change in this case; None until `CatalogueEntry.complete` has added what holds for every case."""
    scope: Scope = "program"
    """What the cost is a part of."""
    seconds: float | None = None
    """Seconds that it cost. No second is in two findings of a program."""
    low: float | None = None
    high: float | None = None
    """Upper end of the 95 % interval of `seconds`; None if exact, or if the error is unknown."""
    share: float | None = None
    """Share of the scope, from 0 to 1."""
    saves_seconds: float | None = None
    """Estimate of the part of `seconds` that a fix would have saved, by which findings are ranked."""
    estimate: bool = False
    """Whether `seconds` was derived, as from stack samples, rather than reported or timed."""
    announced_seconds: float = 0.0
    """Part of an estimate's `seconds` that JAX reported."""
    at_most: bool = False
    """Whether the fix saves only a part of `seconds`, the whole time of its kernels."""
    bytes: int | None = None
    """Bytes moved by one call of the module, or bytes of memory if `held`; None if bytes are not the cost."""
    held: bool = False
    """Whether `bytes` is memory."""
    verify: str = ""
    """Command that shows whether the fix helped; for a job, one that shows the process."""
    from_file: bool = False
    """Whether `verify` has words of a file that this machine did not record."""
    fault: bool = False
    """Whether it makes the figures of its run meaningless; such findings come first."""
    run: str = ""
    """Id of the run that it is about; for HLO without a session, the module's name."""
    also: tuple[str, ...] = ()
    """Runs other than `run` with the same finding."""
    directory: str = ""
    """Folder that makes `where` short."""
    code_line: str = ""
    """Text of the line, if the file here is the one that was recorded; without what looks like a secret."""
    kernels: tuple[str, ...] = ()
    """Names of kernels or instructions in the run's HLO, largest weight first."""
    function: str = ""
    """Compiled function whose ledger rows the finding rests on; empty for a finding about lines."""
    compilations: int = 0
    """Number of ledger rows that it rests on."""
    index: int | None = None
    """Index of the job's process; None for a finding about all processes, and for a program."""
    host: str = ""
    part: str = ""
    """Part of the loop in which a process is late, `own` if that part is unknown, or `device`; empty if none is."""
    since_seconds: float | None = None
    """Seconds into its loop at which a process became late; 0 if late from the start; None if none is late."""
    until_seconds: float | None = None
    """Seconds into its loop at which a process was no longer late; None if it was late to the end, or none is late."""
    since_step: int | None = None
    """Number of the first step from which the process is late; None if steps were not numbered."""

    @property
    def saves_part(self) -> float | None:
        """`saves_seconds` where that is clearly less than the finding costs; else None: its cost says as much."""
        saves = self.saves_seconds
        if saves is None or self.seconds is None or saves >= _NEARLY_ALL * self.seconds:
            return None
        return saves

    @property
    def fix(self) -> str:
        """What to change, and where; empty if that is unknown."""
        return self.own_fix or ""

    @property
    def where(self) -> SourceLocation | None:
        """The line to change; None if there is no such line."""
        return next(filter(None, self.places), None)

    @property
    def others(self) -> tuple[SourceLocation, ...]:
        """Lines other than `where` that the finding is about."""
        return tuple(dict.fromkeys(filter(None, self.places)))[1:]


@frozen
class CatalogueEntry:
    """The description of a finding that holds for all of its cases; the figures of a case are in its own finding."""

    code: str
    title: str
    means: str
    fix: str
    source: str
    """One of `findings.catalogue.SOURCES`."""
    page: str
    """Page of the documentation with its heading, such as `programs.md#findings`."""

    def complete(self, finding: Finding) -> Finding:
        """Return a finding with this code, and with this fix unless it has one of its own."""
        return replace(finding, code=self.code, own_fix=self.fix if finding.own_fix is None else finding.own_fix)
