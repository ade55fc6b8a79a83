"""Which views of a run have something to show, which run has the data, and the keys of the views."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jaxprof.analysis.profile import IMPORTED, is_whole, programs_of, with_hlo
from jaxprof.analysis.timeline import TEXT_NAME

if TYPE_CHECKING:
    from jaxprof.session import Run, Session


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
