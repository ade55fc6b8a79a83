"""Queues a run again, from this app's own plan or from what its session file says, which is shown before it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from jaxprof.errors import JaxprofError
from jaxprof.text import shorten
from jaxprof.tui.kit.dialogs import Confirm

if TYPE_CHECKING:
    from jaxprof.runner import PlannedRun
    from jaxprof.session import Run, Session
    from jaxprof.tui.profiler import Profiler


_WIDEST = 1000


def run_again(app: Profiler, run: Run) -> None:
    """Queues a run and its baseline again. Code that only a session file names is shown, and nothing of it is planned
    or started before the answer."""
    if run.is_program:
        from jaxprof.tui.kit.script_dialog import rerun_program

        rerun_program(app, run)
        return
    plans = app.live.planned if app.session is app.live.session else {}
    if run.id in plans:
        app.start_runs(planned_again(app.session, run.id, plans))
        return
    try:
        shown = code_to_confirm(app.session, run, app.session_path)
    except JaxprofError as error:
        app.tell(error)
        return

    def answered(yes: bool | None) -> None:
        if not yes:
            return
        try:
            app.start_runs(planned_again(app.session, run.id, plans))
        except JaxprofError as error:
            app.tell(error)

    if not shown:
        answered(True)
        return
    question = f"This comes from the session file. It runs the code of:\n{shown}"
    app.push_screen(Confirm("Run again", question, "Run"), answered)


def planned_again(session: Session, run_id: str, plans: Mapping[str, PlannedRun]) -> list[PlannedRun]:
    """The plan of the run `run_id` of `session`, its baseline first.

    `plans` holds the plans of this app by run id; for an opened session the plan comes from its file. Raises UsageError
    if the file does not say enough.
    """
    planned = plans.get(run_id)
    if planned is None:
        from jaxprof.runner.rerun import SidesAgain, plan_again

        return plan_again(session, run_id, SidesAgain(ask=lambda lines: None))  # shown before
    if planned.spec.side:
        first = planned.baseline or planned
        again = replace(first)
        others = [plan for plan in plans.values() if plan.baseline is first]
        return [again, *(replace(plan, baseline=again) for plan in others)]
    if planned.baseline is None:
        return [replace(planned)]
    baseline = replace(planned.baseline)
    return [baseline, replace(planned, baseline=baseline)]


def code_to_confirm(session: Session, run: Run, path: Path | None) -> str:
    """What to show before running somebody's code that a session file names; else empty. Raises UsageError for what was
    fetched."""
    from jaxprof.runner.from_file import refuse_fetched
    from jaxprof.runner.rerun import recorded_starts

    if path is not None:
        refuse_fetched(path)
    return "\n".join(shorten(line, _WIDEST) for line in recorded_starts(session, run))
