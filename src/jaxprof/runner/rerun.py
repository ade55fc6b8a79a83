"""Plans runs of a kept session once more, from the session's records: for `jaxprof run --from` and for the app.

Each run is planned beside a fresh measurement of its baseline, because a speed-up computed from times of different
hours means little. A user's function is found by its file or module, and its arguments are made from their specs, as
the session has them. If the session lacks these, that is reported.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from jaxprof.errors import UsageError, unknown_name
from jaxprof.runner.planning import PlannedRun
from jaxprof.session import Run, Session
from jaxprof.workloads import names

_OTHERWISE = {
    "program": ("is a program", "jaxprof script FILE ARGS records a program."),
    "imported": ("was read from a profile: there is nothing to run", "Its own program records another one."),
    "compile": ("was compiled and not run", "jaxprof hlo TARGET compiles it again."),
}
"""By how a run was made, if it cannot be repeated from a session: what it is instead, and what to do."""


def plan_again(session: Session, run_id: str) -> list[PlannedRun]:
    """The run `run_id`, its baseline first if it has one. Raises UsageError if it cannot be repeated."""
    run = session.runs[run_id]
    first = session.runs.get(run.plan.baseline)
    if first is None:
        return [_planned(session, run, None)]
    baseline = _planned(session, first, None)
    return [baseline, _planned(session, run, baseline)]


def plan_all_again(session: Session, wanted: str = "") -> list[PlannedRun]:
    """All runs of `session` that can be repeated, or those that match `wanted`: a run's id, its workload, its function.

    Raises UsageError if there is no such run, or if a named one (or every one) cannot be repeated.
    """
    chosen = [run for run in session.runs.values() if not wanted or wanted in _names_of(run)]
    if not chosen:
        names = {name: None for run in session.runs.values() for name in (run.id, run.plan.workload)}
        raise unknown_name("run", wanted, names) if names else UsageError("the session has no runs")
    made: dict[str, PlannedRun] = {}
    refused: list[UsageError] = []
    for run in chosen:
        try:
            _with_baseline(session, run, made)
        except UsageError as error:
            refused.append(error)
    if refused and (wanted or not made):
        raise refused[0]
    return list(made.values())


def is_of_a_user(planned: PlannedRun) -> bool:
    """Whether running it runs the user's own code, not a built-in workload."""
    return planned.spec.target not in names()


def _with_baseline(session: Session, run: Run, made: dict[str, PlannedRun]) -> PlannedRun:
    if run.id not in made:
        first = session.runs.get(run.plan.baseline)
        baseline = _with_baseline(session, first, made) if first is not None else None
        made[run.id] = _planned(session, run, baseline)
    return made[run.id]


def _names_of(run: Run) -> set[str]:
    return {run.id, run.plan.workload, run.plan.workload.rpartition(":")[2]}


def _planned(session: Session, run: Run, baseline: PlannedRun | None) -> PlannedRun:
    plan = run.plan
    if plan.how in _OTHERWISE:
        what, hint = _OTHERWISE[plan.how]
        raise UsageError(f"{plan.workload} {what}", hint)
    if plan.side:
        raise UsageError(
            f"{plan.workload} is side {plan.side} of a comparison, and its session does not keep what it was run with",
            "jaxprof ab A B compares again.",
        )
    spec = replace(
        plan,
        target=_target(run),
        baseline="",
        budget_seconds=plan.timing_seconds,
        argv=plan.argv or _program_argv(session),
        check=plan.check and (run.check is not None or run.status != "ok"),
        keep_trace=False,
    )
    return PlannedRun(spec=spec, baseline=baseline)


def _target(run: Run) -> str:
    plan = run.plan
    if plan.workload in names():
        return plan.workload
    if not plan.target:
        messages = [warning.message for warning in run.warnings if warning.code == "cannot_repeat"]
        why = messages[0].partition(": ")[2] if messages else "its session does not say where the function is"
        raise UsageError(f"{plan.workload} cannot be run again: {why}", "Run it from its file: jaxprof run FILE:NAME.")
    place = plan.target.rpartition(":")[0]
    if place.endswith(".py") and not Path(place).is_file():
        raise UsageError(
            f"{plan.workload} cannot be run again: there is no file {place}",
            "It was recorded on another machine, or the file was moved: jaxprof run FILE:NAME runs it from elsewhere.",
        )
    return plan.target


def _program_argv(session: Session) -> tuple[str, ...]:
    """How the session's program was started; empty if it recorded none, or one whose arguments belong to a notebook."""
    for run in session.runs.values():
        started = run.program.started if run.program is not None else None
        if started is not None and started.how != "cell":
            return tuple(started.argv)
    return ()
