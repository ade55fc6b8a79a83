"""Comparison of two sessions: which runs belong together, how their environments differ, and what their times prove.

Sessions were measured at different times. Whatever differed between these times is in every ratio of theirs, so the
verdict is `inconclusive`; only runs of one session, which took turns, can have another.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Sequence
from dataclasses import dataclass, fields
from pathlib import PurePath
from typing import TYPE_CHECKING

from jaxprof.analysis.difference import Difference, FigureDifference, environments, figures
from jaxprof.analysis.run_difference import RunDifference, measurement, run_difference, unlike
from jaxprof.analysis.run_result import result
from jaxprof.analysis.speedup import AbVersus, compared, side_versus
from jaxprof.grouping import Pair, paired, pairs
from jaxprof.session import Run, Session
from jaxprof.stats.comparison import TimeComparison, compare, compare_apart, corrected, refuse
from jaxprof.stats.turns import Block, LaunchBlocks

if TYPE_CHECKING:
    from jaxprof.analysis.programs.functions import FunctionCompiles
    from jaxprof.analysis.programs.result import ProgramResult
    from jaxprof.finding import Finding

_SAMPLED_ONCE = ("transfer_in", "transfer_out")
"""Phases that only the first launch samples."""
_MOMENTARY = ("load_average_before", "load_average_after", "other_busy_cores")
"""Settings that describe the moment, not the environment: they always differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseDifference(FigureDifference):
    """A phase of both runs: seconds per call, or per launch for a phase that happens once."""

    times: TimeComparison
    """What the samples of both prove, the first being the baseline."""


@dataclass(frozen=True, slots=True)
class ProgramDifference:
    """Comparison of two programs. They were timed at different times, and their times prove nothing alone."""

    before: ProgramResult
    after: ProgramResult
    functions: tuple[Pair[FunctionCompiles], ...]
    """New, gone and changed functions (compiled another number of times) first; within each group, largest difference
    in seconds first."""
    states: tuple[FigureDifference, ...]
    """Seconds of the main threads by state, as in `events.PROGRAM_STATES`, and not seen; they add up to each wall
    time."""
    findings: tuple[Pair[Finding], ...]

    @property
    def sums(self) -> tuple[FigureDifference, ...]:
        """Figures of the whole programs, by name. Steps are those of each program's hottest loop; None if no loop was
        found, or if the timed steps do not represent all steps."""
        ours, theirs = self.before, self.after

        def steps(side: ProgramResult) -> float | None:
            return side.steps.per_second if side.steps is not None else None

        def arrays(side: ProgramResult) -> float | None:
            return side.arrays.peak_bytes if side.arrays is not None else None

        return (
            FigureDifference("wall time", ours.wall_seconds, theirs.wall_seconds, "second"),
            FigureDifference("steps a second", steps(ours), steps(theirs), "rate"),
            FigureDifference("compilations", ours.compile_count, theirs.compile_count),
            FigureDifference("compile time", ours.compile_seconds, theirs.compile_seconds, "second"),
            FigureDifference("most live arrays", arrays(ours), arrays(theirs), "byte"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunComparison(RunDifference):
    """Two runs that belong together, with their times."""

    phases: tuple[PhaseDifference, ...]
    program: ProgramDifference | None
    """Comparison of the programs, if both runs are recorded programs."""
    side: AbVersus | None
    """How the two compare, if they were measured in turns as sides of a comparison."""


@dataclass(frozen=True, slots=True)
class SessionDifference:
    """Comparison of two sessions."""

    before: Session
    after: Session
    environment: tuple[Difference[str], ...]
    """Differences of the environment first, then equal entries."""
    runs: tuple[RunComparison, ...]
    only_before: tuple[Run, ...]
    """Runs without a counterpart in the other session."""
    only_after: tuple[Run, ...]


def session_difference(
    before: Session, after: Session, *, run_before: str | None = None, run_after: str | None = None
) -> SessionDifference:
    """Compare two sessions run by run, the first being the baseline; with run ids, only these runs, whatever they
    measure. Reads the HLO of all runs, so call it in a thread. Raises KeyError for an unknown run id."""
    ours = [before.runs[run_before]] if run_before is not None else list(before.runs.values())
    theirs = [after.runs[run_after]] if run_after is not None else list(after.runs.values())
    if run_before is not None and run_after is not None:
        pairs: list[tuple[Run | None, Run | None]] = [(ours[0], theirs[0])]
    else:
        pairs = _matched(ours, theirs)
    return SessionDifference(
        before,
        after,
        environments(environment_facts(_reporting_run(ours)), environment_facts(_reporting_run(theirs))),
        tuple(
            _comparison(before, first, after, second)
            for first, second in pairs
            if first is not None and second is not None
        ),
        tuple(first for first, second in pairs if first is not None and second is None),
        tuple(second for first, second in pairs if first is None and second is not None),
    )


def _matched(ours: Sequence[Run], theirs: Sequence[Run]) -> list[tuple[Run | None, Run | None]]:
    """Match runs by workload, variant, device kind, parameters and arguments. If each session has a single program,
    they are the same program; likewise a single function of the user, in whatever file."""
    keys: list[Callable[[Run], Hashable]] = [lambda run: (run.plan.workload, run.plan.side, measurement(run))]
    if any(run.plan.side for side in (ours, theirs) for run in side):
        keys.append(lambda run: (run.plan.workload, measurement(run)))
    if all(sum(run.is_program for run in side) == 1 for side in (ours, theirs)):
        keys.append(lambda run: "program" if run.is_program else None)
    if all(len({run.plan.workload for run in side if run.plan.target}) == 1 for side in (ours, theirs)):
        keys.append(lambda run: (run.plan.side, measurement(run)) if run.plan.target else None)
    return paired(ours, theirs, keys)


def _comparison(session_a: Session, run_a: Run, session_b: Session, run_b: Run) -> RunComparison:
    program = None
    if run_a.is_program and run_b.is_program:
        from jaxprof.analysis.programs.derive import program_result

        program = program_difference(program_result(session_a, run_a.id), program_result(session_b, run_b.id))
    exact = run_difference(session_a, run_a, session_b, run_b)
    return RunComparison(
        **{each.name: getattr(exact, each.name) for each in fields(exact)},
        phases=_phases(session_a, run_a, session_b, run_b),
        program=program,
        side=side_versus(session_a, run_a, run_b) if session_a is session_b else None,
    )


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
    findings = pairs(
        before.findings, after.findings, [by_function, lambda finding: finding.code], lambda finding: finding.code
    )
    ours, theirs = ({share.state: share.seconds for share in program.timeline} for program in (before, after))
    return ProgramDifference(
        before,
        after,
        tuple(sorted(functions, key=lambda row: (row.status == "same", -abs(row.part("seconds"))))),
        figures(ours, theirs, "second"),
        tuple(sorted(findings, key=lambda row: row.status == "same")),
    )


def _phases(session_a: Session, run_a: Run, session_b: Session, run_b: Run) -> tuple[PhaseDifference, ...]:
    ours, theirs = result(session_a, run_a.id).phase_seconds, result(session_b, run_b.id).phase_seconds
    phases: list[PhaseDifference] = []
    reasons = _faults(run_a, run_b)
    if not (run_a.plan.side and run_b.plan.side):  # sides differ on purpose, such as in size or precision
        reasons += unlike(run_a, run_b)
    in_one_group = session_a is session_b and (run_a.plan.baseline or run_a.id) == (run_b.plan.baseline or run_b.id)
    once_times = _once_comparisons(run_a, run_b, {*ours, *theirs}) if in_one_group else {}
    for phase in dict.fromkeys((*ours, *theirs)):
        before, after = ours.get(phase), theirs.get(phase)
        if before is None and after is None:
            continue
        if phase == "run" and session_a is session_b:
            times = compared(session_a, run_a, run_b)
        elif phase in once_times:
            times = once_times[phase]
        else:
            times = compare_apart(_launches(run_a, phase), _launches(run_b, phase))
        if reasons:
            times = refuse(times, reasons[0])
        phases.append(PhaseDifference(phase, before, after, "second", times=times))
    return tuple(phases)


def _once_comparisons(run_a: Run, run_b: Run, phases: Container[str]) -> dict[str, TimeComparison]:
    """Compare phases that are not measured in turns, for two runs of one group.

    These are phases that happen once per process, over the launches that both runs have, and the transfers, which the
    first launch samples. The verdicts of all phases hold together.
    """
    blocks: dict[str, list[LaunchBlocks]] = {}
    for first, second in zip(run_a.launches, run_b.launches, strict=False):
        for phase in first.phases:
            ours = first.phases[phase].seconds
            theirs = second.phases[phase].seconds if phase in second.phases else None
            if phase in phases and phase not in run_a.series and ours and theirs:
                blocks_of_both = Block(0, (ours,)), Block(1, (theirs,))
                blocks.setdefault(phase, []).append(LaunchBlocks(blocks_of_both, in_turns=False))
    for phase in _SAMPLED_ONCE:
        if phase in phases and (before := run_a.samples(phase)) and (after := run_b.samples(phase)):
            blocks_of_both = Block(0, tuple(before)), Block(1, tuple(after))
            blocks[phase] = [LaunchBlocks(blocks_of_both, in_turns=False)]
    comparisons = {phase: compare(launches) for phase, launches in blocks.items()}
    return dict(zip(comparisons, corrected(list(comparisons.values())), strict=True))


def _faults(run_a: Run, run_b: Run) -> tuple[str, ...]:
    """Return why the times of a side mean nothing."""
    faults: list[str] = []
    for side, run in (("the first", run_a), ("the second", run_b)):
        if run.check is not None and run.check.passed is False:
            faults.append(f"{side} result is wrong")
        elif run.status != "ok":
            faults.append(f"{side} run {run.status if run.over else 'did not end'}")
    return tuple(faults)


def _launches(run: Run, phase: str) -> list[list[float]]:
    """Return the samples of a phase by launch, if the file says which launch they belong to."""
    if phase in run.series:
        by_launch = [[took for turn in launch.turns for took in turn.seconds] for launch in run.launches]
        return by_launch if phase == "run" and any(by_launch) else [run.samples(phase)]
    phases = [launch.phases for launch in run.launches] or [run.phases]
    return [[took] for launch_phases in phases if phase in launch_phases and (took := launch_phases[phase].seconds)]


def _reporting_run(runs: Sequence[Run]) -> Run | None:
    """Return the first run whose process has jax; without one, the first that reported an environment."""
    reported = [run for run in runs if run.environment is not None]
    return next(
        (run for run in reported if run.environment and run.environment.jax is not None),
        reported[0] if reported else None,
    )


def environment_facts(run: Run | None) -> dict[str, str]:
    """Return versions, devices, settings and the git commit of a run as text, by name, without unknown values."""
    if run is None:
        return {}
    facts: dict[str, object] = {}
    environment, revision = run.environment, run.revision
    if revision is not None:
        facts["git commit"] = f"{revision.commit} with changes" if revision.dirty else revision.commit
    if environment is not None:
        kinds = [str(device.get("kind") or device.get("platform") or "?") for device in environment.devices]
        facts |= {
            "python": environment.python,
            "jax": environment.jax,
            "jaxlib": environment.jaxlib,
            "numpy": environment.numpy,
            "devices": ", ".join(f"{kinds.count(kind)} × {kind}" for kind in dict.fromkeys(kinds)) or None,
            **{name: value for name, value in environment.settings.items() if name not in _MOMENTARY},
        }
    return {name: str(value) for name, value in facts.items() if value not in (None, "")}
