"""Comparison of two recorded programs: how they were started differently, which of them is faster, where their time
went, what they compiled, and which findings came or went.

They were recorded at different times, so their times prove nothing alone: what is smaller than two recordings of one
program differ by is no difference, and a finding near its threshold neither came nor went.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection
from dataclasses import replace
from pathlib import PurePath
from typing import Literal

from jaxprof.analysis.programs.functions import WORTH_EXACT, FunctionCompiles
from jaxprof.analysis.programs.result import NOT_SEEN, ProgramResult
from jaxprof.base.files import is_own
from jaxprof.base.grouping import Pair, pair_up, pairs
from jaxprof.base.values import frozen
from jaxprof.events.finding import Finding
from jaxprof.findings.compare import Difference, FigureDifference, figures
from jaxprof.findings.programs import findings
from jaxprof.findings.programs.claims import Claims
from jaxprof.session import Run
from jaxprof.stats.comparison import ONE_LAUNCH

CODE, SCRIPT, ARGUMENTS = "code", "script", "arguments"
COMPILERS = ("jax", "jaxlib")
_CLEARLY = 2
"""A finding that one side lacks came or went if it costs this many times what makes it a finding, and the other side
has none by thresholds that are lower by this factor."""


@frozen
class ProgramDifference:
    """Comparison of two programs."""

    before: ProgramResult
    after: ProgramResult
    changes: tuple[Difference[str], ...]
    """What differs between the programs themselves: `SCRIPT`, `ARGUMENTS`, `CODE` (the files that differ, on both
    sides), or a version, of `COMPILERS`."""
    functions: tuple[Pair[FunctionCompiles], ...]
    """New, gone and changed functions (compiled another number of times) first; within each group, largest difference
    in seconds first."""
    states: tuple[FigureDifference, ...]
    """Seconds of the main threads by state, as in `events.PROGRAM_STATES`, and not seen; they add up to each wall
    time. None for the stage of a compilation whose end was not recorded, and where no state was seen."""
    findings: tuple[Pair[Finding], ...]
    """Findings of both; `unclear` if one side lacks it, and the clock or the end of its recording can be why."""

    @property
    def sums(self) -> tuple[FigureDifference, ...]:
        """Figures of the whole programs. Steps are those of the hottest loop; None if it is not the same loop of both,
        or if the timed steps do not represent all steps. Compilations are None without JAX, and their time also where
        there are none, and while, or where, one had not ended."""
        ours, theirs = self.before, self.after
        before, after = (side.arrays.peak_bytes if side.arrays is not None else None for side in (ours, theirs))
        count, other = (side.compile_count if side.imported_jax else None for side in (ours, theirs))
        first = ours.compile_seconds if count and not ours.running else None
        second = theirs.compile_seconds if other and not theirs.running else None
        return (
            FigureDifference("wall_seconds", ours.known_wall_seconds, theirs.known_wall_seconds),
            FigureDifference("steps_per_second", ours.steps_per_second_of(theirs), theirs.steps_per_second_of(ours)),
            FigureDifference("compiles", count, other),
            FigureDifference("compiling_seconds", first, second),
            FigureDifference("arrays_peak_bytes", before, after),
        )

    @property
    def pace(self) -> FigureDifference | None:
        """Seconds that decide which is faster: of a step if both have the same loop, else of the whole program; None if
        one did not run to its end."""
        rates = self.before.steps_per_second_of(self.after), self.after.steps_per_second_of(self.before)
        if rates[0] and rates[1]:
            return FigureDifference("step_seconds", 1 / rates[0], 1 / rates[1])
        if not all(side.run.status == "ok" and side.wall_seconds > 0 for side in (self.before, self.after)):
            return None
        return FigureDifference("wall_seconds", self.before.wall_seconds, self.after.wall_seconds)

    @property
    def speedup(self) -> float | None:
        """How many times as fast the second program is; None if unknown."""
        return self.pace.before / self.pace.after if self.pace and self.pace.before and self.pace.after else None

    @property
    def verdict(self) -> Literal["faster", "slower", "same"] | None:
        """Which is faster by what was recorded; `same` within what one recording of each cannot tell; None if
        unknown."""
        if self.speedup is None:
            return None
        if 1 / (1 + ONE_LAUNCH) <= self.speedup <= 1 + ONE_LAUNCH:
            return "same"
        return "faster" if self.speedup > 1 else "slower"

    @property
    def shifts(self) -> tuple[FigureDifference, ...]:
        """States that take a clearly larger or smaller part of a program's time, largest difference first; none where
        one was not seen to its end."""
        if not (self.before.seen_to_its_end and self.after.seen_to_its_end):
            return ()
        least = ONE_LAUNCH * max(self.before.wall_seconds, self.after.wall_seconds)
        differing = {
            row: abs(row.after - row.before)
            for row in self.states
            if row.code != NOT_SEEN and row.before is not None and row.after is not None
        }
        return tuple(sorted((row for row in differing if differing[row] > least), key=lambda row: -differing[row]))


def program_difference(before: ProgramResult, after: ProgramResult) -> ProgramDifference:
    """Compare two programs, the first being the baseline. Functions are matched by name and file, without folder and
    line, because both move between two versions of a program."""

    def by_file(function: FunctionCompiles) -> tuple[str, str, bool]:
        file = PurePath(function.defined_at.file).name if function.defined_at is not None else ""
        return function.function, file, function.op_by_op

    def by_function(finding: Finding) -> tuple[str, str]:
        return finding.code, finding.where.function if finding.where is not None else ""

    functions = pairs(
        before.functions,
        after.functions,
        [by_file, lambda function: (function.function, function.op_by_op)],
        lambda function: function.count,
    )
    # What one side lacks may have come after the end of its recording.
    functions = [
        replace(row, status="unclear")
        if (row.status == "new" and not before.seen_to_its_end) or (row.status == "gone" and not after.seen_to_its_end)
        else row
        for row in functions
    ]
    found = pairs(
        before.findings, after.findings, [by_function, lambda finding: finding.code], lambda finding: finding.code
    )
    for status, there, other in (("new", after, before), ("gone", before, after)):
        if not any(row.status == status for row in found):
            continue
        lesser = {finding.code for finding in findings(other, 1 / _CLEARLY)}
        found = [
            replace(row, status="unclear")
            if row.status == status and not (other.seen_to_its_end and _is_clear(row.either, there, lesser))
            else row
            for row in found
        ]
    ours, theirs = map(_seconds_by_state, (before, after))
    # What differs between the programs themselves, however long they ran.
    changes: list[Difference[str]] = []
    (script, arguments), (other_script, other_arguments) = map(_script_and_arguments, (before, after))
    if script != other_script:
        changes.append(Difference(SCRIPT, script, other_script))
    if arguments != other_arguments:
        changes.append(Difference(ARGUMENTS, arguments, other_arguments))
    if files := ", ".join(source_changes(before.run, after.run) or ()):
        changes.append(Difference(CODE, files, files))
    for name in COMPILERS:
        versions = [getattr(side.run.environment, name, None) for side in (before, after)]
        if None not in versions and versions[0] != versions[1]:
            changes.append(Difference(name, *versions))
    return ProgramDifference(
        before,
        after,
        tuple(changes),
        tuple(sorted(functions, key=lambda row: (row.status == "same", -abs(row.part("seconds"))))),
        figures(ours, theirs),
        tuple(sorted(found, key=lambda row: row.status == "same")),
    )


def _seconds_by_state(program: ProgramResult) -> dict[str, float | None]:
    """Return the seconds by state. A compilation that had not ended has no time that another could be compared with,
    and neither has a state where no time was seen in any."""
    unknown = {stage.stage for stage in program.running if not stage.thread}
    unknown |= set() if program.sample_windows else {*program.states}
    return {share.state: None if share.state in unknown else share.seconds for share in program.timeline}


def _is_clear(finding: Finding, program: ProgramResult, lesser: Collection[str]) -> bool:
    """Return whether a finding of this program alone is more than a time that came out on the other side of its
    threshold: it is not among those of the other program by lower thresholds, whose codes are `lesser`. One without a
    time rests on what was counted."""
    if finding.seconds is None:
        return True
    if finding.code in lesser:
        return False
    if not finding.estimate:
        return finding.seconds >= _CLEARLY * WORTH_EXACT * program.work_seconds
    return finding.low is not None and finding.low >= _CLEARLY * Claims(program).least


def _script_and_arguments(program: ProgramResult) -> tuple[str, str]:
    """Return the name of the script, or the module, and its arguments on one line."""
    named = 2 if program.argv[:1] == ("-m",) else 1
    script = " ".join(program.argv[:named]) if named == 2 else PurePath(next(iter(program.argv), "")).name
    return script, shlex.join(program.argv[named:])


def source_changes(before: Run, after: Run) -> tuple[str, ...] | None:
    """Return the names of the user's files whose contents differ between two runs; None if no such file is known of
    both. A file may have moved to another folder."""
    ours, theirs = (
        [(PurePath(path), digest) for path, digest in run.sources.items() if is_own(path)] for run in (before, after)
    )
    both = pair_up(ours, theirs, [lambda file: file[0], lambda file: file[0].name])
    known = [(one, other) for one, other in both if one is not None and other is not None]
    return tuple(sorted({one[0].name for one, other in known if one[1] != other[1]})) if known else None
