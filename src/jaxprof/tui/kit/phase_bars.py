"""How the time of a call is spent: one bar for each phase of each variant, all on one scale.

The scale is linear from 0, so that a bar twice as long is twice the time. Phases differ by a factor of ten thousand (a
compilation, a kernel): short ones have only their figure. Pure functions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from textual.content import Content

from jaxprof.text import columns, shorten
from jaxprof.tui.kit.drawing import bar, cell
from jaxprof.units import seconds

STYLES = {
    "start-up": "$quiet",
    "trace": "$phase-trace",
    "lower": "$phase-lower",
    "compile": "$phase-compile",
    "transfer_in": "$phase-transfer",
    "first_run": "$phase-first",
    "run": "$phase-run",
    "transfer_out": "$phase-transfer",
}
SHOWN = ("trace", "lower", "compile", "transfer_in", "first_run", "run", "transfer_out")
_SHORT = {"transfer_in": "copy in", "first_run": "1st run", "transfer_out": "copy out"}
_LABEL_LIMIT = 18
_NARROW, _NARROW_LABEL = 90, 12


@dataclass(frozen=True, slots=True)
class PhaseRow:
    """The seconds of the phases of a variant: None if unknown; absent if the variant has no such phase."""

    label: str
    phases: Mapping[str, float | None]
    current: bool = False


def title(phase: str, width: int = 99) -> str:
    """Return the name of a phase: `transfer in`, or `copy in` if there is little room."""
    text = phase.replace("_", " ")
    return text if columns(text) <= width else shorten(_SHORT.get(phase, text), max(1, width))


def phase_bars(rows: Sequence[PhaseRow], width: int) -> list[Content]:
    """Return the names of the phases, two lines per variant (times, bars), and the scale."""
    limit = _NARROW_LABEL if width < _NARROW else _LABEL_LIMIT
    label_width = min(limit, max((columns(row.label) for row in rows), default=0)) + 2
    present = [phase for phase in SHOWN if any(phase in row.phases for row in rows)]
    if not present:
        return [Content.styled("no phase has been measured yet", "$quiet")]
    step = max(7, (width - label_width) // len(present))
    values = (row.phases.get(phase) for row in rows for phase in present)
    longest = max((value for value in values if value is not None and value > 0), default=1.0)
    head = Content.assemble(
        cell("", label_width), *(cell(title(phase, step - 1), step, STYLES[phase]) for phase in present)
    )
    lines = [head]
    for row in rows:
        label = cell(row.label, label_width - 2, "bold $foreground" if row.current else "$foreground") + "  "
        numbers, bars = [label], [Content(" " * label_width)]
        for phase in present:
            value = row.phases.get(phase)
            text = "" if phase not in row.phases else seconds(value)
            numbers.append(cell(text or "·", step, "$quiet" if value is None else "$foreground"))
            bars.append(bar(value and value / longest, step - 2, STYLES[phase], track="") + "  ")
        lines.append(Content.assemble(*numbers))
        if any(row.phases.get(phase) for phase in present):
            lines.append(Content.assemble(*bars))
    note = f"one scale for all: 0 to {seconds(longest)}"
    lines.append(Content.styled(" " * label_width + shorten(note, max(1, width - label_width)), "$quiet"))
    return lines
