"""Render a session as plain text, 80 columns wide, for `print(session)`, `jaxprof open` and `jaxprof run`."""

from __future__ import annotations

from collections.abc import Iterator

from jaxprof.facts import at, column, pick
from jaxprof.facts.sessions import environment, state_words
from jaxprof.report.renderers import Table, text_lines, wrap
from jaxprof.session import Session
from jaxprof.text import safe

KERNELS_SHOWN = 10
"""Most kernels of a capture window that are listed."""


def to_text(session: Session) -> str:
    """Return the whole report, without a line break at its end."""
    lines = list(_heading(session))
    for run in session.programs:
        from jaxprof.report.recording.text import program_lines  # only for a session with a program

        lines += ["", *program_lines(session, run)]
    if not all(run.is_program for run in session.runs.values()):
        from jaxprof.report.runs import run_lines  # only for a session with measured runs

        lines += run_lines(session)
    lines += _capture_lines(session)
    if not session.runs:
        lines += ["", "No run was recorded."]
    return "\n".join(lines)


def _heading(session: Session) -> Iterator[str]:
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
        yield from wrap(notice, first="note: ")


def _capture_lines(session: Session) -> Iterator[str]:
    """Yield the kernels that took most time in the capture windows of a program, over all compiled programs."""
    if not any("imported" in run.measured for run in session.runs.values()):
        return
    from jaxprof.analysis.measured import whole_profile
    from jaxprof.facts.kernels import MEASURED

    kernels = whole_profile(session)
    if not kernels:
        return
    title = "capture window: what the device ran"
    yield from ("", title, "─" * len(title))
    columns = (
        *pick(MEASURED, "share", "self_seconds", "executions", "median_seconds"),
        column("kernel", lambda kernel: kernel.name + (" (?)" if kernel.uncertain else ""), widest=30),
        column("program", at("module"), widest=20),
    )
    yield from text_lines(
        Table(columns, kernels).first(KERNELS_SHOWN, "and {} more: jaxprof open NAME --kernels lists them all")
    )
