"""Plan the changes that findings propose as sides of a comparison: A is the program as it is, each other side the same
program with one change, made in a process of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from jaxprof.base.private import kept_value
from jaxprof.events import ComparisonPlanned, SideSpec
from jaxprof.findings.trials import ProposedChange, trial_of
from jaxprof.runner.planning import PlannedRun
from jaxprof.runner.sides import LABELS, SideOptions, same_inputs, timing


def plan_trials(original: PlannedRun, trials: Sequence[ProposedChange], options: SideOptions) -> list[PlannedRun]:
    """Plan a run as A, and the trials beside it. Raises UsageError if its inputs cannot be made. Blocks while a child
    makes them."""
    planned: list[PlannedRun] = []
    sides: list[SideSpec] = []
    for label, trial in zip(LABELS, (None, *trials), strict=False):
        spec = replace(original.spec, **timing(options), baseline="", side=label, capture=options.capture)
        variables, title, changes_inputs = dict(original.environment), spec.workload, False
        if trial is not None:
            # Its result is compared with A's; the function op by op, of the engine's own check, would have the change.
            spec = replace(spec, trial=trial.name, trial_at=trial.line, check=False)
            variables |= trial.environment(variables)
            title, changes_inputs = trial.title, trial_of(trial.name).changes_inputs
        plan = replace(
            original,
            spec=spec,
            baseline=None,
            environment=variables,
            keep_output=f"{options.folder}/{label}.npz" if options.folder is not None and not changes_inputs else "",
            group_seconds=None if options.launches else options.budget_seconds,
        )
        planned.append(plan)
        sides.append(
            SideSpec(
                label=label,
                title=title,
                python=plan.interpreter.path if plan.interpreter is not None else "",
                environment={name: kept_value(name, value) for name, value in variables.items()},
                precision=spec.precision,
                finding=trial.code if trial is not None else "",
            )
        )
    inputs, _ = same_inputs(planned[:1])
    comparison = ComparisonPlanned(
        sides=sides, margin=options.margin, group_seconds=planned[0].group_seconds, inputs=inputs, same_inputs=True
    )
    first = replace(planned[0], comparison=comparison)
    return [first, *(replace(plan, baseline=first) for plan in planned[1:])]
