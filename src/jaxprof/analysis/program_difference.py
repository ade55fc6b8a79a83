"""Two recorded programs compared: what each compiled, where its time went, how fast its loop ran, what was found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal, TypeAlias

from jaxprof.analysis.pairing import paired
from jaxprof.analysis.programs.derive import FunctionCompiles, ProgramFinding, ProgramResult

LedgerStatus: TypeAlias = Literal["same", "changed", "new", "gone"]


@dataclass(frozen=True, slots=True)
class FunctionDifference:
    """The compilations of one function in either program."""

    status: LedgerStatus
    """`changed`: it was compiled another number of times."""
    before: FunctionCompiles | None
    after: FunctionCompiles | None

    @property
    def function(self) -> FunctionCompiles:
        """The one of the second program; of one that is gone, that of the first."""
        function = self.after or self.before
        assert function is not None
        return function

    @property
    def part_seconds(self) -> float:
        """What it adds to the difference of the compile times, seconds after less seconds before."""
        return (self.after.seconds if self.after else 0.0) - (self.before.seconds if self.before else 0.0)


@dataclass(frozen=True, slots=True)
class StateDifference:
    """What the main threads spent in one state, as `events.PROGRAM_STATES` and what was not seen."""

    state: str
    before_seconds: float | None
    """None where the program was never seen in it."""
    after_seconds: float | None


@dataclass(frozen=True, slots=True)
class ProgramFindingDifference:
    """A finding about either program."""

    status: LedgerStatus
    before: ProgramFinding | None
    after: ProgramFinding | None

    @property
    def finding(self) -> ProgramFinding:
        """The one of the second program; of one that is gone, that of the first."""
        finding = self.after or self.before
        assert finding is not None
        return finding


@dataclass(frozen=True, slots=True)
class ProgramDifference:
    """Two programs compared. Their times were taken at different times, and prove nothing alone."""

    before: ProgramResult
    after: ProgramResult
    functions: tuple[FunctionDifference, ...]
    """New, gone and changed ones first; of each the largest difference in seconds first."""
    states: tuple[StateDifference, ...]
    """They add up to the wall time of each side."""
    findings: tuple[ProgramFindingDifference, ...]

    @property
    def steps_per_second(self) -> tuple[float | None, float | None]:
        """Of the hottest loop of each; None where none was found, or the timed steps do not stand for all."""
        sides = [side.steps.per_second if side.steps is not None else None for side in (self.before, self.after)]
        return sides[0], sides[1]

    @property
    def differs(self) -> bool:
        """Whether the ledgers differ: a function that only one compiled, or another number of times."""
        return any(function.status != "same" for function in self.functions)


def program_difference(before: ProgramResult, after: ProgramResult) -> ProgramDifference:
    """What two programs did, the first the baseline."""
    return ProgramDifference(
        before,
        after,
        _functions(before.functions, after.functions),
        _states(before, after),
        _findings(before.findings, after.findings),
    )


def _functions(before: Sequence[FunctionCompiles], after: Sequence[FunctionCompiles]) -> tuple[FunctionDifference, ...]:
    """Matched by name and file, whatever the folder and the line: both move between two versions of a program."""

    def by_file(function: FunctionCompiles) -> tuple[str, str, bool]:
        file = PurePath(function.defined_at.file).name if function.defined_at is not None else ""
        return function.function, file, function.op_by_op

    pairs = paired(before, after, [by_file, lambda function: (function.function, function.op_by_op)])
    rows = [FunctionDifference(_status(function, partner), function, partner) for function, partner in pairs]
    return tuple(sorted(rows, key=lambda row: (row.status == "same", -abs(row.part_seconds))))


def _status(before: FunctionCompiles | None, after: FunctionCompiles | None) -> LedgerStatus:
    if before is None or after is None:
        return "new" if before is None else "gone"
    return "same" if before.count == after.count else "changed"


def _states(before: ProgramResult, after: ProgramResult) -> tuple[StateDifference, ...]:
    sides = [{share.state: share.seconds for share in program.timeline} for program in (before, after)]
    names = dict.fromkeys((*sides[0], *sides[1]))
    return tuple(StateDifference(name, sides[0].get(name), sides[1].get(name)) for name in names)


def _findings(
    before: Sequence[ProgramFinding], after: Sequence[ProgramFinding]
) -> tuple[ProgramFindingDifference, ...]:
    def by_function(finding: ProgramFinding) -> tuple[str, str]:
        return finding.code, finding.where.function if finding.where is not None else ""

    pairs = paired(before, after, [by_function, lambda finding: finding.code])
    rows = []
    for finding, partner in pairs:
        status: LedgerStatus = "new" if finding is None else "gone" if partner is None else "same"
        rows.append(ProgramFindingDifference(status, finding, partner))
    return tuple(sorted(rows, key=lambda row: row.status == "same"))
