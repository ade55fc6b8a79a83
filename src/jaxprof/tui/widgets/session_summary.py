"""A kept session in a few lines: when, where, with which command, and the median of each run. Folds nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from textual.content import Content

from jaxprof import units
from jaxprof.safe_text import safe
from jaxprof.tui.ago import moment
from jaxprof.tui.widgets.drawing import cell

if TYPE_CHECKING:
    from jaxprof.events import RunClosed, RunPlanned
    from jaxprof.store import Entry

_MARKS = {
    "ok": ("✓", "$success"),
    "failed": ("✗", "$error"),
    "crashed": ("✗", "$error"),
    "cancelled": ("–", "$warning"),
}


def summary(entry: Entry | None, open_path: Path | None) -> Content:
    """The summary of `entry`; what to do when there is none."""
    if entry is None:
        return Content.styled("Nothing is kept yet: 1 goes Home, Enter there runs a workload.", "$text-muted")
    lines = [Content.styled(safe(entry.name), "bold")]
    if entry.problem:
        return Content("\n").join(
            [*lines, Content.styled(safe(entry.problem), "$warning"), _line("file", str(entry.path))]
        )
    header = entry.header
    if header is not None:
        host = header.host
        if header.process_count > 1:
            host += f", process {header.process_index} of {header.process_count}"
        lines += [
            _line("recorded", f"{moment(header.wall_seconds)} on {host}, jaxprof {header.jaxprof}"),
            _line("command", " ".join(header.command)),
        ]
    lines.append(_line("file", f"{entry.path} · {units.bytes_(entry.size_bytes)}"))
    lines.append(_line("state", _state(entry, open_path)))
    lines.append(Content(""))
    closed = {event.run: event for event in entry.closed}
    for plan in entry.planned:
        lines += _run(plan, closed.get(plan.run), live=entry.live)
    if not entry.planned:
        lines.append(Content.styled("No run was planned in it.", "$text-muted"))
    return Content("\n").join(lines)


def _line(name: str, text: str) -> Content:
    return Content.assemble((f"{name:<10}", "$primary"), (safe(text), "$text-muted"))


def _state(entry: Entry, open_path: Path | None) -> str:
    words = []
    if entry.path == open_path:
        words.append("open now")
    if entry.live:
        words.append("being written")
    elif entry.complete:
        words.append("whole")
    else:
        words.append("cut off: its writer did not end in good order; what was written can be read")
    return ", ".join(words)


def _run(plan: RunPlanned, closed: RunClosed | None, *, live: bool) -> list[Content]:
    status = closed.status if closed is not None else ""
    symbol, style = _MARKS.get(status, ("…", "$primary") if live else ("?", "$warning"))
    sizes = ", ".join(f"{name}={value}" for name, value in plan.parameters.items())
    line = Content.assemble(
        (f" {symbol} ", style),
        cell(plan.workload, 20),
        " ",
        cell(plan.variant, 16),
        " ",
        cell(plan.device, 8, "$text-muted"),
        cell(units.seconds(closed.median_seconds if closed is not None else None), 9, "bold", right=True),
        (f"  {safe(sizes)}", "$text-muted"),
    )
    if closed is None or not closed.error:
        return [line]
    return [line, Content.styled(f"   {safe(closed.error)}", "$error" if status != "cancelled" else "$warning")]
