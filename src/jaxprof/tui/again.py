"""Asking for a run once more: as it was asked for, beside a fresh measurement of its baseline.

The baseline is measured again too, because a speed-up of two times that were taken in different hours means little.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from jaxprof.errors import UsageError

if TYPE_CHECKING:
    from jaxprof.session import Run, Session
    from jaxprof.worker import Planned


def planned_again(session: Session, run_id: str, known: Mapping[str, Planned]) -> list[Planned]:
    """The plan of the run `run_id` of `session`, its baseline first.

    `known` holds what this app has asked for itself, by run id. Of a session that was opened, only runs of built-in
    workloads can be asked for again: where a user's own function was found is not in the file. Raises UsageError.
    """
    run = session.runs[run_id]
    planned = known.get(run_id)
    if planned is not None:
        if planned.baseline is None:
            return [replace(planned)]
        baseline = replace(planned.baseline)
        return [baseline, replace(planned, baseline=baseline)]
    first = session.runs.get(run.plan.baseline)
    if first is None:
        return [_from_plan(run, None)]
    baseline = _from_plan(first, None)
    return [baseline, _from_plan(run, baseline)]


def _from_plan(run: Run, baseline: Planned | None) -> Planned:
    from jaxprof.engine.request import DEFAULT_BUDGET_SECONDS
    from jaxprof.worker import Planned
    from jaxprof.workloads import names

    plan = run.plan
    if plan.workload not in names():
        raise UsageError(
            f"{plan.workload} is not one of the built-in workloads",
            "Its session does not say where the function is: load it on Home, and run it from there.",
        )
    return Planned(
        target=plan.workload,
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
    )
