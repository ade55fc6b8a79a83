"""`jaxprof explain --try`: measure the fixes that are mechanical beside what they replace, in fresh processes.

Nothing of the user's is changed: a side gets other settings, and that is all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final

from jaxprof.analysis.explain.mechanical_fixes import MechanicalFix, fix_of
from jaxprof.analysis.explain.model import FixTrial, NumbersCompared, compare_printed
from jaxprof.cli.output import ExitCode
from jaxprof.errors import JaxprofError, UsageError
from jaxprof.runner.engine_run import MAX_SILENCE_SECONDS
from jaxprof.runner.from_file import NotAskedFor
from jaxprof.units import seconds

if TYPE_CHECKING:
    from jaxprof.analysis.ab import AbResult
    from jaxprof.analysis.explain.model import Explanation, RankedFinding
    from jaxprof.analysis.programs.derive import ProgramResult
    from jaxprof.events import SourceLocation
    from jaxprof.runner.fix_trials import LaunchCommand, ProgramLaunches
    from jaxprof.runner.from_file import Ask
    from jaxprof.runner.interpreter import Interpreter
    from jaxprof.session import Run, Session

_NOT_FINITE: Final = 1e299
"""What the recorder writes for an error that is not finite is more than that."""
_CACHE_FOLDER: Final = "JAX_COMPILATION_CACHE_DIR"


@dataclass(frozen=True, slots=True)
class TryOptions:
    """How long each fix is measured, and who hears of it."""

    budget_seconds: float
    note: Callable[[str], None]
    ask: Ask
    python: Interpreter | None = None
    """The interpreter that the user named."""


def tried(explained: Explanation, options: TryOptions) -> Explanation:
    """The explanation, each finding that has a mechanical fix with what trying it showed. Blocks: processes are started
    one after the other, which end with us."""
    return replace(explained, findings=tuple(_tried(explained, finding, options) for finding in explained.findings))


def _tried(explained: Explanation, finding: RankedFinding, options: TryOptions) -> RankedFinding:
    fix = fix_of(finding, explained.subject)
    if fix is None:
        return finding
    options.note(f"trying {finding.code}: {fix.title}")
    try:
        trial = (_program_trial if explained.subject == "program" else _call_trial)(explained, finding, fix, options)
    except NotAskedFor:
        raise
    except JaxprofError as error:
        hint = f" ({error.hint})" if error.hint else ""
        trial = FixTrial(fix=fix.title, reason=f"{error.what}{hint}")
    return replace(finding, trial=trial)


def _program_trial(explained: Explanation, finding: RankedFinding, fix: MechanicalFix, options: TryOptions) -> FixTrial:
    from jaxprof.analysis.programs.derive import program_result
    from jaxprof.reaper import TemporaryFolder
    from jaxprof.runner.fix_trials import command_again, launch, launch_sides, with_functions

    session = explained.session
    assert session is not None
    program = program_result(session, session.runs[finding.run].id)
    with TemporaryFolder("try") as folder:
        unchanged = command_again(session, program, folder, options.ask, options.python)
        _afford(unchanged.expected_seconds, options.budget_seconds)
        report = folder / "report"
        if fix.function:
            functions = _functions(session, program, finding, fix)
            checking = with_functions(unchanged, fix.function, functions, str(report))
            changed, unchanged = with_functions(unchanged, fix.function, functions), with_functions(unchanged, "")
        else:
            changed = checking = _with_environment(unchanged, fix)
            if fix.cache:
                kept = {name: value for name, value in unchanged.environment.items() if name != _CACHE_FOLDER}
                unchanged = replace(unchanged, environment=kept)
        options.note("once without the clock")
        first = launch(checking)
        checked = _checked_calls(report) if fix.function and not first.problem else None
        done = launch_sides(unchanged, changed, first, options.budget_seconds, options.note)
    return _of_launches(done, fix, checked)


def _with_environment(command: LaunchCommand, fix: MechanicalFix) -> LaunchCommand:
    own = {_CACHE_FOLDER: str(command.folder / "cache")} if fix.cache else {}
    return replace(command, environment={**command.environment, **fix.environment, **own})


def _functions(
    session: Session, program: ProgramResult, finding: RankedFinding, fix: MechanicalFix
) -> list[SourceLocation]:
    from jaxprof.runner.fix_trials import compiled_functions, functions_to_jit

    if fix.function in ("pad", "bind"):
        return compiled_functions(session, program, finding.function)
    found = next(each for each in program.findings if (each.code, each.where) == (finding.code, finding.where))
    return functions_to_jit(session, program, found)


def _checked_calls(report: Path) -> NumbersCompared:
    """What the calls that were made both ways returned. Raises UsageError where the change did not reach the
    function."""
    import json

    from jaxprof.analysis.ab import accepted_error

    hint = "Make the change in the program, and compare."
    try:
        seen = json.loads(report.read_text(encoding="utf-8"))
        apart = {str(dtype): float(relative) for dtype, relative in seen["apart"].items()}
        found, calls, note = int(seen["found"]), int(seen["calls"]), str(seen["note"])
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        raise UsageError("the program ended without a word about the changed function", hint) from None
    if not found or not calls:
        raise UsageError("the function is compiled or called in a way that cannot be changed from outside", hint)
    worst = max(apart.values(), default=0.0)
    return NumbersCompared(
        of="results",
        agree=not note and all(relative <= accepted_error(dtype) for dtype, relative in apart.items()),
        compared=calls,
        relative=None if note or worst > _NOT_FINITE else worst,
        note=note,
    )


def _of_launches(done: ProgramLaunches, fix: MechanicalFix, checked: NumbersCompared | None) -> FixTrial:
    side, problem = done.problem
    if side == "B":
        return FixTrial(fix=fix.title, failed=True, reason=f"with it the program fails: {problem}")
    if side:
        return FixTrial(fix=fix.title, reason=f"the program fails as it is: {problem}")
    unchanged = [launch.output for launch in (*done.by_side["A"], *done.by_side["A'"])]
    changed = [done.filling.output, *(launch.output for launch in done.by_side["B"])]
    printed = compare_printed(unchanged, changed)
    return FixTrial(
        fix=fix.title,
        times=done.compared(),
        of="launch",
        seconds=((*done.seconds("A"), *done.seconds("A'")), done.seconds("B")),
        numbers=printed if checked is None or printed.agree is False else checked,
        other_numbers=fix.other_numbers,
    )


def _call_trial(explained: Explanation, finding: RankedFinding, fix: MechanicalFix, options: TryOptions) -> FixTrial:
    from jaxprof.cli.answers import new_writer
    from jaxprof.cli.sides import measure_planned
    from jaxprof.reaper import TemporaryFolder
    from jaxprof.runner.fix_trials import FixedSide, plan_fix

    session = explained.session
    assert session is not None
    run = session.runs[finding.run]
    donated = _donated(session, run, finding) if fix.donates else ()
    fixed = FixedSide(
        title=fix.title, environment=fix.environment, donated=donated, ask=options.ask, python=options.python
    )
    with TemporaryFolder("try") as folder:
        planned, interpreter = plan_fix(session, run, fixed, options.budget_seconds, folder)
        measured = measure_planned(planned, interpreter, new_writer(None), MAX_SILENCE_SECONDS)
    if measured.result is None or measured.exit_code == ExitCode.INTERRUPTED:
        raise KeyboardInterrupt
    return replace(_of_comparison(measured.result, fix), session=measured.path or "")


def _donated(session: Session, run: Run, finding: RankedFinding) -> tuple[int, ...]:
    """The numbers of the arrays that the finding names. Raises UsageError where they are not known."""
    from jaxprof.analysis.run_result import module_of

    module = module_of(session, run)
    entry = module.entry if module is not None else None
    named = set(finding.kernels)
    numbers = [each.parameter_number for each in entry.instructions if each.name in named] if entry is not None else []
    if not numbers or None in numbers:
        raise UsageError("which arguments it is about is not known", "jaxprof hlo --findings names them.")
    return tuple(sorted(number for number in numbers if number is not None))


def _of_comparison(result: AbResult, fix: MechanicalFix) -> FixTrial:
    """What the measured sides showed."""
    from jaxprof.analysis.memory import peak_memory

    (versus,) = result.versus
    for side in result.failed:
        label, error = side.run.plan.side, side.run.error or side.run.status
        if label == "B":
            return FixTrial(fix=fix.title, failed=True, reason=f"with it the call fails: {error}")
        return FixTrial(fix=fix.title, reason=f"the call fails as it is: {error}")
    kept = versus.results
    numbers = None
    if kept is not None:
        numbers = NumbersCompared(
            of="results", agree=kept.agree, relative=kept.relative if kept.alike else None, note=kept.note or kept.where
        )
    return FixTrial(
        fix=fix.title,
        times=versus.times,
        of="call",
        seconds=(_medians(result.baseline), _medians(versus.run)),
        bytes=(peak_memory(result.baseline), peak_memory(versus.run)) if fix.donates else None,
        numbers=numbers,
        other_numbers=fix.other_numbers,
    )


def _medians(run: Run) -> tuple[float, ...]:
    """The median call of each launch."""
    return tuple(
        median(seconds for turn in launch.turns for seconds in turn.seconds) for launch in run.launches if launch.turns
    )


def _afford(expected: float, budget: float) -> None:
    """Raises UsageError where the fewest launches take longer than the budget."""
    import math

    from jaxprof.runner.fix_trials import least_seconds
    from jaxprof.runner.turns import LONGER

    least = least_seconds(expected)
    if least > LONGER * budget:
        raise UsageError(
            f"the fewest launches that can show anything take about {seconds(least, 2)}, the budget is "
            f"{seconds(budget, 2)}",
            f"--budget {math.ceil(least / LONGER)}",
        )
