"""Draws a timeline: rows, ruler and titles; and its texts: the legend, what is under the cursor, the parts of its
step, the totals of a range.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import partial
from itertools import zip_longest
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from textual.content import Content

from jaxprof.analysis.timeline import BUSY, COUNTER, KINDS
from jaxprof.analysis.timeline.lanes import Busy, LaneGroup, LaneRow, Lanes, kernels_on, range_totals
from jaxprof.analysis.timeline.profile import FOUND_BY, mean_step
from jaxprof.base.text import columns, safe, shorten
from jaxprof.base.units import UNKNOWN, bytes_, counted, integer, percent, percent_or_less, scaled, seconds
from jaxprof.base.values import frozen
from jaxprof.events import StepParts, StepsMeasured, StepTimes
from jaxprof.facts import Fact, column
from jaxprof.report import Table
from jaxprof.trace.model import Flags, Ints
from jaxprof.tui.keys import key_of
from jaxprof.tui.kit.drawing import SPARKS
from jaxprof.tui.kit.table_columns import table_lines
from jaxprof.tui.profile.timeline.browse import AxisWindow, Browse, extent

NAMED_COLUMNS = 4
"""Least columns of an interval that carries its name."""
_NOTHING = -1
STYLES: Mapping[str, str] = {
    "matmul, conv": "$phase-compile", "fusion": "$phase-run", "reduction": "$phase-lower", "copies": "$phase-transfer",
    "collective": "$phase-first", "kernel": "$state-calls", "programs": "$state-import", "dispatch": "$phase-trace",
    "waiting": "$state-waiting", "host": "$state-host", "counters": "$counter", "busy": "$better",
}  # fmt: skip
_HIT = "$accent"


@frozen
class Columns:
    kind: Ints
    """Index of the kind in each column, -1 where nothing ran."""
    height: NDArray[np.float64]
    """Share of the column that was busy, 0..1."""
    gap: Flags
    """Whether nothing ran in a column between the row's first and last interval."""
    hit: Flags
    """Whether a column holds a match of the search."""


def edges(window: AxisWindow, width: int) -> Ints:
    return window.start + (np.arange(width + 1, dtype=np.int64) * window.span) // width


def columns_of(row: LaneRow, window: AxisWindow, width: int, hits: Busy | None = None) -> Columns:
    borders = edges(window, width)
    if row.values is not None:
        # a counter's highest value in each column, as a share of its highest value of all
        first = np.maximum(np.searchsorted(row.starts, borders[:-1], "right") - 1, 0)
        last = np.searchsorted(row.starts, borders[1:], "left")
        # The maximum of each piece. Every other result is between two pieces; an empty piece yields its first value.
        pieces = np.stack([first, last], axis=1).ravel()
        high = np.maximum.reduceat(np.append(row.values, -np.inf), pieces)[::2]
        there = borders[1:] > row.starts[0]
        top = max(float(row.values.max()), 1e-300)
        height = np.where(there, np.clip(high / top, 0.0, 1.0), 0.0)
        nothing = np.zeros(len(height), np.bool_)
        return Columns(np.where(there, next(iter(row.busy)), _NOTHING), height, nothing, nothing)
    kinds = list(row.busy)
    busy = np.stack([np.diff(row.busy[kind].until(borders)) for kind in kinds]) if kinds else np.zeros((1, width))
    total = busy.sum(axis=0)
    length = np.maximum(np.diff(borders), 1) * row.capacity
    inside = (borders[1:] > row.starts[0]) & (borders[:-1] < row.ends[-1]) if len(row.starts) else total > 0
    return Columns(
        kind=np.where(total > 0, np.array(kinds or [0])[busy.argmax(axis=0)], _NOTHING),
        height=np.minimum(total / length, 1.0),
        gap=(total == 0) & inside,
        hit=np.diff(hits.until(borders)) > 0 if hits is not None else np.zeros(width, np.bool_),
    )


def cells(
    lane: LaneGroup, row: LaneRow, window: AxisWindow, width: int, hits: Busy | None = None
) -> tuple[list[str], list[str]]:
    """Return characters and styles of the columns of a row. A wide enough interval carries its name on its colour."""
    drawn = columns_of(row, window, width, hits)
    matched = drawn.hit.tolist()
    glyphs: list[str] = []
    styles: list[str] = []
    for kind, height, gap, hit in zip(
        drawn.kind.tolist(), drawn.height.tolist(), drawn.gap.tolist(), matched, strict=True
    ):
        if kind >= 0:
            glyphs.append(SPARKS[min(7, int(height * 8))])
            styles.append(f"bold {_HIT}" if hit else STYLES[KINDS[kind]])
        else:
            glyphs.append("·" if gap and lane.on_device else " ")
            styles.append("$rule")
    if row.capacity > 1 or row.values is not None:
        return glyphs, styles
    inside = row.inside(window.start, window.end)
    least = window.span * NAMED_COLUMNS // width
    for offset in np.flatnonzero(row.ends[inside] - row.starts[inside] >= max(1, least)).tolist():
        index = inside.start + offset
        first = max(0, -(-(int(row.starts[index]) - window.start) * width // window.span))
        last = min(width, window.column_of(int(row.ends[index]), width))
        if last - first < NAMED_COLUMNS:
            continue
        label = int(row.label[index])
        name, colour = lane.labels[label][0], _HIT if matched[first] else STYLES[KINDS[lane.kind_of_label[label]]]
        # The name in exactly `room` columns, after a thin line if the interval begins here.
        room = last - first
        mark = "▏" if bool(row.starts[index] >= window.start) else " "
        text = shorten(re.sub(r"\s+", " ", safe(name)), max(1, room - 1))
        cells: list[str] = []
        for character in text:
            wide = columns(character)
            if wide == 1:
                cells.append(character)
            elif wide == 2:
                cells += [character, ""]
            elif cells:
                cells[-1] += character
        glyphs[first:last] = [mark, *cells, *[" "] * (room - 1 - len(cells))]
        styles[first:last] = [f"$background on {colour}"] * (last - first)
    return glyphs, styles


def busy_share(row: LaneRow, window: AxisWindow) -> float:
    """Return the share of the window in which the row was busy; for several threads, their mean."""
    busy = sum(of_kind.between(window.start, window.end) for of_kind in row.busy.values())
    return busy / max(1, window.span * row.capacity)


_UNITS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"), (1, "ns"))


def ruler_time(value: float, step: float) -> str:
    """Return a round time of a ruler whose marks are `step` nanoseconds apart, in a unit that needs no fraction."""
    scale, unit = next(((scale, unit) for scale, unit in _UNITS if step >= scale), _UNITS[-1])
    return f"{integer(round(value / scale))} {unit}"


def title(lane: LaneGroup, number: int, row: LaneRow, room: int) -> str:
    """Return the title of a line: a lane (`number` -1) by name, a thread by number, or a deeper level."""
    room -= 2
    several = lane.summary.capacity
    mark, name, note = " ", lane_name(lane), ""
    if number < 0:
        mark, note = ("▸" if lane.opens else " "), (f" ×{several}" if several > 1 else "")
    elif row.level:
        name = "  " * min(row.level, 4) + "└"
    else:
        mark = "▾" if number == 0 and lane.opens else " "
        if several > 1:
            note = f" {sum(above.level == 0 for above in lane.rows[: number + 1])}"
    text = shorten(name, max(1, room - len(note)), "middle") + note
    return f"{mark} {text}" + " " * max(0, room - columns(text))


_STREAM = re.compile(r"Stream #(\d+)(?:\((.*)\))?$", re.DOTALL)
_PREFIX = re.compile(r"^(tf_)?(XLA(?=[A-Z]))?")
"""The common prefix of threads of XLA's pools."""


def lane_name(lane: LaneGroup) -> str:
    """Return the whole name of a lane, its most distinctive part first: `gpu:0 #13 Compute` for a stream."""
    stream = _STREAM.match(lane.title)
    title = f"#{stream[1]} {stream[2] or ''}".strip() if stream else _PREFIX.sub("", lane.title) or lane.title
    if lane.device == "host":
        return title
    return f"{lane.device} {title.replace('XLA ', '')}"


# -- in words -------------------------------------------------------------------------------------------------

NS = 1e-9
"""Seconds in a nanosecond."""


def legend(lanes: Lanes, width: int) -> Content:
    line = Content("")
    for kind in lanes.kinds:
        item = Content.assemble(("■", STYLES[KINDS[kind]]), f" {KINDS[kind]}  ")
        if line.cell_length + item.cell_length > width:
            break
        line = line.append(item)
    return line


def cursor_lines(browse: Browse, width: int) -> list[Content]:
    under, time = browse.under_cursor, browse.cursor
    if under is None:
        return []
    lane, row, at = under
    if row.values is not None:
        at = row.at(time)
        value = _quantity(float(row.values[at]), lane.unit) if at is not None else UNKNOWN
        since = f"  since {seconds(int(row.starts[at]) * NS, 5)}" if at is not None else "  before its first value"
        head = Content.assemble((safe(lane.title), "bold"), "  ", ("■ ", STYLES[COUNTER]), (value, "bold"), since)
        most = int(row.values.argmax())
        figures = (
            f"most {_quantity(float(row.values[most]), lane.unit)} at {seconds(int(row.starts[most]) * NS, 5)} · "
            f"{integer(len(row.values))} values · {lane.device}"
        )
        return [head.truncate(width, ellipsis=True), Content.styled(safe(figures), "$text-muted").truncate(width)]
    begin, end = extent(row, time, browse.whole)
    # From the profile's zero, as on the ruler; the first interval may begin many seconds later.
    times = f"{seconds((end - begin) * NS)}  at {seconds(begin * NS, 5)}"
    where = f"{lane.device} {row.name}" if lane.on_device else row.name
    share = f"{percent(busy_share(row, browse.window))} of the view busy" if lane.left_out == 0 else ""
    if at is None:
        near = [(word, row.near(time, step)) for word, step in (("after", -1), ("before", 1))]
        room = max(8, width // 3)
        parts = [f"{word} {shorten(lane.name_of(row, at), room)}" for word, at in near if at is not None]
        word = "idle" if lane.left_out == 0 else "idle, or short events that were left out"
        head = Content.assemble((word, "bold $warning"), f"  {times}")
    else:
        label = int(row.label[at])
        name, op = lane.labels[label]
        kind = KINDS[lane.kind_of_label[label]]
        details = f"{kind}  {times}"
        parts = []
        if op is not None:
            hlo_op = browse.lanes.ops[op]
            parts.append(f"op {hlo_op.name if hlo_op.name != name else ''}".strip() + f" of {hlo_op.module or '-'}")
        if (linked := browse.linked) is not None:  # a launch and its kernel lead to each other
            other = browse.lanes.lanes[linked.lane]
            its_row = other.rows[linked.row]
            apart = int(its_row.starts[linked.index]) - begin
            when = f"{seconds(abs(apart) * NS)} {'later' if apart >= 0 else 'earlier'}"
            launched = f"launched{' by' * lane.on_device} {shorten(other.name_of(its_row, linked.index), 40)}"
            parts.append(f"{key_of('timeline.launch')}: {launched}, {when}")
        room = max(12, width - len(details) - 6)
        head = Content.assemble((shorten(name, room), "bold"), "  ", ("■ ", STYLES[kind]), details)
    names = shorten(" · ".join(filter(None, [*parts, where])), max(8, width - len(share) - 3 if share else width))
    rest = Content.styled(" · ".join(filter(None, [names, share])), "$text-muted")
    return [head.truncate(width, ellipsis=True), rest.truncate(width, ellipsis=True)]


def _quantity(value: float, unit: str) -> str:
    if unit == "bytes":
        return bytes_(round(value))
    return scaled(value, "W") if unit == "watts" else f"{value:g} {safe(unit)}".strip()


PARTS = {part.name: part.name.removesuffix("_exposed").replace("_", " ") for part in fields(StepParts)}


def step_lines(event: StepsMeasured | None, time: float, device: str, width: int) -> list[Content]:
    """Return the parts of the step at `time` (seconds), preferably on `device`, and of the mean complete step."""
    steps = [step for step in event.steps if step.seconds > 0] if event is not None else []
    if event is None or not steps:
        return [Content.styled("The parts of a step are unknown: no steps and no kernels were found.", "$text-muted")]
    around = [step for step in steps if step.start_seconds <= time < step.start_seconds + step.seconds]
    here = next((step for step in around if step.device == device), around[0] if around else None)
    whole = [step for step in steps if step.complete] or steps
    mean = mean_step(whole)
    name = here.name if here is not None else "between the steps"
    if here is not None and not here.complete:
        name += " (not whole)"
    shown = (
        column("step", itemgetter(0), widest=30),
        column("time", lambda row: seconds(row[1].seconds) if row[1] is not None else "", right=True),
        *(column(title, partial(_part, part), right=True) for part, title in PARTS.items()),
    )
    devices, count = len({step.device for step in whole}), counted(len(whole), "step")
    if devices > 1 and len(whole) % devices == 0:
        count = f"{len(whole) // devices}×{devices} steps"
    table = Table(shown, [(name, here), (f"{count}, mean", mean)])
    found = f"steps found by {FOUND_BY.get(event.found_by, event.found_by or UNKNOWN)}"
    if overlapped := max(0.0, (here or mean).collectives_overlapped_seconds):
        found += f" · collectives overlapped {seconds(overlapped)}"
    lines = (*table_lines(table, width), Content.styled(safe(found), "$text-muted"))
    return [line.truncate(width, ellipsis=True) for line in lines]


def _part(part: str, row: tuple[str, StepTimes | None]) -> str:
    step = row[1]
    took = getattr(step.parts, part) if step is not None else 0.0
    return f"{seconds(took)} {percent(took / step.seconds)}" if step is not None and took else ""


_GAP = 3
"""Columns between the two tables."""


def range_facts(lanes: Lanes, span: tuple[int, int], lane: int, width: int, height: int) -> Content:
    """Return the totals of a range in `width` by `height`. On the left stand the lanes, the one under the cursor first;
    on the right the names that took most of the time: kernels of its device or, on a host, names of the lane itself."""
    totals = range_totals(lanes, *span)
    group, whole = lanes.lanes[lane], span[1] - span[0]
    names = kernels_on(lanes, group.device, totals) if group.on_device else ()
    title = f"kernels of {group.device}" if names else f"in {lane_name(group)}"
    names = names or next((total.names for total in totals if total.lane == lane), ())
    ran = [total for total in totals if total.count or total.lane == lane]
    ran.sort(key=lambda total: (total.lane != lane, lanes.lanes[total.lane].device != group.device,
                                not lanes.lanes[total.lane].on_device))  # fmt: skip
    of_events = {number for number, each in enumerate(lanes.lanes) if each.kind != BUSY}
    idle = sum(total.left_out == 0 and total.lane in of_events for total in totals if total not in ran)
    left = max(24, (width - _GAP) // 2)
    right = width - _GAP - left
    of_a_lane = (
        column("lane", lambda total: lane_name(lanes.lanes[total.lane]), widest=40),
        column("share", "busy_share", percent_or_less),
        column("busy", "busy_ns", _time),
        column("idle", "idle_ns", _time),
        column("events", lambda total: integer(total.count) if total.lane in of_events else "", right=True),
    )
    of_a_name = (
        column("self", "self_ns", _time),
        column("of range", lambda total: total.self_ns / max(1, whole), percent_or_less),
        column("times", "count", integer),
        column(title, "name", widest=60),
    )
    tables = zip_longest(
        _table(of_a_lane, ran, left, height - 1),
        _table(of_a_name, names, right, height - 1),
        fillvalue=Content(" " * left),
    )
    head = Content.assemble(
        ("range", "bold $accent"),
        f"  {seconds(whole * NS)}  from {seconds(span[0] * NS, 5)} to {seconds(span[1] * NS, 5)}",
        (f" · {counted(idle, 'lane')} idle throughout" if idle else "", "$text-muted"),
        (f"   {key_of('timeline.fit')} zooms to it, {key_of('profile.back')} clears it", "$text-muted"),
    )  # fmt: skip
    lines = [head.truncate(width, ellipsis=True), *(one + Content(" " * _GAP) + other for one, other in tables)]
    return Content("\n").join(lines[:height])


def _time(nanoseconds: int | None) -> str:
    return seconds(nanoseconds and nanoseconds * NS)


def _table(facts: Sequence[Fact[Any]], rows: Sequence[Any], width: int, height: int) -> list[Content]:
    """Return the heading, as many rows as fit, and how many more there are, each line of exactly `width`."""
    fit = len(rows) if len(rows) < height else max(0, height - 2)
    table = Table(facts, rows, most=max(1, fit))
    lines = list(table_lines(table, width)) or [Content.styled("nothing ran", "$text-muted")]
    cut = [line.truncate(width, ellipsis=True) for line in lines[:height]]
    return [line.pad_right(width - line.cell_length) for line in cut]
