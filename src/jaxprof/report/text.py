"""Render a session as plain text, 80 columns wide, for `print(session)`, `jaxprof open` and `jaxprof run`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from jaxprof.facts.sessions import environment, state_words
from jaxprof.report.renderers import Headline, Piece, Prose, report_lines
from jaxprof.session import Session
from jaxprof.text import safe

KERNELS_SHOWN = 10
"""Most kernels of a capture window that are listed."""


def to_text(session: Session) -> str:
    """Return the whole report, without a line break at its end."""
    return "\n".join(report_lines(_report(session)))


def _report(session: Session) -> Iterator[Piece]:
    yield from _heading(session)
    for run in session.programs:
        from jaxprof.report.program import program_report  # only for a session with a program

        yield from ("", *program_report(session, run))
    if not all(run.is_program for run in session.runs.values()):
        from jaxprof.report.runs import run_reports  # only for a session with measured runs

        for report in run_reports(session):
            yield from ("", *report)
    yield from _capture(session)
    if not session.runs:
        yield from ("", "No run was recorded.")


def _heading(session: Session) -> Iterator[Piece]:
    header = session.header
    state = state_words(session)
    host = header.host
    if session.process_count != 1:
        host += f", process {session.process_index} of {session.process_count or 'an unknown number'}"
    yield safe(f"session {header.session}  ·  {header.created}  ·  {host}  ·  {state}")
    reported = environment(session)
    if reported is not None:
        versions = ((name, getattr(reported, name)) for name in ("jax", "jaxlib", "numpy", "python"))
        yield safe("  ·  ".join(f"{name} {version}" for name, version in versions if version))
        devices = [f"{device.get('id')} {device.get('kind') or ''}".strip() for device in reported.devices]
        if devices:
            yield safe("  ·  ".join(devices))
    for notice in session.notices:
        yield Prose(notice, "note: ")


def _capture(session: Session) -> Iterator[Piece]:
    """Yield the kernels that took most time in the capture windows of a program, over all compiled programs."""
    if not any("imported" in run.measured for run in session.runs.values()):
        return
    from jaxprof.analysis.measured import whole_profile
    from jaxprof.report.views import measured_table

    if kernels := whole_profile(session):
        yield from ("", Headline("capture window: what the device ran"))
        rest = "and {} more: jaxprof open NAME --kernels lists them all"
        yield replace(measured_table(kernels, programs=True, spread=False, rates=False), most=KERNELS_SHOWN, rest=rest)
