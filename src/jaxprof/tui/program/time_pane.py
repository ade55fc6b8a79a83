"""Where a program's time went: its states over time, devices and arrays on the same axis, and the tables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.containers import VerticalScroll
from textual.content import Content

from jaxprof.report.recording.tables import TIME_LINE_TEXT, time_line_rows
from jaxprof.report.recording.text import parts_beside
from jaxprof.report.renderers import Table
from jaxprof.text import safe
from jaxprof.tui.kit.canvas import Scale, ruler
from jaxprof.tui.kit.drawing import cell, spark
from jaxprof.tui.kit.guard import Guarded
from jaxprof.tui.kit.picture import Lines
from jaxprof.tui.kit.plots import seconds_tick
from jaxprof.tui.kit.program_summary import state_columns, state_style
from jaxprof.tui.kit.table_columns import table_lines
from jaxprof.units import bytes_, integer, percent, scaled

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from jaxprof.analysis.programs.result import ProgramResult
    from jaxprof.events import ArraysCounted, DeviceReading, ProgramSampled
    from jaxprof.session import Session


def states_by_column(sampled: Iterable[ProgramSampled], axis: Scale, columns: int) -> list[dict[str, float]]:
    """Return, for each column, the share (0..1) of each state; shares add up to less than 1 where nothing was
    recorded."""
    shares: list[dict[str, float]] = [{} for _ in range(columns)]
    for window in sampled:
        length = window.monotonic_seconds - window.began_seconds
        if length <= 0:
            continue
        first, last = (axis.place(at) * columns for at in (window.began_seconds, window.monotonic_seconds))
        for column in range(max(0, int(first)), min(columns, int(last) + 1)):
            inside = min(last, column + 1) - max(first, column)  # in columns; the states divide it in proportion
            if inside <= 0:
                continue
            for state, spent in window.states.items():
                if spent > 0:
                    shares[column][state] = shares[column].get(state, 0.0) + inside * spent / length
    return shares


def values_by_column(points: Sequence[tuple[float, float | None]], axis: Scale, columns: int) -> list[float | None]:
    """Return, for each column, the mean of its values; a column without values repeats the previous column.

    Columns before the first and after the last value are None.
    """
    sums, counts = [0.0] * columns, [0] * columns
    for at, value in points:
        column = axis.place(at) * columns
        if value is not None and 0 <= column < columns + 1e-6:
            index = min(columns - 1, int(column))
            sums[index] += value
            counts[index] += 1
    last = max((index for index in range(columns) if counts[index]), default=-1)
    means: list[float | None] = []
    for index in range(columns):
        if counts[index]:
            means.append(sums[index] / counts[index])
        else:
            means.append(means[-1] if means and index < last else None)
    return means


LABEL, FIGURE = 12, 11
HIGH, LOW = 6, 3
"""Lines of the stacked columns on a high and on a low terminal."""
COARSE_FROM_SECONDS = 128.0
"""Wall time from which the picture is redrawn less than once a second."""
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


def device_tracks(device: str, readings: Sequence[DeviceReading], axis: Scale) -> list[Track]:
    """Return utilisation, power and memory of a device within the axis, as far as the device reports them."""
    inside = [reading for reading in readings if axis.low - 1 <= reading.monotonic_seconds <= axis.high + 1]
    if not inside:
        return []
    last = inside[-1]
    short = device.replace("cuda:", "gpu:") if len(device) > 6 else device
    values: tuple[tuple[str, Sequence[float | None], float | None, str], ...] = (
        ("util", [reading.utilisation for reading in inside], 1.0, percent(last.utilisation)),
        ("mem", [reading.memory_used_bytes for reading in inside], last.memory_limit_bytes,
         bytes_(last.memory_used_bytes)),
        ("watt", [reading.power_watts for reading in inside], last.power_limit_watts, scaled(last.power_watts, "W")),
    )  # fmt: skip
    times = [reading.monotonic_seconds for reading in inside]
    return [
        Track(f"{short} {label}", tuple(zip(times, shown, strict=True)), high or max(known) or 1.0, figure)
        for label, shown, high, figure in values
        if (known := [value for value in shown if value is not None])
    ]


def array_tracks(arrays: Sequence[ArraysCounted]) -> list[Track]:
    """Return the number of live arrays, and their bytes."""
    if not arrays:
        return []
    times, last = [counted.monotonic_seconds for counted in arrays], arrays[-1]
    return [
        Track(label, tuple(zip(times, map(float, values), strict=True)), max(values) or 1.0, figure, "$better")
        for label, values, figure in (
            ("arrays", [counted.count for counted in arrays], integer(last.count)),
            ("in bytes", [counted.bytes for counted in arrays], bytes_(last.bytes)),
        )
    ]


def over_time(
    sampled: Sequence[ProgramSampled], tracks: Sequence[Track], axis: Scale, width: int, height: int
) -> list[Content]:
    """Return the stacked columns, the ruler below them, and the tracks; all on one axis."""
    columns = max(1, width - LABEL - FIGURE)
    if axis.high <= axis.low or columns < 12:
        return []
    lines = [
        Content.assemble(cell("doing" if row == 0 else "", LABEL, "$text-muted"), drawn)
        for row, drawn in enumerate(state_columns(states_by_column(sampled, axis, columns), height))
    ]
    times = ruler(Scale(0.0, axis.high - axis.low), columns, lambda tick, _: seconds_tick(tick), "╵")
    lines.append(Content.assemble(" " * LABEL, (times, "$quiet")))
    for track in tracks:
        values = values_by_column(track.points, axis, columns)
        lines.append(
            Content.assemble(
                cell(track.label, LABEL, "$text-muted"),
                spark([value and value / track.high for value in values], columns, track.style),
                cell(f" {track.figure}", FIGURE, "bold"),
            )
        )
    return lines


def coarse(wall_seconds: float) -> tuple[int, int]:
    """Return a key that changes each second at first, then each time the wall time has grown by about a hundredth.

    A picture of hours adds up tens of thousands of sample windows, and looks the same a second later.
    """
    step: int = 2 ** max(0, int(math.log2(max(1.0, wall_seconds / COARSE_FROM_SECONDS))))
    return step, int(wall_seconds / step)


class TimePane(Guarded, VerticalScroll, can_focus=True):
    """The pictures over time, then the tables."""

    def compose(self) -> ComposeResult:
        yield Lines(id="over-time")
        yield Lines(id="time-table")
        yield Lines(id="time-more")

    def show(self, session: Session, result: ProgramResult) -> None:
        """Show the time of a program; little is redrawn until more of it was recorded."""
        program = result.run.program
        axis = Scale(result.began_seconds, result.began_seconds + result.wall_seconds)
        tracks = array_tracks(program.arrays if program is not None else ())
        readings = session.readings
        for device in sorted(readings, key=lambda name: (name.startswith("cpu"), name))[:DEVICES]:
            tracks += device_tracks(device, readings[device], axis)
        counted = len(program.arrays) + len(program.transfers) if program is not None else 0
        key = (result.run.id, len(result.sample_windows), counted, result.ended, round(result.wall_seconds))
        high = self.screen.size.height >= 34
        shown = tracks if high else tracks[:4]

        def pictures(width: int) -> list[Content]:
            if not result.sample_windows:
                return []
            return [*over_time(result.sample_windows, shown, axis, width, HIGH if high else LOW), Content("")]

        drawn = (result.run.id, result.ended, high, coarse(result.wall_seconds))
        self.query_one("#over-time", Lines).show(drawn, pictures)
        self.query_one("#time-table", Lines).show(key, lambda width: time_lines(result, width))
        self.query_one("#time-more", Lines).show(
            key, lambda width: [Content(safe(line)) for lines in parts_beside(result, width) for line in ("", *lines)]
        )


def time_lines(result: ProgramResult, width: int) -> list[Content]:
    """Return the time in each state and their sum, each state with its colour in the picture."""
    rows = time_line_rows(result)
    if not rows:
        return [Content.styled("No time was recorded.", "$text-muted")]
    head, *lines = table_lines(Table(TIME_LINE_TEXT[1:], rows), width - 2)
    styles = [state_style(share.state) for share in result.timeline if share.seconds > 0]
    marks = [*(Content.styled("■ ", style) for style in styles), Content("  ")]
    return [Content("  ") + head, *(mark + line for mark, line in zip(marks, lines, strict=True))]
