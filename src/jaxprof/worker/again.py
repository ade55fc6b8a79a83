"""Planning runs of a kept session once more, from what it says of them: for `jaxprof run --from` and for the app.

Each run is planned beside a fresh measurement of its baseline, because a speed-up of two times that were taken in
different hours means little. A user's function is found by its file or module and made its arguments by their specs, as
the session has them; where it has not, that is told.
"""

from __future__ import annotations

from pathlib import Path

from jaxprof.engine.request import DEFAULT_BUDGET_SECONDS
from jaxprof.errors import UsageError, unknown_name
from jaxprof.session import Run, Session
from jaxprof.worker.planning import Planned
from jaxprof.workloads import names

_OTHERWISE = {
    "program": ("is a program", "jaxprof script FILE ARGS records a program."),
    "imported": ("was read from a profile: there is nothing to run", "Its own program records another one."),
    "compile": ("was compiled and not run", "jaxprof hlo TARGET compiles it again."),
}
"""By how a run was made, where it cannot be made again from a session: what it is instead, and what to do."""


def plan_again(session: Session, run_id: str) -> list[Planned]:
    """The run `run_id`, its baseline first where it has one. Raises UsageError where it cannot be run again."""
    run = session.runs[run_id]
    first = session.runs.get(run.plan.baseline)
    if first is None:
        return [_planned(run, None)]
    baseline = _planned(first, None)
    return [baseline, _planned(run, baseline)]


def plan_all_again(session: Session, wanted: str = "") -> list[Planned]:
    """All runs of `session` that can be run again, or those called `wanted`: a run's id, its workload, its function.

    Raises UsageError where there is no such run, and where one that was named (or none at all) can be run again.
    """
    chosen = [run for run in session.runs.values() if not wanted or wanted in _names_of(run)]
    if not chosen:
        known = {name: None for run in session.runs.values() for name in (run.id, run.plan.workload)}
        raise unknown_name("run", wanted, known) if known else UsageError("the session has no runs")
    made: dict[str, Planned] = {}
    refused: list[UsageError] = []
    for run in chosen:
        try:
            _with_baseline(session, run, made)
        except UsageError as error:
            refused.append(error)
    if refused and (wanted or not made):
        raise refused[0]
    return list(made.values())


def is_of_a_user(planned: Planned) -> bool:
    """Whether running it runs somebody's own code, and not a built-in workload."""
    return planned.target not in names()


def _with_baseline(session: Session, run: Run, made: dict[str, Planned]) -> Planned:
    if run.id not in made:
        first = session.runs.get(run.plan.baseline)
        baseline = _with_baseline(session, first, made) if first is not None else None
        made[run.id] = _planned(run, baseline)
    return made[run.id]


def _names_of(run: Run) -> set[str]:
    return {run.id, run.plan.workload, run.plan.workload.rpartition(":")[2]}


def _planned(run: Run, baseline: Planned | None) -> Planned:
    plan = run.plan
    if plan.how in _OTHERWISE:
        what, mend = _OTHERWISE[plan.how]
        raise UsageError(f"{plan.workload} {what}", mend)
    return Planned(
        target=_target(run),
        workload=plan.workload,
        variant=plan.variant,
        how=plan.how,
        device=plan.device,
        parameters=dict(plan.parameters),
        preset=plan.preset,
        baseline=baseline,
        precision=plan.precision,
        budget_seconds=plan.budget_seconds or DEFAULT_BUDGET_SECONDS,
        max_seconds=plan.max_seconds,
        arguments=tuple(plan.arguments),
        check=run.check is not None or run.status != "ok",
    )


def _target(run: Run) -> str:
    plan = run.plan
    if plan.workload in names():
        return plan.workload
    if not plan.target:
        told = [warning.message for warning in run.warnings if warning.code == "cannot_repeat"]
        why = told[0].partition(": ")[2] if told else "its session does not say where the function is"
        raise UsageError(f"{plan.workload} cannot be run again: {why}", "Run it from its file: jaxprof run FILE:NAME.")
    place = plan.target.rpartition(":")[0]
    if place.endswith(".py") and not Path(place).is_file():
        raise UsageError(
            f"{plan.workload} cannot be run again: there is no file {place}",
            "It was recorded on another machine, or the file was moved: jaxprof run FILE:NAME runs it from elsewhere.",
        )
    return plan.target
