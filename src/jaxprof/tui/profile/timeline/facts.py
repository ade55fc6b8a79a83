"""Texts around the timeline: the legend of the colours, what is under the cursor, and the parts of its step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from functools import partial
from itertools import zip_longest
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from textual.content import Content

from jaxprof.analysis.profile import FOUND_BY, mean_step
from jaxprof.analysis.timeline import COUNTER, KINDS
from jaxprof.events import StepParts, StepTimes
from jaxprof.facts import Fact, at, column
from jaxprof.report.renderers import Table
from jaxprof.text import safe, shorten
from jaxprof.tui.keys import key_of
from jaxprof.tui.kit.table_columns import table_lines
from jaxprof.tui.profile.timeline.browse import extent
from jaxprof.tui.profile.timeline.drawing import STYLES, busy_share, lane_name
from jaxprof.units import UNKNOWN, bytes_, counted, integer, percent, percent_or_less, scaled, seconds

if TYPE_CHECKING:
    from jaxprof.analysis.lanes import End, LaneGroup, LaneRow, Lanes
    from jaxprof.events import StepsMeasured
    from jaxprof.tui.profile.timeline.browse import Browse


NS = 1e-9
"""Seconds in a nanosecond."""


def legend(lanes: Lanes, width: int) -> Content:
    """Return the colours of the kinds that occur, as many as fit."""
    line = Content("")
    for kind in lanes.kinds:
        item = Content.assemble(("■", STYLES[KINDS[kind]]), f" {KINDS[kind]}  ")
        if line.cell_length + item.cell_length > width:
            break
        line = line.append(item)
    return line


def link_words(lanes: Lanes, lane: LaneGroup, end: End, begin: int) -> str:
    """Return the other end of a launch or a kernel, how much later or earlier it begins, and the key that goes
    there."""
    other, row = lanes.lanes[end.lane], lanes.lanes[end.lane].rows[end.row]
    apart = int(row.starts[end.index]) - begin
    when = f"{seconds(abs(apart) * NS)} {'later' if apart >= 0 else 'earlier'}"
    launched = "launched by" if lane.on_device else "launched"
    return f"{key_of('timeline.launch')}: {launched} {shorten(other.name_of(row, end.index), 40)}, {when}"


def cursor_lines(browse: Browse, width: int) -> list[Content]:
    """Return the interval, idle time or counter value under the cursor."""
    under, time = browse.under_cursor, browse.cursor
    if under is None:
        return []
    lane, row, at = under
    if row.values is not None:
        return _counter_lines(lane, row, time, width)
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
        if (linked := browse.linked) is not None:
            parts.append(link_words(browse.lanes, lane, linked, begin))
        room = max(12, width - len(details) - 6)
        head = Content.assemble((shorten(name, room), "bold"), "  ", ("■ ", STYLES[kind]), details)
    names = shorten(" · ".join(filter(None, [*parts, where])), max(8, width - len(share) - 3 if share else width))
    rest = Content.styled(" · ".join(filter(None, [names, share])), "$text-muted")
    return [head.truncate(width, ellipsis=True), rest.truncate(width, ellipsis=True)]


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


PARTS = {part.name: part.name.removesuffix("_exposed").replace("_", " ") for part in fields(StepParts)}
"""Titles of the parts of a step, by their names in the events."""


def step_lines(event: StepsMeasured | None, time: float, device: str, width: int) -> list[Content]:
    """Return the parts of the step at `time` (seconds), on `device` if that has one, else on another device; and those
    of the mean of all complete steps."""
    steps = [step for step in event.steps if step.seconds > 0] if event is not None else []
    if event is None or not steps:
        return [Content.styled("The parts of a step are unknown: no steps and no kernels were found.", "$text-muted")]
    around = [step for step in steps if step.start_seconds <= time < step.start_seconds + step.seconds]
    here = next((step for step in around if step.device == device), around[0] if around else None)
    whole = [step for step in steps if step.complete] or steps
    mean = mean_step(whole)
    name = "between the steps" if here is None else here.name if here.complete else f"{here.name} (not whole)"
    columns = (
        column("step", itemgetter(0), widest=30),
        column("time", lambda row: seconds(row[1].seconds) if row[1] is not None else "", right=True),
        *(column(title, partial(_part, part), right=True) for part, title in PARTS.items()),
    )
    table = Table(columns, [(name, here), (f"{_step_count(whole)}, mean", mean)])
    return [
        line.truncate(width, ellipsis=True) for line in (*table_lines(table, width), _found_by(event, here or mean))
    ]


def _part(part: str, row: tuple[str, StepTimes | None]) -> str:
    """Return a part of a step with its share; empty if it took no time."""
    step = row[1]
    took = getattr(step.parts, part) if step is not None else 0.0
    return f"{seconds(took)} {percent(took / step.seconds)}" if step is not None and took else ""


def _step_count(steps: Sequence[StepTimes]) -> str:
    """Return `10 steps`, or `10×4 steps` if each of four devices took ten."""
    devices = len({step.device for step in steps})
    if devices > 1 and len(steps) % devices == 0:
        return f"{len(steps) // devices}×{devices} steps"
    return counted(len(steps), "step")


def _found_by(event: StepsMeasured, step: StepTimes) -> Content:
    parts = [f"steps found by {FOUND_BY.get(event.found_by, event.found_by or UNKNOWN)}"]
    if step.collectives_overlapped_seconds > 0:
        parts.append(f"collectives overlapped {seconds(step.collectives_overlapped_seconds)}")
    return Content.styled(safe(" · ".join(parts)), "$text-muted")


_GAP = 3
"""Columns between the two tables."""


def range_facts(lanes: Lanes, span: tuple[int, int], lane: int, width: int, height: int) -> Content:
    """Return the totals of a range in `width` by `height`.

    On the left stand the lanes, the one under the cursor first; on the right the names that took most of the time:
    kernels of its device or, on a host, names of the lane itself.
    """
    from jaxprof.analysis.lanes import kernels_on, range_totals

    totals = range_totals(lanes, *span)
    group, here, whole = lanes.lanes[lane], totals.get(lane), span[1] - span[0]
    names = kernels_on(lanes, group.device, totals.values()) if group.on_device else ()
    title = f"kernels of {group.device}" if names else f"in {lane_name(group)}"
    names = names or (here.names if here is not None else ())
    ran = [total for total in totals.values() if total.count or total.lane == lane]
    ran.sort(key=lambda total: (total.lane != lane, lanes.lanes[total.lane].device != group.device,
                                not lanes.lanes[total.lane].on_device))  # fmt: skip
    idle = sum(total.left_out == 0 for total in totals.values() if total not in ran)
    left = max(24, (width - _GAP) // 2)
    right = width - _GAP - left
    of_a_lane = (
        column("lane", lambda total: lane_name(lanes.lanes[total.lane]), widest=40),
        column("share", at("busy_share"), percent_or_less),
        column("busy", at("busy_ns"), _time),
        column("idle", at("idle_ns"), _time),
        column("events", at("count"), integer),
    )
    of_a_name = (
        column("self", at("self_ns"), _time),
        column("of range", lambda total: total.self_ns / max(1, whole), percent_or_less),
        column("times", at("count"), integer),
        column(title, at("name"), widest=60),
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
