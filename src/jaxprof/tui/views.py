"""Which views of a run have something to show, and which run has it. Asked by every screen that leads to Profile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jaxprof.results.timeline import TEXT_NAME

if TYPE_CHECKING:
    from jaxprof.session import Run, Session


def source_of(session: Session, run: Run) -> Run:
    """The run that has the captures: `run` itself, or for a program of an opened profile the whole profile."""
    if TEXT_NAME in run.texts or run.plan.how != "imported":
        return run
    return next((one for one in session.runs.values() if TEXT_NAME in one.texts), run)


def views_of(session: Session, run: Run) -> frozenset[str]:
    """Which views of a run have something to show."""
    found = set()
    if TEXT_NAME in source_of(session, run).texts:
        found.add("timeline")
    if run.compile_passes is not None:
        found.add("compile")
    if run.buffers is not None or run.memory is not None or "hlo" in run.texts:
        found.add("memory")
    return frozenset(found)


def last_window(session: Session) -> tuple[str, str]:
    """Of the last capture window of a program: the run that has its timeline, and the one with HLO whose kernels took
    most; empty where there is none."""
    imported = [run for run in session.runs.values() if run.plan.how == "imported"]
    whole = next((run.id for run in reversed(imported) if TEXT_NAME in run.texts), "")
    of_window = imported[next((at for at, run in enumerate(imported) if run.id == whole), 0) :]
    hlo = next((run.id for run in of_window if "hlo" in run.texts), "")
    return whole, hlo


def first_with_capture(session: Session, wanted: str) -> str:
    """The run that is asked for, if it has anything to show, else the first that has."""
    runs = session.runs
    if wanted in runs and views_of(session, runs[wanted]):
        return wanted
    captured = [run.id for run in runs.values() if "timeline" in views_of(session, run)]
    compiled = [run.id for run in runs.values() if run.plan.how == "jit" and run.id in captured]
    return next(iter([*compiled, *captured, wanted, *runs]), "")
