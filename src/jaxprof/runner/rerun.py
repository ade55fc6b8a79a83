"""Plan runs of a kept session once more, from the session's records: for `jaxprof run --from` and for the app.

The sides of a comparison are planned together, with the differences between them; a part that is no longer available (a
git revision, an interpreter, a file) is an error that names it.

Each run is planned beside a fresh measurement of its baseline, because a speed-up computed from times of different
hours means little. A user's function is found by its file or module, and its arguments are made from their specs in the
session. An error reports it if the session lacks these.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from jaxprof.errors import UsageError, WorkerError, unknown_name
from jaxprof.events import ComparisonPlanned, SideSpec
from jaxprof.redaction import REDACTED
from jaxprof.runner.from_file import (
    Ask,
    kept_variables,
    known_interpreter,
    nobody_asked,
    recorded_on,
    refuse_fetched,
    side_words,
)
from jaxprof.runner.planning import PlannedRun
from jaxprof.runner.sides import SideTree, compared, duration_fields, output_file, tree_note, variables
from jaxprof.session import Run, Session
from jaxprof.workloads import names

NOT_AGAIN = {
    "program": ("is a program", "jaxprof script FILE ARGS records a program."),
    "imported": ("was read from a profile: there is nothing to run", "Run its program again to record another one."),
    "compile": ("was compiled and not run", "jaxprof hlo TARGET compiles it again."),
}
"""Runs that cannot be repeated from a session, by how they were made: what they are instead, and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SidesAgain:
    """Resources that the sides of a comparison need while they are measured."""

    folder: Path | None = None
    """Folder in which the engines write their results; None: results are neither written nor compared."""
    check_out: Callable[[str, str], tuple[str, SideTree]] | None = None
    """Check out a commit of the repository that holds a target: return the target there, and the tree of its side. None
    if no revision can be checked out."""
    ask: Ask = nobody_asked
    """Called with what would start, before anything is checked out or started."""
    present: Callable[[str], SideTree] = lambda target: SideTree()
    """Return the tree that holds a target, for a side whose files are those on disk."""


def plan_again(session: Session, run_id: str, sides: SidesAgain | None = None) -> list[PlannedRun]:
    """Plan the run `run_id` again, its baseline first if it has one; for a side, the whole comparison. Raises
    UsageError if it cannot be repeated."""
    run = session.runs[run_id]
    if run.plan.side:
        return _comparison(session, session.runs.get(run.plan.baseline, run), sides or SidesAgain())
    made: dict[str, PlannedRun] = {}
    _with_baseline(session, run, made)
    return list(made.values())


def plan_all_again(session: Session, wanted: str = "", sides: SidesAgain | None = None) -> list[PlannedRun]:
    """Plan all runs of `session` that can be repeated, or those that match `wanted`: a run's id, its workload, its
    function. A side brings the whole comparison with it.

    Raises UsageError if there is no such run, or if a named one (or every one) cannot be repeated.
    """
    chosen = chosen_runs(session, wanted)
    made: dict[str, PlannedRun] = {}
    refused: list[UsageError] = []
    for run in chosen:
        try:
            if run.plan.side:
                if run.id not in made:
                    first = session.runs.get(run.plan.baseline, run)
                    again = plan_again(session, run.id, sides)
                    made |= zip((each.id for each in _sides(session, first)), again, strict=True)
            else:
                _with_baseline(session, run, made)
        except UsageError as error:
            refused.append(error)
    if refused and (wanted or not made):
        raise refused[0]
    return list(made.values())


def chosen_runs(session: Session, wanted: str) -> list[Run]:
    """Return the runs that `wanted` names; all of them if it is empty. Raises UsageError if there is none."""
    chosen = [
        run
        for run in session.runs.values()
        if not wanted or wanted in (run.id, run.plan.workload, run.plan.workload.rpartition(":")[2])
    ]
    if not chosen:
        names = {name: None for run in session.runs.values() for name in (run.id, run.plan.workload)}
        raise unknown_name("run", wanted, names) if names else UsageError("the session has no runs")
    return chosen


def recorded_starts(session: Session, run: Run) -> list[str]:
    """Return what running `run` and its baseline again would start that is not part of jaxprof, a line each, from the
    records alone; nothing for a built-in workload. Sides of a comparison set variables and name interpreters, so they
    are always listed. No line is repeated, and each says if the session was recorded elsewhere."""
    elsewhere = recorded_on(session)
    return [f"{line}{elsewhere}" for line in dict.fromkeys(_starts(session, run))]


def _starts(session: Session, run: Run) -> list[str]:
    first = session.runs.get(run.plan.baseline)
    if not run.plan.side:
        return [_call(session, kept) for kept in (first, run) if kept is not None and kept.plan.target not in names()]
    first = first or run
    specs = {spec.label: spec for spec in first.comparison.sides} if first.comparison is not None else {}
    sides = [side for side in _sides(session, first) if side.plan.side in specs]
    return [side_words(side.plan.target or side.plan.workload, specs[side.plan.side]) for side in sides]


def _call(session: Session, run: Run) -> str:
    given = [word for argument in run.plan.arguments for word in ("--arg", argument)]
    argv = _argv(session, run)
    call = shlex.join([run.plan.target or run.plan.workload, *given])
    return f"{call}{f' with sys.argv {shlex.join(argv)}' if argv else ''}, in {os.getcwd()}"


def _with_baseline(session: Session, run: Run, made: dict[str, PlannedRun]) -> None:
    """Plan a run again, and before it the run that it is compared with. A baseline has none of its own: in a file two
    runs can name each other."""
    first = session.runs.get(run.plan.baseline)
    if first is not None and first.id not in made:
        made[first.id] = _planned(session, first, None)
    if run.id not in made:
        made[run.id] = _planned(session, run, made[first.id] if first is not None else None)


def _planned(session: Session, run: Run, baseline: PlannedRun | None) -> PlannedRun:
    plan = run.plan
    if plan.how in NOT_AGAIN:
        what, hint = NOT_AGAIN[plan.how]
        raise UsageError(f"{plan.workload} {what}", hint)
    spec = replace(
        plan,
        target=_target(run),
        baseline="",
        inputs_from=baseline.spec.target if plan.inputs_from and baseline is not None else "",
        budget_seconds=plan.timing_seconds,
        argv=_argv(session, run),
        check=plan.check and (run.check is not None or run.status != "ok"),
    )
    return PlannedRun(spec=spec, baseline=baseline)


def with_changes(planned: PlannedRun, changes: Mapping[str, Any], baseline: PlannedRun | None) -> PlannedRun:
    """Return `planned` with `changes` to the session's options (fields of `RunSpec`) and another baseline."""
    if not planned.spec.side:
        return replace(planned, spec=replace(planned.spec, **changes), baseline=baseline)
    fields = {name: value for name, value in changes.items() if name not in ("launches", "budget_seconds")}
    group_seconds = planned.group_seconds
    if changes.keys() & {"launches", "budget_seconds"}:
        launches = changes.get("launches") or (None if "budget_seconds" in changes else planned.spec.launches)
        group_seconds = None if launches else changes["budget_seconds"]
        fields |= duration_fields(launches, group_seconds or 0.0, changes.get("max_seconds"))
    comparison = planned.comparison and replace(planned.comparison, group_seconds=group_seconds)
    spec = replace(planned.spec, **fields)
    return replace(planned, spec=spec, baseline=baseline, group_seconds=group_seconds, comparison=comparison)


def _sides(session: Session, first: Run) -> list[Run]:
    """Return the sides of the comparison whose first one is `first`, in order."""
    return [first, *(run for run in session.runs.values() if run.plan.side and run.plan.baseline == first.id)]


def _comparison(session: Session, first: Run, sides: SidesAgain) -> list[PlannedRun]:
    """Plan all sides of the comparison whose first one is `first`, as they were. Raises UsageError. Blocks while
    children make the inputs."""
    plan = first.comparison
    if plan is None:
        raise UsageError(
            f"{first.plan.workload} is side {first.plan.side} of a comparison, and its session does not hold its "
            "options",
            "jaxprof compare A B compares again.",
        )
    sides.ask(recorded_starts(session, first))
    specs = {spec.label: spec for spec in plan.sides}
    runs = _sides(session, first)
    planned: list[PlannedRun] = []
    for run in runs:
        label = run.plan.side
        if label not in specs:
            raise UsageError(
                f"the session does not hold the options of side {label}", "jaxprof compare A B compares again."
            )
        try:
            planned.append(_side(session, run, specs[label], plan, planned[0] if planned else None, sides))
        except (UsageError, WorkerError) as error:
            raise UsageError(f"side {run.plan.side} cannot be measured again: {error.what}", error.hint) from error
    targets = {run.plan.side: run.plan.target for run in runs}
    present = [_in_present_tree(spec, partial(sides.present, targets[spec.label])) for spec in plan.sides]
    notes = [tree_note(present), *(note for note in plan.notes if note != tree_note(plan.sides))]
    notes += [_other_tree(was, now) for was, now in zip(plan.sides, present, strict=True)]
    return compared(planned, present, plan.margin, list(dict.fromkeys(filter(None, notes))))


def _side(
    session: Session, run: Run, spec: SideSpec, plan: ComparisonPlanned, baseline: PlannedRun | None, sides: SidesAgain
) -> PlannedRun:
    planned = _planned(session, run, baseline)
    target, tree = planned.spec.target, SideTree()
    if spec.revision:
        if sides.check_out is None:
            raise UsageError(
                f"{spec.title} has to be checked out", "jaxprof run --from SESSION does that, or jaxprof compare --git."
            )
        target, tree = sides.check_out(target, spec.commit)
    return replace(
        planned,
        spec=replace(
            planned.spec,
            target=target,
            check=run.plan.check,
            inputs_from=baseline.spec.target if run.plan.inputs_from and baseline is not None else "",
        ),
        interpreter=known_interpreter(spec.python),
        environment=variables(tree.variables, kept_variables(spec.environment), spec.precision),
        stays_at=tree.stays_at,
        keep_output=output_file(sides.folder, run.plan.side),
        group_seconds=plan.group_seconds,
    )


def _in_present_tree(spec: SideSpec, present: Callable[[], SideTree]) -> SideSpec:
    """Return a side as it is now: that of a revision is unchanged, the others have the commit of the present tree."""
    if spec.revision or not spec.commit:
        return spec
    tree = present()
    return replace(spec, commit=tree.commit, dirty=tree.dirty)


def _other_tree(was: SideSpec, now: SideSpec) -> str:
    """Return a note on a side whose files may differ from those measured before; empty if they do not."""
    if (was.commit, was.dirty) == (now.commit, now.dirty) and not was.dirty:
        return ""
    state = " with uncommitted changes" if was.dirty else ""
    return f"{was.label} was commit {was.commit}{state}; it is now the present tree"


def _target(run: Run) -> str:
    plan = run.plan
    if plan.workload in names():
        return plan.workload
    if not plan.target:
        messages = [warning.message for warning in run.warnings if warning.code == "cannot_repeat"]
        why = messages[0].partition(": ")[2] if messages else "its session does not say where the function is"
        raise UsageError(f"{plan.workload} cannot be run again: {why}", "Run it from its file: jaxprof run FILE:NAME.")
    place = plan.target.rpartition(":")[0]
    refuse_fetched(place)
    if place.endswith(".py") and not Path(place).is_file():
        raise UsageError(
            f"{plan.workload} cannot be run again, because there is no file {place}",
            "It was recorded on another machine, or the file was moved: jaxprof run FILE:NAME runs it from elsewhere.",
        )
    return plan.target


def _argv(session: Session, run: Run) -> tuple[str, ...]:
    """Return `sys.argv` for the run. Raises UsageError if the session redacted a part of it, because `[redacted]` would
    be passed as an argument."""
    argv = run.plan.argv or _program_argv(session)
    if any(REDACTED in word for word in argv) and run.plan.target not in names():
        raise UsageError(
            f"{run.plan.workload} was started with a possible secret, which the session does not hold",
            "Start its program again with its arguments: jaxprof script FILE ARGS.",
        )
    return argv


def _program_argv(session: Session) -> tuple[str, ...]:
    """Return the arguments of the session's program; empty if it recorded none, or if they belong to a notebook."""
    for run in session.runs.values():
        started = run.program.started if run.program is not None else None
        if started is not None and started.how != "cell":
            return tuple(started.argv)
    return ()
