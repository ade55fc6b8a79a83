"""Queues a run again, from this app's own plan or from what its session file says, which is shown before it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from jaxprof.analysis.programs.derive import is_program
from jaxprof.errors import JaxprofError
from jaxprof.text import shorten
from jaxprof.tui.kit.dialogs import Confirm

if TYPE_CHECKING:
    from jaxprof.runner import PlannedRun
    from jaxprof.session import Run, Session
    from jaxprof.tui.profiler import Profiler


_MOST_LINES = 8
_WIDEST = 150


def run_again(app: Profiler, run: Run) -> None:
    """Queues a run and its baseline again. Shows code that only a session file names before it runs."""
    if is_program(run):
        from jaxprof.tui.kit.script_dialog import rerun_program

        rerun_program(app, run)
        return
    try:
        plans = app.live.planned if app.session is app.live.session else {}
        planned = planned_again(app.session, run.id, plans)
    except JaxprofError as error:
        app.tell(error)
        return
    shown = "" if run.id in plans else code_to_confirm(planned)
    if not shown:
        app.start_runs(planned)
        return

    question = f"This comes from the session file. It runs the code of:\n{shown}"
    app.push_screen(Confirm("Run again", question, "Run"), lambda yes: app.start_runs(planned) if yes else None)


def planned_again(session: Session, run_id: str, plans: Mapping[str, PlannedRun]) -> list[PlannedRun]:
    """The plan of the run `run_id` of `session`, its baseline first.

    `plans` holds the plans of this app by run id; for an opened session the plan comes from its file. Raises UsageError
    if the file does not say enough.
    """
    planned = plans.get(run_id)
    if planned is None:
        from jaxprof.runner.rerun import plan_again

        return plan_again(session, run_id)
    if planned.spec.side:
        first = planned.baseline or planned
        again = replace(first)
        others = [plan for plan in plans.values() if plan.baseline is first]
        return [again, *(replace(plan, baseline=again) for plan in others)]
    if planned.baseline is None:
        return [replace(planned)]
    baseline = replace(planned.baseline)
    return [baseline, replace(planned, baseline=baseline)]


def code_to_confirm(planned: list[PlannedRun]) -> str:
    """What to show before running somebody's code that a session file names; else empty."""
    from jaxprof.runner.rerun import is_of_a_user, what_runs

    if any(run.spec.side for run in planned):
        return "\n".join(what_runs(planned))
    if not is_of_a_user(planned[-1]):
        return ""
    last = planned[-1].spec
    lines = [f"  {shorten(argument, _WIDEST)}" for argument in last.arguments[:_MOST_LINES]]
    more = len(last.arguments) - len(lines)
    return "\n".join([last.target, *lines, *([f"  and {more} more arguments"] if more else [])])
