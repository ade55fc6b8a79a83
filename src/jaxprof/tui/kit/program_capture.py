"""A program without a capture: why HLO and Profile have nothing to show, and the key that brings it.

While this app runs the program, the key switches the profiler on for a moment; once it has ended, the key runs it again
with a capture, through the dialog that shows the command first.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from jaxprof.text import safe
from jaxprof.tui.keys import key_of
from jaxprof.tui.kit.views import last_window

if TYPE_CHECKING:
    from jaxprof.session import Run, Session
    from jaxprof.tui.profiler import Profiler

CAPTURE_SECONDS = 2.0
"""Length of a capture that a key starts."""
RERUN_CAPTURE = "5 steps"
"""The window that a rerun proposes."""


def uncaptured_program(session: Session) -> Run | None:
    """The program of `session`, if no capture of it was read; None for other sessions."""
    program = next((run for run in session.runs.values() if run.is_program), None)
    return program if program is not None and last_window(session) == ("", "") else None


def is_ours(app: Profiler) -> bool:
    """Whether this app started the program in view."""
    return app.session is app.live.session and app.live.program is not None


def how_to_capture(app: Profiler, run: Run) -> str:
    """Why there is nothing, and what brings it, in two sentences."""
    name, key = safe(run.plan.workload), key_of("program.capture")
    windows = run.program.windows if run.program is not None else []
    if windows and windows[-1].state == "began":
        return f"{name} is being captured now. Its kernels, timeline and memory appear here once they have been read."
    if run.over:
        failed = windows[-1].note if windows and windows[-1].state == "failed" else ""
        why = f"The capture of {name} failed ({safe(failed)})" if failed else f"{name} ran without a capture"
        return f"{why}. {key} runs it again with a capture of {RERUN_CAPTURE}, and shows the command first."
    if is_ours(app):
        return f"{name} has no capture yet. {key} switches the profiler on for {CAPTURE_SECONDS:g} s, now."
    return (
        f"{name} is recorded by another process, without a capture yet. Its own --capture-steps 5, or capture_steps=5 "
        "of jaxprof.record, captures it."
    )


def can_capture(app: Profiler, run: Run | None) -> bool:
    """Whether `capture` can do something for this program now."""
    return run is not None and (run.over or is_ours(app))


def capture(app: Profiler, run: Run) -> None:
    """Switches the profiler on in a running program; asks for a rerun with a capture of one that has ended."""
    if run.over:
        _rerun_with_capture(app, run)
        return
    windows = run.program.windows if run.program is not None else []
    if windows and windows[-1].state == "began":
        app.notify("A capture is already in progress.", markup=False)
        return
    app.live.capture(CAPTURE_SECONDS)
    app.notify(
        f"The profiler is on for {CAPTURE_SECONDS:g} s; HLO and Profile show the window once it has been read.",
        title="Capturing",
        markup=False,
    )


def _rerun_with_capture(app: Profiler, run: Run) -> None:
    from jaxprof.tui.kit.script_dialog import ScriptForm, ask_for_program, form_of_argv

    started = run.program.started if run.program is not None else None
    form = ScriptForm()
    if started is not None:
        form = form_of_argv(tuple(started.argv), started.directory, started.options)
    ask_for_program(app, replace(form, capture=form.capture or RERUN_CAPTURE), "Runs again, with a capture.")
