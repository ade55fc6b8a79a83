"""Facts of the views of a session: of its captures, and of its recorded programs.

A view imports what it needs when it is requested.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from jaxprof.facts import RUN, Fact, Facts, RunItems, at
from jaxprof.facts.units import OBJECT, ROWS, TEXT
from jaxprof.session import Run, Session

OF_PROGRAMS = ("compiles", "findings", "transfers", "timeline")
"""Views of recorded programs."""


def view_of(view: str) -> RunItems:
    """Return the items of a view, with their facts."""
    if view == "kernels":
        from jaxprof.facts.kernels import KERNELS, measured_rows

        return RunItems(KERNELS, measured_rows)
    if view == "memory":
        from jaxprof.analysis.kernels.memory import memory_of_run
        from jaxprof.facts.memory import BUFFERS

        return RunItems(BUFFERS, lambda session, run: at("buffers")(memory_of_run(session, run.id)))
    from jaxprof.facts import captures, programs

    views = programs.VIEWS if view in OF_PROGRAMS else captures.VIEWS
    return views[view]


class _ViewedRun(NamedTuple):
    """A run that has the view, and the rows of the view."""

    session: Session
    run: Run
    rows: list[Any]


def facts_of_view(view: str) -> Facts[Session]:
    """Return the facts of the JSON of a view: the runs that have it, or its rows of all programs."""
    items = view_of(view)
    if view in OF_PROGRAMS:

        def all_rows(session: Session) -> list[Any]:
            return [row for run in session.runs.values() for row in items.of(session, run) or ()]

        return (Fact(view, ROWS, "The rows of the view", all_rows, inside=(RUN, *items.facts)),)
    rows: Fact[_ViewedRun] = Fact(view, ROWS, "The rows of the view", "rows", inside=items.facts)
    of_run: list[Fact[_ViewedRun]] = [RUN, Fact("label", TEXT, "Its name for people", "run.label"), rows]
    if view == "memory":
        from jaxprof.analysis.kernels.memory import memory_of_run
        from jaxprof.facts.memory import MEMORY

        of_run[-1] = Fact(view, OBJECT, "Its memory",
                          lambda viewed: memory_of_run(viewed.session, viewed.run.id), inside=MEMORY)  # fmt: skip
    elif view == "steps":
        from jaxprof.analysis.timeline.profile import device_steps
        from jaxprof.facts.captures import DEVICE_STEPS

        of_run.append(Fact("device_steps", ROWS, "The steps of each device as a whole",
                           lambda viewed: device_steps(viewed.run.steps), inside=DEVICE_STEPS))  # fmt: skip
    return (Fact("runs", ROWS, "The runs that have it", lambda session: list(_viewed_runs(session, view)),
                 inside=tuple(of_run)),)  # fmt: skip


def _viewed_runs(session: Session, view: str) -> Iterator[_ViewedRun]:
    items = view_of(view)
    for run in session.runs.values():
        rows = items.of(session, run)
        listed = list(rows or ())
        if listed or (rows is not None and view in ("memory", "steps")):
            yield _ViewedRun(session, run, listed)
