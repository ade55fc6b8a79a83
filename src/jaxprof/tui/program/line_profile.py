"""Where a program's time went: the lines, with their states and their text if the file can be read here; and its states
over time, devices and arrays on the same axis, and the tables.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from textual.containers import VerticalScroll
from textual.content import Content

from jaxprof.analysis.flame import PICOSECONDS
from jaxprof.analysis.programs.result import states_by_column
from jaxprof.events import SourceLocation
from jaxprof.grouping import grouped, totals
from jaxprof.report.program import TIME_LINE, parts_beside, time_line_rows
from jaxprof.report.renderers import Table
from jaxprof.text import columns, safe
from jaxprof.tui.keys import key_of
from jaxprof.tui.kit.canvas import Scale, ruler
from jaxprof.tui.kit.dialogs import TextDialog
from jaxprof.tui.kit.drawing import bar, hang
from jaxprof.tui.kit.format import place_in_full, place_text
from jaxprof.tui.kit.guard import Guarded
from jaxprof.tui.kit.picture import Lines
from jaxprof.tui.kit.plots import seconds_tick
from jaxprof.tui.kit.program_summary import state_columns, state_style, state_title
from jaxprof.tui.kit.table_columns import Drawing, TableColumn, report_contents, table_lines
from jaxprof.tui.kit.table_view import TableView
from jaxprof.tui.kit.time_tree import TimeNode
from jaxprof.units import percent, seconds

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from jaxprof.analysis.flame import FlameFrame, FlameGraph
    from jaxprof.analysis.programs.result import LineTime, ProgramResult
    from jaxprof.events import ProgramSampled


@dataclass(frozen=True, slots=True)
class HotLine:
    """A source line, with the time spent there in each state."""

    where: SourceLocation
    seconds: float
    states: tuple[tuple[str, float], ...]
    """State and seconds, the longest first."""
    call: str
    """The call that took most of the time in the line; empty if none was sampled."""


def hottest(lines: Iterable[LineTime], most: int) -> list[HotLine]:
    """Return the lines that took the most time, the longest first."""
    found = []
    for place, spent in grouped((line.place, line) for line in lines).items():
        states = _longest_first((line.state, line.seconds) for line in spent)
        calls = _longest_first((line.call, line.seconds) for line in spent if line.call)
        found.append(HotLine(place, sum(took for _, took in states), states, calls[0][0] if calls else ""))
    return sorted(found, key=lambda line: -line.seconds)[:most]


def _longest_first(times: Iterable[tuple[str, float]]) -> tuple[tuple[str, float], ...]:
    """Return the total of each name, the longest first."""
    return tuple(sorted(totals(times).items(), key=lambda total: -total[1]))


def nested(graph: FlameGraph, directory: str) -> TimeNode | None:
    """Return the lines under the loops and lines that led to them, the longest first; None if no time was recorded."""

    def node(frame: FlameFrame) -> TimeNode:
        name, file, line = frame.at
        where = SourceLocation(file, line) if file else None
        own, state = frame.own / PICOSECONDS, name.strip("[]").replace(" ", "_")
        inside = tuple(node(inner) for inner in frame.inside if inner.total)
        note = place_text(where, directory) if where is not None else ""
        return TimeNode(name, frame.total / PICOSECONDS, own, frame.count, inside, note, state_style(state), where)

    return node(graph.root) if graph.root.total else None


MOST = 200
"""Most lines listed; the rest took almost no time."""


class HotLineList(TableView["HotLine"], keys="hot_lines"):
    """One row per line, the longest first. Source that does not fit in its cell stands below the row."""

    UNFOLDS = True
    STAYS_ON_TOP = True
    _result: ProgramResult
    """The program whose lines are shown."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(
            (
                TableColumn("time", lambda line: seconds(line.seconds), 8, right=True, style="bold"),
                TableColumn("of all", self._share, 6, right=True, style="$text-muted", gap=2),
                TableColumn("", self._bar, 11, priority=1),
                TableColumn("main cost", _main_cost, 15, style="$text-muted"),
                TableColumn("line", lambda line: place_text(line.where, self._result.directory), 12, weight=3, most=29,
                            style="$primary", cut="start"),
                TableColumn("source", _source, 24, weight=4),
            ),
            id=id,
        )  # fmt: skip
        self._longest = 1.0

    def show(self, result: ProgramResult) -> None:
        """Show the lines of a program that took the most time."""
        self._result, lines = result, hottest(result.lines, MOST)
        self._longest = (lines[0].seconds if lines else 0.0) or 1.0
        self.show_rows({line.where: line for line in lines})

    def haystack(self, row: HotLine) -> str:
        states = " ".join(state_title(state) for state, _ in row.states)
        return f"{place_in_full(row.where)} {row.call} {states}"

    def below(self, index: int, width: int) -> list[Content]:
        line = self.row(self.key_at(index))
        source = _source(line) if line is not None else ""
        (place,) = self._placed(width)[-1:] or (None,)
        shown = place.width if place is not None and place.column.title == "source" else 0
        return hang(Content(" " * 4), source, width - 1, "$text-muted") if columns(safe(source)) > shown else []

    def _share(self, line: HotLine) -> str:
        return percent(self._result.of_wall(line.seconds))

    def _bar(self, line: HotLine) -> Drawing:
        style = state_style(line.states[0][0] if line.states else "")
        return lambda width: bar(line.seconds / self._longest, width, style, track="")


def _main_cost(line: HotLine) -> str:
    """Return the state that took most of the time there, with its share if there were several."""
    state, spent = line.states[0] if line.states else ("", 0.0)
    share = f" {percent(spent / line.seconds)}" if len(line.states) > 1 and line.seconds else ""
    return state_title(state) + share


def _source(line: HotLine) -> str:
    """Return the text of the line if its file can be read here, else the call that took most of its time."""
    lines = _lines_around(line.where, 0)
    return (lines[0][1].strip() if lines else "") or line.call


def _lines_around(where: SourceLocation, around: int) -> Sequence[tuple[int, str]]:
    """Return the numbered lines of the file at `where`; none if it has no line, or its file cannot be read here."""
    from jaxprof.hlo.analysis.origin import HloSourceLocation
    from jaxprof.tui.kit.python_source import excerpt

    return excerpt(HloSourceLocation(where.file, where.line), around).lines if where.line is not None else ()


AROUND = 200
"""Lines above and below that the reader can scroll to."""


class SourceLines(TextDialog, keys="source"):
    """Shows the source around a line."""

    CLASSES = "dialog help source-lines"

    def __init__(self, place: SourceLocation) -> None:
        super().__init__(place_in_full(place), keys=f"{key_of('source.copy')} copies the place")
        self._place = place
        self._lines = _lines_around(replace(place, line=place.line or 1), AROUND)

    def on_mount(self) -> None:
        box = self.query_one(VerticalScroll)
        index = next((at for at, (number, _) in enumerate(self._lines) if number == self._place.line), 0)
        self.call_after_refresh(lambda: box.scroll_to(y=max(0, index - box.size.height // 2), animate=False))

    def lines(self, width: int) -> list[Content]:
        if not self._lines:
            words = f"{self._place.text} cannot be read here: the file may be on another machine, or have moved."
            return [Content.styled(safe(words), "$text-muted")]
        from jaxprof.tui.kit.python_source import numbered

        return numbered(self._lines, self._place.line, width)

    def action_copy(self) -> None:
        self.copy(self._place.text)


# -- over time ------------------------------------------------------------------------------------------------

HIGH, LOW = 6, 3
"""Lines of the stacked columns on a high and on a low terminal."""


def over_time(sampled: Sequence[ProgramSampled], axis: Scale, width: int, height: int) -> list[Content]:
    """Return the stacked columns, and the ruler below them."""
    if axis.high <= axis.low:
        return []
    times = ruler(Scale(0.0, axis.high - axis.low), width, lambda tick, _: seconds_tick(tick), "╵")
    return [
        *state_columns(states_by_column(sampled, axis.low, axis.high, width), height),
        Content.styled(times, "$quiet"),
    ]


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

        # A picture of hours adds up many windows: drawn again each time the wall time has grown by a fiftieth.
        drawn = (result.run.id, result.ended, height, int(50 * math.log1p(result.wall_seconds)))
        self.query_one("#over-time", Lines).show(drawn, pictures)
        self.query_one("#time-table", Lines).show(key, lambda width: time_lines(result, width))


def time_lines(result: ProgramResult, width: int) -> list[Content]:
    """Return the time in each state and their sum, each state with its colour in the picture, then the other tables."""
    rows = time_line_rows(result)
    more = [line for part in parts_beside(result) for line in report_contents(("", *part), width)]
    if not rows:
        return [Content.styled("No time was recorded.", "$text-muted"), *more]
    head, *lines = table_lines(Table(TIME_LINE[1:], rows), width - 2)
    styles = [state_style(share.state) for share in result.timeline if share.seconds > 0]
    marks = [*(Content.styled("■ ", style) for style in styles), Content("  ")]
    return [Content("  ") + head, *(mark + line for mark, line in zip(marks, lines, strict=True)), *more]
