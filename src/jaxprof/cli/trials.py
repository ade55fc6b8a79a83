"""The run that `compare --try` changes, with the findings that propose the changes: of a function or a workload, which
is compiled for that, or of a session."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxprof.analysis.target import Target
from jaxprof.base.errors import UsageError
from jaxprof.cli.answers import side_options
from jaxprof.cli.options import refuse
from jaxprof.cli.output import note, start_question
from jaxprof.events.finding import Finding
from jaxprof.findings.derive import explanation
from jaxprof.findings.trials import changeable_runs
from jaxprof.runner.interpreter import find_interpreter
from jaxprof.session import Session

if TYPE_CHECKING:
    from jaxprof.runner.planning import PlannedRun

_MOST_FINDINGS = 100


def compile_run(
    target: Target, folder: Path, words: Mapping[str, Any], *, needs_findings: bool
) -> tuple[PlannedRun, Iterable[Finding]]:
    """Return the run of a function or a workload, and what its compiled program shows; nothing, and without compiling
    it, unless that is needed. Raises JaxprofError."""
    from jaxprof.runner.device_choice import choose
    from jaxprof.runner.sides import plan_sides, sides_of

    sides, _ = sides_of([target], words, None)
    side = sides[0]
    device, *_ = choose([words["device"]] if words["device"] else [], side.interpreter, note, side.environment)
    (original,) = plan_sides(sides, side_options(words, folder, device=device))
    if not needs_findings:
        return original, ()
    from jaxprof.analysis.kernels.hlo_program import CompileOptions
    from jaxprof.cli.modules import compile_programs

    options = CompileOptions(
        variant=original.spec.variant,
        preset=words["preset"],
        settings=words["settings"],
        arguments=words["arguments"],
        device=device,
        python=Path(side.interpreter.path),
    )
    session, _ = compile_programs(target, options, original.environment)[-1]
    return original, explanation(session, target.word, most=_MOST_FINDINGS).findings


def plan_recorded(target: Target, words: Mapping[str, Any]) -> tuple[PlannedRun, Iterable[Finding]]:
    """Return the run that a session has, planned again, and what the session shows. Asks before anything starts that
    the session names. Raises JaxprofError."""
    from jaxprof.runner.rerun import choose_runs, list_starts, plan_again, refuse_fetched
    from jaxprof.session import load

    fixed = ("variant", "preset", "settings", "arguments", "precision", "environment", "seed")
    refuse(fixed, "is fixed by the session", "Name the function in place of the session.")
    refuse_fetched(target.file)
    session = load(target.file, Session)
    runs = changeable_runs(choose_runs(session, target.run))
    if len(runs) != 1:
        named = ", ".join(f"{target.word}:{run.id}" for run in runs)
        raise UsageError(
            f"{target.word} has {len(runs)} compiled runs that can be changed",
            f"Name one: {named}." if runs else "jaxprof script --function NAME keeps a call; jaxprof run measures one.",
        )
    run = runs[0]
    *_, planned = plan_again(session, run.id)
    start_question(target.word, yes=words["yes"])(list_starts(session, run))
    interpreter = find_interpreter(Path(words["python"]) if words["python"] else None)
    spec = replace(planned.spec, device=words["device"] or planned.spec.device)
    # A program and its captures include the call; another run that was measured is another function.
    about = {run.id, *(each.id for each in session.runs.values() if not each.samples("run"))}
    found = explanation(session, target.word, most=_MOST_FINDINGS).findings
    return replace(planned, spec=spec, baseline=None, interpreter=interpreter), [
        finding for finding in found if about & {finding.run, *finding.also}
    ]
