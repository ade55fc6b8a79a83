"""Asking for a run once more: as it was asked for, beside a fresh measurement of its baseline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from jaxprof.errors import JaxprofError
from jaxprof.results.programs.derive import is_program
from jaxprof.safe_text import shorten

if TYPE_CHECKING:
    from jaxprof.session import Run, Session
    from jaxprof.tui.app import JaxprofApp
    from jaxprof.worker import Planned

_MOST_LINES = 8
_WIDEST = 150


def run_again(app: JaxprofApp, run: Run) -> None:
    """Puts a run, and its baseline, into the queue once more. What only a file says is shown before it is run."""
    if is_program(run):
        from jaxprof.tui import program_again

        program_again.run_again(app, run)
        return
    try:
        known = app.live.planned if app.session is app.live.session else {}
        planned = planned_again(app.session, run.id, known)
    except JaxprofError as error:
        app.tell(error)
        return
    shown = "" if run.id in known else to_be_looked_at(planned)
    if not shown:
        app.start_runs(planned)
        return
    from jaxprof.tui.dialogs.confirm import Confirm

    question = f"As the session has it. It runs the code of that file:\n{shown}"
    app.push_screen(Confirm("Run again", question, "Run"), lambda yes: app.start_runs(planned) if yes else None)


def planned_again(session: Session, run_id: str, known: Mapping[str, Planned]) -> list[Planned]:
    """The plan of the run `run_id` of `session`, its baseline first.

    `known` holds what this app has asked for itself, by run id; of a session that was opened, what its file says is
    taken. Raises UsageError where that is not enough.
    """
    planned = known.get(run_id)
    if planned is None:
        from jaxprof.worker.again import plan_again

        return plan_again(session, run_id)
    if planned.baseline is None:
        return [replace(planned)]
    baseline = replace(planned.baseline)
    return [baseline, replace(planned, baseline=baseline)]


def to_be_looked_at(planned: list[Planned]) -> str:
    """What a user should see before it is run, because a file says it and it runs somebody's code; else empty."""
    from jaxprof.worker.again import is_of_a_user

    last = planned[-1]
    if not is_of_a_user(last):
        return ""
    lines = [f"  {shorten(spec, _WIDEST)}" for spec in last.arguments[:_MOST_LINES]]
    more = len(last.arguments) - len(lines)
    return "\n".join([last.target, *lines, *([f"  and {more} more arguments"] if more else [])])
