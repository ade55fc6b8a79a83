"""`jaxprof explain --try`: measure the fixes that are mechanical beside what they replace, in fresh processes.

Nothing of the user's is changed: a side only gets other settings.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from jaxprof.analysis.explain.catalogue import find_entry
from jaxprof.analysis.explain.derive import explanation
from jaxprof.analysis.explain.model import TRIED, FixTrial, MechanicalFix
from jaxprof.analysis.memory import peak_memory
from jaxprof.analysis.opener import Kind, kind_of, module_of
from jaxprof.cli.answers import new_writer
from jaxprof.cli.output import ExitCode, asks, note
from jaxprof.cli.sides import measure_planned
from jaxprof.cli.target import recorded, refuse_job, refuse_unrecorded
from jaxprof.errors import JaxprofError, UsageError
from jaxprof.files import with_home
from jaxprof.operating_system import refuse_to_run, unwound_by_signals
from jaxprof.reaper import TemporaryFolder
from jaxprof.runner.engine_run import MAX_SILENCE_SECONDS
from jaxprof.runner.fix_trials import plan_fix
from jaxprof.runner.from_file import NotAskedFor, refuse_fetched
from jaxprof.runner.interpreter import find_interpreter

if TYPE_CHECKING:
    from jaxprof.analysis.ab import AbResult
    from jaxprof.analysis.explain.model import Explanation, RankedFinding
    from jaxprof.runner.from_file import Ask
    from jaxprof.runner.interpreter import Interpreter
    from jaxprof.session import Run, Session


def explanation_with_trials(
    file: str | None, code: str | None, most: int, budget_seconds: float, python: Path | None, *, yes: bool
) -> Explanation:
    """Return the explanation, of at most `most` findings, with the results of trying their fixes, `budget_seconds`
    each. Blocks: processes are started one after the other, which end with this process. Raises UsageError if there is
    nothing to try."""
    refuse_to_run("jaxprof explain --try")
    if file is not None:
        refuse_job("jaxprof explain --try", file, "--try")
        if kind_of(with_home(file)) in (Kind.PROFILE, Kind.HLO):
            what = f"{file} has no function that can be measured again"
            raise UsageError(what, "--try takes a session of jaxprof run.")
    wanted = find_entry(code).code if code is not None else ""
    refuse_unrecorded(file)
    with recorded(file or "last") as found:
        refuse_fetched(found.path)
        explained = explanation(found.session, found.name, code=wanted, most=most)
    if wanted and not explained.findings:
        raise UsageError(f"the session has no finding {wanted}", f"jaxprof explain {found.name} lists those it has.")
    if not any(finding.mechanical for finding in explained.findings):
        raise UsageError(
            f"nothing to try: {'the fix of ' + wanted if wanted else 'each fix'} is a change of the program",
            "Each finding's own command verifies it once it is made.",
        )
    with unwound_by_signals():
        given, ask = find_interpreter(python) if python else None, asks(str(found.path), yes=yes)
        tried = (_try_fix(explained, finding, budget_seconds, ask, given) for finding in explained.findings)
        return replace(explained, findings=tuple(tried))


def _try_fix(
    explained: Explanation, finding: RankedFinding, budget_seconds: float, ask: Ask, python: Interpreter | None
) -> RankedFinding:
    """Return the finding with the result of trying its mechanical fix. `python`: the interpreter that the user named;
    None if there is none."""
    session = explained.session
    if not finding.mechanical or session is None:
        return finding
    fix = TRIED[finding.code]
    note(f"trying {finding.code}: {fix.title}")
    run = session.runs[finding.run]
    try:
        donated = _donated(session, run, finding) if fix.donates else ()
        with TemporaryFolder("try") as folder:
            planned, interpreter = plan_fix(
                session, run, fix, budget_seconds, folder, donated=donated, ask=ask, python=python
            )
            measured = measure_planned(planned, interpreter, new_writer(None), MAX_SILENCE_SECONDS)
    except NotAskedFor:
        raise
    except JaxprofError as error:
        hint = f" ({error.hint})" if error.hint else ""
        return replace(finding, trial=FixTrial(fix=fix.title, reason=f"{error.what}{hint}"))
    if measured.result is None or measured.exit_code == ExitCode.INTERRUPTED:
        raise KeyboardInterrupt
    return replace(finding, trial=replace(_trial_of(measured.result, fix), session=measured.path or ""))


def _donated(session: Session, run: Run, finding: RankedFinding) -> tuple[int, ...]:
    """Return the numbers of the arguments that the finding names. Raises UsageError if they are unknown."""
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
    (versus,) = result.versus
    for side in result.failed:
        label, error = side.run.plan.side, side.run.error or side.run.status
        if label == "B":
            return FixTrial(fix=fix.title, failed=True, reason=f"with it the call fails: {error}")
        return FixTrial(fix=fix.title, reason=f"the call fails as it is: {error}")
    return FixTrial(
        fix=fix.title,
        times=versus.times,
        seconds=(_medians(result.baseline), _medians(versus.run)),
        bytes=(peak_memory(result.baseline), peak_memory(versus.run)) if fix.donates else None,
        numbers=versus.results,
        other_numbers=fix.other_numbers,
    )


def _medians(run: Run) -> tuple[float, ...]:
    """Return the median call of each launch."""
    return tuple(
        median(seconds for turn in launch.turns for seconds in turn.seconds) for launch in run.launches if launch.turns
    )
