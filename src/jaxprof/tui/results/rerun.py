"""Runs a run of a session again, together with its baseline.

Code that only a session file names is shown first; until the user answers, nothing of it is started.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from jaxprof.errors import JaxprofError, UsageError
from jaxprof.tui.kit.dialogs import Confirm

if TYPE_CHECKING:
    from jaxprof.runner.planning import PlannedRun
    from jaxprof.session import Run, Session
    from jaxprof.tui.profiler import Profiler


_LONGEST = 800
"""Most characters of code in the dialog: the user must see all of it before answering."""


def run_again(app: Profiler, run: Run) -> None:
    """Queue a run and its baseline again, after the user has agreed to code that only a session file names. Raises
    UsageError for a run that cannot be repeated, and for code that cannot be shown."""
    if run.is_program:
        from jaxprof.tui.kit.script_dialog import rerun_program

        rerun_program(app, run)
        return
    plans = app.live.planned if app.session is app.live.session else {}
    planned = planned_again(app.session, run.id, plans)
    shown = code_to_confirm(app.session, run, app.session_path) if run.id not in plans else ""

    def start(yes: bool) -> None:
        try:
            app.start_runs(planned)
        except JaxprofError as error:
            app.tell(error)

    if shown:
        question = f"This run comes from the session file. It runs the code of:\n{shown}"
        Confirm("Run again", question, "Run").ask(app, start)
    else:
        start(yes=True)


def planned_again(session: Session, run_id: str, plans: Mapping[str, PlannedRun]) -> list[PlannedRun]:
    """Return the plan of the run `run_id` of `session`, its baseline first.

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


def code_to_confirm(session: Session, run: Run, path: Path | None) -> str:
    """Return the code that the session file would run, to be shown first; empty if there is none.

    Raises UsageError for a downloaded file, and for more than a dialog shows: nothing may hide below its end.
    """
    from jaxprof.runner.rerun import recorded_starts, refuse_fetched

    if path is not None:
        refuse_fetched(path)
    shown = "\n".join(recorded_starts(session, run))
    if len(shown) > _LONGEST:
        raise UsageError("the code in the file is too long for a dialog", "jaxprof run --from FILE shows it.")
    return shown
