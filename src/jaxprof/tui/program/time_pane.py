"""Where a program's time went: its states over time, devices and arrays on the same axis, and the tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.containers import VerticalScroll
from textual.content import Content

from jaxprof.analysis.programs.result import states_by_column
from jaxprof.report.recording.tables import TIME_LINE, time_line_rows
from jaxprof.report.recording.text import parts_beside
from jaxprof.report.renderers import Table, report_lines
from jaxprof.text import safe
from jaxprof.tui.kit.canvas import Scale, ruler
from jaxprof.tui.kit.guard import Guarded
from jaxprof.tui.kit.picture import Lines
from jaxprof.tui.kit.plots import seconds_tick
from jaxprof.tui.kit.program_summary import state_columns, state_style
from jaxprof.tui.kit.table_columns import table_lines

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from jaxprof.analysis.programs.result import ProgramResult
    from jaxprof.events import ProgramSampled


HIGH, LOW = 6, 3
"""Lines of the stacked columns on a high and on a low terminal."""
COARSE_FROM_SECONDS = 128.0
"""Wall time from which the picture is redrawn less than once a second."""


def over_time(sampled: Sequence[ProgramSampled], axis: Scale, width: int, height: int) -> list[Content]:
    """Return the stacked columns, and the ruler below them."""
    if axis.high <= axis.low:
        return []
    times = ruler(Scale(0.0, axis.high - axis.low), width, lambda tick, _: seconds_tick(tick), "╵")
    return [
        *state_columns(states_by_column(sampled, axis.low, axis.high, width), height),
        Content.styled(times, "$quiet"),
    ]


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

    def show(self, result: ProgramResult) -> None:
        """Show the time of a program; little is redrawn until more of it was recorded."""
        program = result.run.program
        axis = Scale(result.began_seconds, result.began_seconds + result.wall_seconds)
        counted = len(program.arrays) + len(program.transfers) if program is not None else 0
        key = (result.run.id, len(result.sample_windows), counted, result.ended, round(result.wall_seconds))
        height = HIGH if self.screen.size.height >= 34 else LOW

        def pictures(width: int) -> list[Content]:
            return (
                [*over_time(result.sample_windows, axis, width - 1, height), Content("")]
                if result.sample_windows
                else []
            )

        drawn = (result.run.id, result.ended, height, coarse(result.wall_seconds))
        self.query_one("#over-time", Lines).show(drawn, pictures)
        self.query_one("#time-table", Lines).show(key, lambda width: time_lines(result, width))


def time_lines(result: ProgramResult, width: int) -> list[Content]:
    """Return the time in each state and their sum, each state with its colour in the picture, then the other tables."""
    rows = time_line_rows(result)
    more = [Content(safe(line)) for part in parts_beside(result) for line in ("", *report_lines(part, width))]
    if not rows:
        return [Content.styled("No time was recorded.", "$text-muted"), *more]
    head, *lines = table_lines(Table(TIME_LINE[1:], rows), width - 2)
    styles = [state_style(share.state) for share in result.timeline if share.seconds > 0]
    marks = [*(Content.styled("■ ", style) for style in styles), Content("  ")]
    return [Content("  ") + head, *(mark + line for mark, line in zip(marks, lines, strict=True)), *more]
