"""Texts around the timeline: the legend of the colours, what is under the cursor, and the parts of its step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from textual.content import Content

from jaxprof.analysis.lanes.kinds import COUNTER, KINDS, WORDS
from jaxprof.analysis.profile import mean_step
from jaxprof.events import StepParts, StepTimes
from jaxprof.text import safe, shorten
from jaxprof.tui.keys import key_of
from jaxprof.tui.kit.axis_browse import AxisWindow
from jaxprof.tui.kit.drawing import bar, cell, stacked
from jaxprof.tui.kit.table_columns import Row, TableColumn, header_line, placed, row_line
from jaxprof.tui.profile.timeline.browse import extent
from jaxprof.tui.profile.timeline.drawing import lane_name
from jaxprof.units import UNKNOWN, bytes_, counted, integer, percent, percent_or_less, scaled, seconds

if TYPE_CHECKING:
    from jaxprof.analysis.lanes.navigation import End, Matches, Stretch
    from jaxprof.analysis.lanes.rows import LaneGroup, LaneRow, Lanes
    from jaxprof.analysis.lanes.totals import LaneTotals, NameTotal, RangeTotals
    from jaxprof.events import StepsMeasured


NS = 1e-9
"""Seconds in a nanosecond."""

STYLES: Mapping[str, str] = {
    "matmul": "$phase-compile", "fusion": "$phase-run", "reduction": "$phase-lower", "move": "$phase-transfer",
    "collective": "$phase-first", "kernel": "$better", "program": "$baseline", "dispatch": "$phase-trace",
    "wait": "$text-disabled", "host": "$quiet", "counter": "$accent",
}  # fmt: skip
"""The colour of each kind, as in the timeline section of the stylesheet."""


def legend(lanes: Lanes, width: int) -> Content:
    """Return the colours of the kinds that occur, as many as fit."""
    line = Content("")
    for kind in lanes.kinds:
        item = Content.assemble(("■", STYLES[KINDS[kind]]), f" {WORDS.get(KINDS[kind], KINDS[kind])}  ")
        if line.cell_length + item.cell_length > width:
            break
        line = line.append(item)
    return line


def link_words(lanes: Lanes, lane: LaneGroup, end: End, begin: int) -> str:
    """Return the other end of a launch or a kernel, how much later or earlier it begins, and the key that goes
    there."""
    other = lanes.lanes[end.lane]
    row = other.rows[end.row]
    name = shorten(other.labels[int(row.label[end.index])][0], 40)
    apart = int(row.starts[end.index]) - begin
    when = f"{seconds(abs(apart) * NS)} {'later' if apart >= 0 else 'earlier'}"
    key = key_of("timeline.launch")
    return f"{key}: launched by {name}, {when}" if lane.on_device else f"{key}: launched {name}, {when}"


def cursor_lines(
    lanes: Lanes,
    window: AxisWindow,
    time: int,
    under: tuple[LaneGroup, LaneRow, int | None],
    width: int,
    link: End | None = None,
    rank: Stretch | None = None,
    same: tuple[Matches, int] | None = None,
) -> list[Content]:
    """Return the interval, idle time or counter value at a time in a row of `window`.

    `link` is the other end of the launch or kernel there; `rank` is its place among the longest, if known; `same` are
    the intervals of the same kernel, and the index of this one.
    """
    from jaxprof.tui.profile.timeline.drawing import busy_share

    lane, row, at = under
    if row.values is not None:
        return _counter_lines(lane, row, time, width)
    whole = AxisWindow(lanes.begin, lanes.end)
    begin, end = extent(row, time, whole)
    # From the profile's zero, as on the ruler; the first interval may begin many seconds later.
    times = f"{seconds((end - begin) * NS)}  at {seconds(begin * NS, 5)}"
    where = safe(f"{lane.device} {row.name}" if lane.on_device else row.name)
    share = f"{percent(busy_share(row, window))} of the view busy" if lane.left_out == 0 else ""
    if at is None:
        before, after = row.near(time, -1), row.near(time, 1)
        names = [lane.labels[int(row.label[n])][0] if n is not None else "" for n in (before, after)]
        between = " · ".join(
            f"{word} {shorten(name, max(8, width // 3))}"
            for word, name in zip(("after", "before"), names, strict=True)
            if name
        )
        word = "idle" if lane.left_out == 0 else "idle, or short events that were left out"
        head = Content.assemble((word, "bold $warning"), f"  {times}", (_rank_text(rank), "$accent"))
        around = Content.styled(" · ".join(filter(None, (between, where, share))), "$text-muted")
        return [head.truncate(width, ellipsis=True), around.truncate(width, ellipsis=True)]
    label = int(row.label[at])
    name, op = lane.labels[label]
    kind = KINDS[lane.kind_of_label[label]]
    place = _rank_text(rank)
    again = _occurrence(*same) if same is not None and len(same[0]) > 1 else ""
    if not place and len(name) + len(times) + len(kind) + len(again) + 10 <= width:
        place, again = f"  {again}", ""
    room = max(12, width - len(times) - len(kind) - len(place) - 8)
    details = f"{WORDS.get(kind, kind)}  {times}"
    head = Content.assemble((shorten(name, room), "bold"), "  ", ("■ ", STYLES[kind]), details, (place, "$accent"))
    parts = [word for word in (where, share) if word]
    if again:
        parts.insert(0, again)
    if link is not None:
        parts.insert(0, link_words(lanes, lane, link, begin))
    if op is not None:
        hlo_op = lanes.ops[op]
        op_name = f"op {hlo_op.name}" if hlo_op.name != name else "op"
        parts.insert(0, safe(f"{op_name} of {hlo_op.module or '-'}"))
    return [head.truncate(width, ellipsis=True),
            Content.styled(" · ".join(parts), "$text-muted").truncate(width, ellipsis=True)]  # fmt: skip


def _rank_text(rank: Stretch | None) -> str:
    """Return the place among the longest intervals of the row; empty if not known."""
    if rank is None:
        return ""
    return f"  the longest of {integer(rank.of)}" if rank.rank == 1 else f"  longest {rank.rank} of {integer(rank.of)}"


def _occurrence(same: Matches, at: int) -> str:
    """Return the index of this interval among those of the same kernel, and their median."""
    return f"{integer(at + 1)} of {integer(len(same))}, median {seconds(same.median_ns * NS)}"


def _counter_lines(lane: LaneGroup, row: LaneRow, time: int, width: int) -> list[Content]:
    """Return the value of a counter, and its highest value."""
    assert row.values is not None
    at = row.at(time)
    value = _quantity(float(row.values[at]), lane.unit) if at is not None else UNKNOWN
    since = f"  since {seconds(int(row.starts[at]) * NS, 5)}" if at is not None else "  before its first value"
    head = Content.assemble((safe(lane.title), "bold"), "  ", ("■ ", STYLES[COUNTER]), (value, "bold"), since)
    most = int(row.values.argmax())
    rest = (
        f"most {_quantity(float(row.values[most]), lane.unit)} at {seconds(int(row.starts[most]) * NS, 5)} · "
        f"{integer(len(row.values))} values · {lane.device}"
    )
    return [head.truncate(width, ellipsis=True), Content.styled(safe(rest), "$text-muted").truncate(width)]


def _quantity(value: float, unit: str) -> str:
    if unit == "bytes":
        return bytes_(round(value))
    return scaled(value, "W") if unit == "watts" else f"{value:g} {safe(unit)}".strip()


PARTS = {
    "kernels": ("kernels", "█", "$phase-run"),
    "transfers": ("transfers", "▓", "$phase-transfer"),
    "collectives_exposed": ("collectives", "▒", "$phase-first"),
    "launch_gaps": ("launch gaps", "░", "$phase-compile"),
    "idle": ("idle", "·", "$quiet"),
}
"""By name in the events: label, character and colour."""
FOUND_BY = {
    "annotation": "found by their annotations",
    "modules": "found by the executions of the program",
    "whole": "no steps found: the whole recording",
}


_NOTHING = StepTimes(start_seconds=0.0, seconds=0.0, parts=StepParts())
"""Shown while the cursor is between two steps."""


def steps_of(event: StepsMeasured | None) -> list[StepTimes]:
    """Return the steps that took any time, which can be drawn."""
    return [step for step in event.steps if step.seconds > 0] if event is not None else []


def step_at(steps: Sequence[StepTimes], time: float, device: str) -> StepTimes | None:
    """Return the step at `time` (seconds), on `device` if that has one, else on another device."""
    around = [step for step in steps if step.start_seconds <= time < step.start_seconds + step.seconds]
    return next((step for step in around if step.device == device), around[0] if around else None)


def step_lines(event: StepsMeasured | None, time: float, device: str, width: int) -> list[Content]:
    """Return the step under the cursor, the mean of all complete steps, and a legend of the parts."""
    steps = steps_of(event)
    if event is None or not steps:
        return [Content.styled("The parts of a step are unknown: no steps and no kernels were found.", "$text-muted")]
    here = step_at(steps, time, device)
    whole = [step for step in steps if step.complete] or steps
    average = mean_step(whole)
    shown = here if here is not None else average
    rows = [(f"{_step_count(whole)}, mean", average)]
    if here is not None:
        note = "" if here.complete else " (not whole)"
        rows.insert(0, (f"{here.name}{note}", here))
    else:
        rows.insert(0, ("between the steps", _NOTHING))
    lines = [_bar_line(name, step, width) for name, step in rows]
    return [*lines, _legend(shown, width), _found_by(event, shown, width)]


def _step_count(steps: Sequence[StepTimes]) -> str:
    """Return `10 steps`, or `10×4 steps` if each of four devices took ten."""
    devices = len({step.device for step in steps})
    count = f"{len(steps) // devices}×{devices}" if devices > 1 and len(steps) % devices == 0 else str(len(steps))
    return f"{count} step{'s' if len(steps) != 1 else ''}"


def _bar_line(name: str, step: StepTimes, width: int) -> Content:
    label = 18 if width < 100 else 30
    head = Content.assemble(
        cell(name, label, "$foreground"),
        " ",
        cell(seconds(step.seconds) if step.seconds else "", 8, "bold", right=True),
    )
    room = max(4, width - label - 11)
    parts = ((getattr(step.parts, name), mark, style) for name, (_, mark, style) in PARTS.items())
    return Content.assemble(head, "  ", stacked(parts, step.seconds, room) if step.seconds > 0 else " " * room)


def _legend(step: StepTimes, width: int) -> Content:
    """Return the legend: each part that took any time, with its share if there is room for all shares."""
    parts = [(name, getattr(step.parts, name)) for name in PARTS]
    shown = [(name, part) for name, part in parts if part or name == "kernels"]
    line = Content("")
    for gap, shares in (("   ", True), ("  ", True), ("  ", False)):
        items = []
        for name, part in shown:
            words, mark, style = PARTS[name]
            share = f" {percent(part / step.seconds)}" if shares and step.seconds else ""
            items.append(
                Content.assemble((f"{mark} ", style), f"{words} ", (seconds(part), "bold"), (share, "$text-muted"))
            )
        line = Content(gap).join(items)
        if line.cell_length <= width:
            break
    return line.truncate(width, ellipsis=True)


def _found_by(event: StepsMeasured, step: StepTimes, width: int) -> Content:
    words = FOUND_BY.get(event.found_by, shorten(event.found_by or "-", 40))
    parts = [f"steps {words}" if event.found_by != "whole" else words]
    none = [words for name, (words, _, _) in PARTS.items() if getattr(step.parts, name) == 0]
    if none:
        parts.append(f"no {', '.join(none)}")
    if step.collectives_overlapped_seconds > 0:
        parts.append(f"collectives overlapped {seconds(step.collectives_overlapped_seconds)}")
    return Content.styled(" · ".join(parts), "$text-muted").truncate(width, ellipsis=True)


_GAP = 3
"""Columns between the two tables."""


def range_facts(lanes: Lanes, totals: RangeTotals, lane: int, width: int, height: int, name: str, keys: str) -> Content:
    """Return the totals of a range, called `name`, in `width` by `height`.

    On the left stand the lanes, the one under the cursor first; on the right the names that took most of the time:
    kernels of its device or, on a host, names of the lane itself. `keys` explains what can be done with the range.
    """
    head = Content.assemble(
        (name, "bold $accent"), f"  {seconds(totals.span_ns * NS)}  from {seconds(totals.begin * NS, 5)} "
        f"to {seconds(totals.end * NS, 5)}",
    )  # fmt: skip
    if head.cell_length + len(keys) + 3 <= width:
        head += Content.styled(f"   {keys}", "$text-muted")
    left = max(24, (width - _GAP) // 2)
    right = width - _GAP - left
    group = lanes.lanes[lane]
    here = totals.of(lane)
    if group.on_device:
        names, title = totals.kernels(lanes, group.device), f"kernels of {group.device}"
        names = names or (here.names if here is not None else ())
    else:
        names, title = (here.names if here is not None else ()), lane_name(group)
    rows = max(1, height - 1)
    lane_lines = _lane_table(lanes, totals, lane, left, rows)
    name_lines = _name_table(names, title, totals.span_ns, right, rows)
    joined = (one + Content(" " * _GAP) + other for one, other in zip(lane_lines, name_lines, strict=True))
    lines = [head.truncate(width, ellipsis=True), *joined]
    return Content("\n").join(lines[:height])


def _lane_table(lanes: Lanes, totals: RangeTotals, lane: int, width: int, rows: int) -> list[Content]:
    """Return a line for each lane that did anything, with busy and idle time; exactly `rows` lines."""
    ran = [total for total in totals.lanes if total.count or total.lane == lane]
    device = lanes.lanes[lane].device
    listed = sorted(ran, key=lambda total: (total.lane != lane, (other := lanes.lanes[total.lane]).device != device,
                                            not other.on_device))  # fmt: skip
    quiet = sum(total.left_out == 0 for total in totals.lanes if total not in ran)

    def name(total: LaneTotals) -> tuple[str, str]:
        threads = f" ×{total.threads}" if total.threads > 1 else ""
        return lane_name(lanes.lanes[total.lane]) + threads, "bold" if total.lane == lane else "$foreground"

    columns: tuple[TableColumn[LaneTotals], ...] = (
        TableColumn("lane", name, 8, weight=1),
        TableColumn("busy", lambda total: percent_or_less(total.busy_share), 7, right=True, style="bold"),
        TableColumn("", lambda total: seconds(total.busy_ns * NS), 7, right=True),
        TableColumn("idle", lambda total: seconds(total.idle_ns and total.idle_ns * NS), 7, right=True,
                    style="$text-muted"),
        TableColumn("events", lambda total: integer(total.count), 7, right=True, style="$text-muted", priority=1),
    )  # fmt: skip
    return _table(columns, listed, width, rows, "lane", f"{counted(quiet, 'lane')} idle throughout" if quiet else "")


def _name_table(names: Sequence[NameTotal], title: str, span: int, width: int, rows: int) -> list[Content]:
    """Return a line for each name, the longest first; exactly `rows` lines."""
    most = names[0].self_ns if names else 0
    columns: tuple[TableColumn[NameTotal], ...] = (
        TableColumn("", lambda total: ("■", STYLES[KINDS[total.kind]]), 1),
        TableColumn(title, lambda total: total.name, 16, weight=1, cut="middle"),
        TableColumn("", lambda total: lambda room: bar(total.self_ns / most if most else None, room), 12, priority=2),
        TableColumn("self", lambda total: seconds(total.self_ns * NS), 7, right=True, style="bold"),
        TableColumn("", lambda total: percent_or_less(total.self_ns / max(1, span)), 7, right=True, priority=1,
                    style="$text-muted"),
        TableColumn("", lambda total: f"×{integer(total.count)}", 7, right=True, style="$text-muted"),
    )  # fmt: skip
    return _table(columns, names, width, rows, "name", "" if names else "nothing ran")


def _table(
    columns: Sequence[TableColumn[Row]], items: Sequence[Row], width: int, rows: int, what: str, rest: str
) -> list[Content]:
    """Return the heading, as many lines as fit, and how many more there are; empty lines up to `rows`.

    Only the lines that fit are made: a lane may have thousands of names.
    """
    fit = len(items) if len(items) < rows else max(0, rows - 2)
    if fit < len(items):
        rest = f"and {counted(len(items) - fit, f'more {what}')}" + (f", {rest}" if rest else "")
    layout = placed(columns, width, margin=0)
    shown = [header_line(layout).stylize("$text-muted"), *(row_line(item, layout, width) for item in items[:fit])]
    shown += [Content.styled(rest, "$text-muted")] if rest and len(shown) < rows else []
    shown += [Content("")] * (rows - len(shown))
    return [text.truncate(width, ellipsis=True).pad_right(max(0, width - text.cell_length)) for text in shown[:rows]]
