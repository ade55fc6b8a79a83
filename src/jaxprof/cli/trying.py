"""`jaxprof explain --try`: measure the fixes that are mechanical beside what they replace, in fresh processes.

Nothing of the user's is changed: a side only gets other settings.
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
    """How long each fix is measured, and how progress and questions are shown."""

    budget_seconds: float
    note: Callable[[str], None]
    ask: Ask
    python: Interpreter | None = None
    """The interpreter that the user named; None if there is none."""


def tried(explained: Explanation, options: TryOptions) -> Explanation:
    """Return the explanation with the result of trying each finding's mechanical fix. Blocks: processes are started one
    after the other, which end with this process."""
    return replace(explained, findings=tuple(_try_fix(explained, finding, options) for finding in explained.findings))


def _try_fix(explained: Explanation, finding: RankedFinding, options: TryOptions) -> RankedFinding:
    fix = fix_of(finding, explained.subject)
    if fix is None:
        return finding
    options.note(f"trying {finding.code}: {fix.title}")
    try:
        trial = _measure_fix(explained, finding, fix, options)
    except NotAskedFor:
        raise
    except JaxprofError as error:
        hint = f" ({error.hint})" if error.hint else ""
        trial = FixTrial(fix=fix.title, reason=f"{error.what}{hint}")
    return replace(finding, trial=trial)


def _measure_fix(explained: Explanation, finding: RankedFinding, fix: MechanicalFix, options: TryOptions) -> FixTrial:
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
    return replace(_trial_of(measured.result, fix), session=measured.path or "")


def _donated(session: Session, run: Run, finding: RankedFinding) -> tuple[int, ...]:
    """Return the numbers of the arguments that the finding names. Raises UsageError if they are unknown."""
    from jaxprof.analysis.opener import module_of

    module = module_of(session, run)
    entry = module.entry if module is not None else None
    named = set(finding.kernels)
    instructions = entry.instructions if entry is not None else ()
    numbers = [instruction.parameter_number for instruction in instructions if instruction.name in named]
    if not numbers or None in numbers:
        raise UsageError("the arguments that the finding is about are unknown", "jaxprof hlo --findings names them.")
    return tuple(sorted(number for number in numbers if number is not None))


def _trial_of(result: AbResult, fix: MechanicalFix) -> FixTrial:
    """Return what the measured sides showed."""
    from jaxprof.analysis.memory import peak_memory

    (versus,) = result.versus
    for side in result.failed:
        label, error = side.run.plan.side, side.run.error or side.run.status
        if label == "B":
            return FixTrial(fix=fix.title, failed=True, reason=f"with it the call fails: {error}")
        return FixTrial(fix=fix.title, reason=f"the call fails as it is: {error}")
    compared = versus.results
    numbers = None
    if compared is not None:
        numbers = NumbersCompared(
            agree=compared.agree,
            relative=compared.relative if compared.alike else None,
            note=compared.note or compared.where,
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
    """Return the median call of each launch."""
    return tuple(
        median(seconds for turn in launch.turns for seconds in turn.seconds) for launch in run.launches if launch.turns
    )
