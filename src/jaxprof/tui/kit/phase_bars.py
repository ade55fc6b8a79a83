"""How the time of a call is spent: one bar for each phase of each variant, all on one scale.

The scale is linear from 0, so that a bar twice as long is twice the time. Phases differ by a factor of ten thousand (a
compilation, a kernel): short ones have only their figure. Pure functions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle

from textual.content import Content

from jaxprof.text import columns, shorten
from jaxprof.tui.kit.drawing import EIGHTHS, cell, stacked
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
UNTIL_FIRST = SHOWN[: SHOWN.index("first_run") + 1]
"""Phases up to the first result."""
_SHORT = {"transfer_in": "copy in", "first_run": "1st run", "transfer_out": "copy out"}
_FILLS = "█▓▒░▚"
"""Fill characters of stacked phases, which make them differ without colours."""
_LEAST_IN_LEGEND = 0.5
"""Per cent; the legend leaves out smaller shares, which have no room in the bar either."""
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
            bars.append(_bar(value, longest, step - 2, STYLES[phase]) + "  ")
        lines.append(Content.assemble(*numbers))
        if any(row.phases.get(phase) for phase in present):
            lines.append(Content.assemble(*bars))
    note = f"one scale for all: 0 to {seconds(longest)}"
    lines.append(Content.styled(" " * label_width + shorten(note, max(1, width - label_width)), "$quiet"))
    return lines


def _bar(value: float | None, longest: float, width: int, style: str) -> Content:
    if value is None or width < 1:
        return Content(" " * max(0, width))
    return plain_bar(value / longest, width, style)


def plain_bar(share: float, width: int, style: str) -> Content:
    """Return a bar without a track, in eighths of a column, at least one eighth long."""
    eighths = max(1, round(min(1.0, max(0.0, share)) * width * 8))
    full, rest = divmod(eighths, 8)
    text = "█" * full + (EIGHTHS[rest] if rest else "")
    return Content.styled(text, style) + " " * (width - len(text))


def first_result(phases: Mapping[str, float | None], width: int) -> list[Content]:
    """Return the cost of a first result: the phases up to it, end to end on a linear scale, with a legend of those that
    show."""
    upto = [phase for phase in UNTIL_FIRST if phases.get(phase)]
    values = {phase: seconds_ for phase in upto if (seconds_ := phases[phase])}
    total = sum(values.values())
    if not total:
        return []
    fills = dict(zip(values, cycle(_FILLS), strict=False))
    stack = stacked(((value, fills[phase], STYLES[phase]) for phase, value in values.items()), total, width)
    legend = [Content("")]
    for phase, value in values.items():
        if (share := value / total * 100) < _LEAST_IN_LEGEND:
            continue
        name = f"{title(phase)} {share:.0f} %  "
        if legend[-1].cell_length + columns(name) > width:
            legend.append(Content(""))
        legend[-1] += Content.assemble((f"{fills[phase]} ", STYLES[phase]), (name, "$text-muted"))
    return [stack, *(line.rstrip() for line in legend)]
