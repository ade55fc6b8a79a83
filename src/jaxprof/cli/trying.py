"""`jaxprof explain --try`: measure the fixes that are mechanical beside what they replace, in fresh processes.

Nothing of the user's is changed: a side gets other settings, and that is all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING

from jaxprof.analysis.explain.model import FixTrial, MechanicalFix, NumbersCompared, fix_of
from jaxprof.cli.output import ExitCode
from jaxprof.errors import JaxprofError, UsageError
from jaxprof.runner.engine_run import MAX_SILENCE_SECONDS
from jaxprof.runner.from_file import NotAskedFor

if TYPE_CHECKING:
    from jaxprof.analysis.ab import AbResult
    from jaxprof.analysis.explain.model import Explanation, RankedFinding
    from jaxprof.runner.from_file import Ask
    from jaxprof.runner.interpreter import Interpreter
    from jaxprof.session import Run, Session


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
        trial = _call_trial(explained, finding, fix, options)
    except NotAskedFor:
        raise
    except JaxprofError as error:
        hint = f" ({error.hint})" if error.hint else ""
        trial = FixTrial(fix=fix.title, reason=f"{error.what}{hint}")
    return replace(finding, trial=trial)


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
    from jaxprof.analysis.opener import module_of

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
            agree=kept.agree, relative=kept.relative if kept.alike else None, note=kept.note or kept.where
        )
    return FixTrial(
        fix=fix.title,
        times=versus.times,
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
