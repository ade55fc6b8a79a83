"""A session as plain text, 80 columns wide: what `print(session)`, `jaxprof open` and `jaxprof run` give."""

from __future__ import annotations

from collections.abc import Iterator

from jaxprof.facts import at, column, pick
from jaxprof.facts.sessions import environment, state_of
from jaxprof.report.renderers import text_lines, wrap
from jaxprof.report.table import Table
from jaxprof.session import Session
from jaxprof.text import safe

WIDTH = 80
KERNELS_SHOWN = 10
"""For a capture window."""


def to_text(session: Session, *, live: bool = False) -> str:
    """The whole report, without a line break at its end. `live`: the file is being written now."""
    lines = list(_heading(session, live))
    for run in session.programs:
        from jaxprof.report.recording.text import program_lines  # only for a session with a program

        lines += ["", *program_lines(session, run, live=live)]
    if not all(run.is_program for run in session.runs.values()):
        from jaxprof.report.run_text import run_lines  # only for a session with measured runs

        lines += run_lines(session, live=live)
    lines += _captured(session)
    if not session.runs:
        lines += ["", "No run was recorded."]
    return "\n".join(lines)


def _heading(session: Session, live: bool) -> Iterator[str]:
    header = session.header
    state = state_of(session, live=live)
    host = header.host
    if session.process_count != 1:
        host += f", process {session.process_index} of {session.process_count or 'an unknown number'}"
    yield safe(f"session {header.session}  ·  {header.created}  ·  {host}  ·  {state}")
    reported = environment(session)
    if reported is not None:
        versions = [
            f"{name} {value}"
            for name, value in (
                ("jax", reported.jax),
                ("jaxlib", reported.jaxlib),
                ("numpy", reported.numpy),
                ("python", reported.python),
            )
            if value
        ]
        yield safe("  ·  ".join(versions))
        devices = [f"{device.get('id')} {device.get('kind') or ''}".strip() for device in reported.devices]
        if devices:
            yield safe("  ·  ".join(devices))
    for notice in session.notices:
        yield from wrap(notice, width=WIDTH, indent="  ", first="note: ")


def _captured(session: Session) -> Iterator[str]:
    """The kernels that took most in the capture windows of a program, all their programs together."""
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
    most = Table(columns, kernels).first(KERNELS_SHOWN, "and {} more: show --kernels lists them all")
    yield from text_lines(most)
