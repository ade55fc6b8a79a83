"""What is said about the timeline beside it: which colour is which kind, and what is under the cursor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from textual.content import Content

from jaxprof.safe_text import safe, shorten
from jaxprof.tui.timeline.browse import extent
from jaxprof.tui.timeline.kinds import KINDS, WORDS
from jaxprof.tui.timeline.window import Window
from jaxprof.units import percent, seconds

if TYPE_CHECKING:
    from jaxprof.tui.timeline.lanes import Lane, Lanes, Row

NS = 1e-9
"""A nanosecond, in seconds."""

STYLES: Mapping[str, str] = {
    "matmul": "$phase-compile", "fusion": "$phase-run", "reduction": "$phase-lower", "move": "$phase-transfer",
    "collective": "$phase-first", "kernel": "$better", "program": "$baseline", "dispatch": "$phase-trace",
    "wait": "$text-disabled", "host": "$quiet",
}  # fmt: skip
"""As in the stylesheet's section of the timeline."""


def legend(lanes: Lanes, width: int) -> Content:
    """Which colour is which kind, of those that occur."""
    found = Content("")
    for kind in lanes.kinds:
        item = Content.assemble(("■", STYLES[KINDS[kind]]), f" {WORDS.get(KINDS[kind], KINDS[kind])}  ")
        if found.cell_length + item.cell_length > width:
            break
        found = found.append(item)
    return found


def cursor_lines(
    lanes: Lanes, window: Window, time: int, under: tuple[Lane, Row, int | None], width: int
) -> list[Content]:
    """What is at a time in a row of `window`: an interval and its op, or the gap between two."""
    from jaxprof.tui.timeline.frame import busy_share

    lane, row, at = under
    whole = Window(lanes.begin, lanes.end)
    begin, end = extent(row, time, whole)
    times = f"{seconds((end - begin) * NS)}  at {seconds((begin - lanes.begin) * NS, 5)}"
    where = safe(f"{lane.device} {row.name}" if lane.on_device else row.name)
    share = f"{percent(busy_share(row, window))} of the view busy"
    if at is None:
        before, after = row.near(time, -1), row.near(time, 1)
        names = [lane.labels[int(row.label[n])][0] if n is not None else "" for n in (before, after)]
        between = " · ".join(
            f"{word} {shorten(name, max(8, width // 3))}"
            for word, name in zip(("after", "before"), names, strict=True)
            if name
        )
        head = Content.assemble(("gap" if lane.on_device else "nothing", "bold $warning"), f"  {times}")
        around = Content.styled(f"{between} · {where} · {share}", "$text-muted")
        return [head.truncate(width, ellipsis=True), around.truncate(width, ellipsis=True)]
    label = int(row.label[at])
    name, op = lane.labels[label]
    kind = KINDS[lane.kind_of_label[label]]
    room = max(12, width - len(times) - len(kind) - 8)
    said = f"{WORDS.get(kind, kind)}  {times}"
    head = Content.assemble((shorten(name, room), "bold"), "  ", ("■ ", STYLES[kind]), said)
    parts = [where, share]
    if op is not None:
        found = lanes.ops[op]
        parts.insert(0, safe(f"op {found.name}" if found.name != name else "op") + safe(f" of {found.module or '-'}"))
    return [head.truncate(width, ellipsis=True),
            Content.styled(" · ".join(parts), "$text-muted").truncate(width, ellipsis=True)]  # fmt: skip
