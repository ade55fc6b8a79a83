"""Which views of a run have something to show, which run has the data, and what brings a capture where none is."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from jaxprof.analysis.profile import IMPORTED, is_whole, programs_of, with_hlo
from jaxprof.analysis.timeline import TEXT_NAME
from jaxprof.text import safe
from jaxprof.tui.keys import key_of

if TYPE_CHECKING:
    from jaxprof.session import Run, Session
    from jaxprof.tui.profiler import Profiler


def source_of(session: Session, run: Run) -> Run:
    """The run with the captures: `run` itself, or the whole profile if `run` is a program of an opened one."""
    whole = None if TEXT_NAME in run.texts else whole_of(session, run)
    return whole if whole is not None and TEXT_NAME in whole.texts else run


def views_of(session: Session, run: Run) -> frozenset[str]:
    """The views of a run that have something to show."""
    views = set()
    if TEXT_NAME in source_of(session, run).texts:
        views.add("timeline")
    if has_kernels(session, run):
        views.add("flame")
    if run.compile_passes is not None:
        views.add("compile")
    if _has_memory(with_hlo(session, run)):
        views.add("memory")
    if whole_of(session, run) is not None:
        views.add("overview")
    return frozenset(views)


def has_kernels(session: Session, run: Run) -> bool:
    """Whether kernels of the run, or of the programs of a whole profile, were captured or are in its HLO."""
    return any(part.measured or "hlo" in part.texts for part in (run, *programs_of(session, run)))


def _has_memory(run: Run) -> bool:
    return run.buffers is not None or run.memory is not None or "hlo" in run.texts


def whole_of(session: Session, run: Run) -> Run | None:
    """The whole profile that a run is, or belongs to; None for a run that was measured here."""
    if run.plan.how != IMPORTED:
        return None
    return next(
        (whole for whole in session.runs.values() if is_whole(whole) and run in (whole, *programs_of(session, whole))),
        None,
    )


def last_window(session: Session) -> tuple[str, str]:
    """The runs of a program's last capture window: the one with the timeline, and the one with HLO whose kernels took
    longest; empty if there is none."""
    imported = [run for run in session.runs.values() if run.plan.how == "imported"]
    whole = next((run.id for run in reversed(imported) if TEXT_NAME in run.texts), "")
    of_window = imported[next((at for at, run in enumerate(imported) if run.id == whole), 0) :]
    hlo = next((run.id for run in of_window if "hlo" in run.texts), "")
    return whole, hlo


def first_with_capture(session: Session, wanted: str) -> str:
    """The wanted run if it has anything to show, else the first run that has."""
    runs = session.runs
    if wanted in runs and views_of(session, runs[wanted]):
        return wanted
    captured = [run.id for run in runs.values() if "timeline" in views_of(session, run)]
    compiled = [run.id for run in runs.values() if run.plan.how == "jit" and run.id in captured]
    return next(iter([*compiled, *captured, *([wanted] if wanted in runs else []), *runs]), "")


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
