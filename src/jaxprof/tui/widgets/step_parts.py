"""Where the time of a step went: parts that add up to it, as a bar and in numbers. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import TYPE_CHECKING, Any

from textual.content import Content

from jaxprof.safe_text import shorten
from jaxprof.tui.widgets.drawing import cell
from jaxprof.units import percent, seconds

if TYPE_CHECKING:
    from jaxprof.events import StepsMeasured

PARTS = {
    "kernels": ("kernels", "█", "$phase-run"),
    "transfers": ("transfers", "▓", "$phase-transfer"),
    "collectives_exposed": ("collectives", "▒", "$phase-first"),
    "launch_gaps": ("launch gaps", "░", "$phase-compile"),
    "idle": ("idle", "·", "$quiet"),
}
"""Name in the events → what it is called, its character, its colour."""
FOUND_BY = {
    "annotation": "found by their annotations",
    "modules": "found by the executions of the program",
    "whole": "no step was found: the whole recording",
}


@dataclass(frozen=True, slots=True)
class Step:
    """A step of the log, of which anything may be missing."""

    name: str
    device: str
    start: float
    seconds: float
    complete: bool
    parts: Mapping[str, float]
    overlapped: float


def steps_of(event: StepsMeasured | None) -> list[Step]:
    """The steps that can be drawn."""
    found = []
    for row in event.steps if event is not None else ():
        length, start = row.get("seconds"), row.get("start_seconds")
        parts = row.get("parts")
        if isinstance(length, int | float) and length > 0 and isinstance(parts, dict):
            known = {name: float(parts[name]) for name in PARTS if isinstance(parts.get(name), int | float)}
            found.append(
                Step(
                    str(row.get("name", "")), str(row.get("device", "")), _number(start), float(length),
                    row.get("complete") is not False, known, _number(row.get("collectives_overlapped_seconds")),
                )
            )  # fmt: skip
    return found


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def step_at(steps: Sequence[Step], time: float, device: str) -> Step | None:
    """The step that `time` (seconds) lies in, on that device if it has one there."""
    around = [step for step in steps if step.start <= time < step.start + step.seconds]
    return next((step for step in around if step.device == device), around[0] if around else None)


def step_lines(event: StepsMeasured | None, time: float, device: str, width: int) -> list[Content]:
    """The step under the cursor, the mean of all whole ones, and what the parts are."""
    steps = steps_of(event)
    if event is None or not steps:
        return [
            Content.styled("Where a step's time goes is not known: no step and no kernel was found.", "$text-muted")
        ]
    here = step_at(steps, time, device)
    whole = [step for step in steps if step.complete] or steps
    average = Step("mean", "", 0.0, mean(step.seconds for step in whole), True,
                   {name: mean(step.parts.get(name, 0.0) for step in whole) for name in PARTS},
                   mean(step.overlapped for step in whole))  # fmt: skip
    shown = here if here is not None else average
    rows = [(f"{len(whole)} step{'s' if len(whole) != 1 else ''}, mean", average)]
    if here is not None:
        note = "" if here.complete else " (cut off)"
        rows.insert(0, (f"{here.name}{note}", here))
    else:
        rows.insert(0, ("between the steps", Step("", "", 0, 0, True, {}, 0)))
    lines = [_bar_line(name, step, width) for name, step in rows]
    return [*lines, _legend(shown, width), _found_by(event, shown, width)]


def _bar_line(name: str, step: Step, width: int) -> Content:
    label = 18 if width < 100 else 30
    head = Content.assemble(
        cell(name, label, "$foreground"),
        " ",
        cell(seconds(step.seconds) if step.seconds else "", 8, "bold", right=True),
    )
    return Content.assemble(head, "  ", stacked_parts(step, max(4, width - label - 11)))


def stacked_parts(step: Step, width: int) -> Content:
    """The parts end to end; each that took any time has a column at least."""
    if step.seconds <= 0:
        return Content(" " * width)
    borders, reached = [0], 0.0
    known = [(name, step.parts.get(name, 0.0)) for name in PARTS]
    for _, part in known:
        reached += part
        borders.append(round(min(1.0, reached / step.seconds) * width))
    pieces = []
    for (name, part), begin, end in zip(known, borders, borders[1:], strict=False):
        columns = max(end - begin, 1 if part > 0 and begin < width else 0)
        pieces.append((PARTS[name][1] * columns, PARTS[name][2]))
    return Content.assemble(*pieces).truncate(width)


def _legend(step: Step, width: int) -> Content:
    """Every part that took any time: with its share, or closer together without, so that none is cut off."""
    found = [(name, part) for name, part in step.parts.items() if part or name == "kernels"]
    line = Content("")
    for gap, shares in (("   ", True), ("  ", True), ("  ", False)):
        items = []
        for name, part in found:
            words, mark, style = PARTS[name]
            share = f" {percent(part / step.seconds)}" if shares and step.seconds else ""
            items.append(
                Content.assemble((f"{mark} ", style), f"{words} ", (seconds(part), "bold"), (share, "$text-muted"))
            )
        line = Content(gap).join(items)
        if line.cell_length <= width:
            break
    return line.truncate(width, ellipsis=True)


def _found_by(event: StepsMeasured, step: Step, width: int) -> Content:
    words = FOUND_BY.get(event.found_by, shorten(event.found_by or "-", 40))
    parts = [f"steps {words}" if event.found_by != "whole" else words]
    none = [words for name, (words, _, _) in PARTS.items() if step.parts.get(name) == 0]
    if none:
        parts.append(f"no {', '.join(none)}")
    if step.overlapped > 0:
        parts.append(f"collectives overlapped {seconds(step.overlapped)}")
    return Content.styled(" · ".join(parts), "$text-muted").truncate(width, ellipsis=True)
