"""Where a program's time went: the states over time, what the devices and the arrays did meanwhile, and the table."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.containers import VerticalScroll
from textual.content import Content

from jaxprof.tui.recorded.axis import Axis, states_by_column, values_by_column
from jaxprof.tui.widgets.drawing import cell
from jaxprof.tui.widgets.picture import Lines
from jaxprof.tui.widgets.program_bar import share_table, spark_columns, state_columns
from jaxprof.tui.widgets.program_facts import more_lines
from jaxprof.tui.widgets.scales import Scale
from jaxprof.units import bytes_, integer, percent, scaled, seconds

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from jaxprof.events import ArraysCounted, DeviceReading, ProgramSampled
    from jaxprof.results.programs.derive import ProgramResult

LABEL, FIGURE = 12, 11
HIGH, LOW = 6, 3
"""Lines of the stacked columns on a high and on a low terminal."""
COARSE_FROM_SECONDS = 128.0
"""From here on the picture is drawn less than once a second."""
DEVICES = 3
"""Devices whose readings are drawn."""


@dataclass(frozen=True, slots=True)
class Track:
    """One sparkline: a quantity over time, with its last value."""

    label: str
    points: tuple[tuple[float, float | None], ...]
    high: float
    figure: str
    style: str = "$bar"


def device_tracks(device: str, readings: Sequence[DeviceReading], axis: Axis) -> list[Track]:
    """Utilisation, power and memory of a device, as far as it tells them, within the axis."""
    inside = [one for one in readings if axis.began_seconds - 1 <= one.monotonic_seconds <= axis.ended_seconds + 1]
    if not inside:
        return []

    def track(label: str, values: Sequence[float | None], high: float | None, figure: str) -> list[Track]:
        known = [value for value in values if value is not None]
        if not known:
            return []
        points = tuple(zip((one.monotonic_seconds for one in inside), values, strict=True))
        return [Track(label, points, high or max(known) or 1.0, figure)]

    last = inside[-1]
    short = device.replace("cuda:", "gpu:") if len(device) > 6 else device
    return [
        *track(f"{short} util", [one.utilisation for one in inside], 1.0, percent(last.utilisation)),
        *track(f"{short} mem", [one.memory_used_bytes for one in inside], last.memory_limit_bytes,
               bytes_(last.memory_used_bytes)),
        *track(f"{short} watt", [one.power_watts for one in inside], last.power_limit_watts,
               scaled(last.power_watts, "W")),
    ]  # fmt: skip


def array_tracks(arrays: Sequence[ArraysCounted]) -> list[Track]:
    """The live arrays, in number and bytes."""
    if not arrays:
        return []
    times = [one.monotonic_seconds for one in arrays]
    counts, sizes = [float(one.count) for one in arrays], [float(one.bytes) for one in arrays]
    return [
        Track("arrays", tuple(zip(times, counts, strict=True)), max(counts) or 1.0, integer(counts[-1]), "$better"),
        Track("in bytes", tuple(zip(times, sizes, strict=True)), max(sizes) or 1.0, bytes_(sizes[-1]), "$better"),
    ]


def over_time(
    sampled: Sequence[ProgramSampled], tracks: Sequence[Track], axis: Axis, width: int, height: int
) -> list[Content]:
    """The stacked columns, the ruler below them, and the tracks; all on one axis."""
    columns = max(1, width - LABEL - FIGURE)
    if not axis.seconds or columns < 12:
        return []
    lines = [
        Content.assemble(cell("doing" if row == 0 else "", LABEL, "$text-muted"), drawn)
        for row, drawn in enumerate(state_columns(states_by_column(sampled, axis, columns), height))
    ]
    lines.append(Content(" " * LABEL) + _ruler(axis, columns))
    for track in tracks:
        values = values_by_column(track.points, axis, columns)
        lines.append(
            Content.assemble(
                cell(track.label, LABEL, "$text-muted"),
                spark_columns(values, track.high, track.style),
                cell(f" {track.figure}", FIGURE, "bold"),
            )
        )
    return lines


def _ruler(axis: Axis, columns: int) -> Content:
    """Round times below the columns, each at its place."""
    text = [" "] * columns
    for tick in Scale(0.0, axis.seconds).ticks(max(2, columns // 14)):
        at = round(tick / axis.seconds * columns)
        label = "0" if tick == 0 else seconds(tick).replace(".00", "").replace(".0 ", " ")
        mark = f"╵{label}"
        if at + len(mark) <= columns:
            text[at : at + len(mark)] = mark
    return Content.styled("".join(text), "$quiet")


def coarse(wall_seconds: float) -> tuple[int, int]:
    """Changes with the wall time every second at first, then with every hundredth of it or so: a picture of hours has
    tens of thousands of stretches to add up, and would look the same."""
    step: int = 2 ** max(0, int(math.log2(max(1.0, wall_seconds / COARSE_FROM_SECONDS))))
    return step, int(wall_seconds / step)


class TimePane(VerticalScroll, can_focus=True):
    """The pictures, then the table."""

    def compose(self) -> ComposeResult:
        yield Lines(id="over-time")
        yield Lines(id="time-table")
        yield Lines(id="time-more")

    def show(self, key: Hashable, found: ProgramResult, axis: Axis, tracks: Sequence[Track]) -> None:
        """Shows the time of a program; `key` is what all of it depends on."""
        high = self.screen.size.height >= 34
        shares = [(share.state, share.seconds, share.exact) for share in found.timeline]
        shown = list(tracks) if high else list(tracks)[:4]

        def pictures(width: int) -> list[Content]:
            if not found.stretches:
                return []
            return [*over_time(found.stretches, shown, axis, width, HIGH if high else LOW), Content("")]

        drawn = (found.run.id, found.ended, high, coarse(found.wall_seconds))
        self.query_one("#over-time", Lines).show(drawn, pictures)
        self.query_one("#time-table", Lines).show(key, lambda width: share_table(shares, found.wall_seconds, width))
        self.query_one("#time-more", Lines).show(key, lambda width: more_lines(found, width))
