"""The two lists of the History screen: the measurements, and the points of one of them with what changed between."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType
from textual.content import Content

from jaxprof.analysis.history import HistoryPoint, LibraryHistory, MeasurementHistory
from jaxprof.report.comparison import figure
from jaxprof.report.history import change_text, changed_text, series_name, shares
from jaxprof.tui.history.plot import change_style
from jaxprof.tui.keys import bindings
from jaxprof.tui.kit.drawing import cell, spark
from jaxprof.tui.kit.format import moment, parameters_text
from jaxprof.tui.kit.row_list import RowList
from jaxprof.tui.kit.table_columns import TableColumn
from jaxprof.tui.kit.table_view import TableView
from jaxprof.units import integer, percent, ratio

if TYPE_CHECKING:
    from jaxprof.tui.kit.table_columns import Cell

_TREND = 12


class Measurements(TableView[MeasurementHistory]):
    """One row for each measurement: what it is, its trend, the latest figure, the last change."""

    EMPTY: ClassVar[str] = "No points."
    BINDINGS: ClassVar[list[BindingType]] = bindings("measurements")

    class Entered(RowList.Highlighted):
        """The user wants to go to the points of a measurement."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(
            (
                TableColumn("measurement", self._title, 12, weight=1, fits=True, most=60),
                TableColumn("trend", self._trend, _TREND, priority=2),
                TableColumn("latest", self._latest, 8, right=True, style="bold"),
                TableColumn("change", self._change, 6, right=True, priority=1),
            ),
            id=id,
        )
        self._found: LibraryHistory | None = None
        self._of_all = True

    def show(self, found: LibraryHistory | None, *, of_all: bool) -> None:
        """Shows these measurements, of all workloads or of one; None: none."""
        self._found, self._of_all = found, of_all
        self.show_rows({_identity(one): one for one in (found.series if found is not None else ())})
        self.refresh()

    def _title(self, one: MeasurementHistory) -> str:
        series = self._found.series if self._found is not None else ()
        parts = [one.variant, parameters_text(one.parameters), ", ".join(one.arguments), one.precision]
        if self._of_all:
            parts.insert(0, one.workload)
        if len({(other.device_kind, other.machine) for other in series}) > 1:
            parts += [one.device_kind, one.machine]
        return " ".join(part for part in parts if part)

    def _trend(self, one: MeasurementHistory) -> Content:
        return spark(shares([point.value for point in one.points[-_TREND:]]), _TREND)

    def _latest(self, one: MeasurementHistory) -> str:
        return figure(one.points[-1].value, self._found.unit if self._found is not None else "")

    def _change(self, one: MeasurementHistory) -> Cell:
        if not one.changes:
            return ""
        change = one.changes[-1]
        return ratio(change.ratio), change_style(change)

    def action_enter(self) -> None:
        """Goes to the points of the row under the cursor."""
        if self.keys:
            self.post_message(self.Entered(self, self.cursor))

    def on_row_list_chosen(self, message: RowList.Chosen) -> None:
        self.action_enter()


def _identity(one: MeasurementHistory) -> Hashable:
    return (series_name(one), one.target)


@dataclass(frozen=True, slots=True)
class Between:
    """What is said above a point: a lasting change, or what else is not as at the point before."""

    text: str
    style: str


class Points(TableView[HistoryPoint | Between]):
    """The points of one measurement, the newest last, with the changes between them."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("points")

    class Opened(RowList.Highlighted):
        """The user asked to open the session of a point."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(
            (
                TableColumn("", _of_point(lambda point: ("✗", "$error") if point.wrong else " "), 1),
                TableColumn("when", _of_point(lambda point: moment(point.wall_seconds)), 16),
                TableColumn("session", _of_point(lambda point: point.name), 12, weight=1, most=30, priority=3),
                TableColumn("value", _of_point(self._value), 8, right=True, style="bold"),
                TableColumn("95 %", _of_point(_half_width), 8, right=True, style="$text-muted"),
                TableColumn("launches", _of_point(lambda point: integer(point.launches)), 8, right=True, priority=2),
                TableColumn(
                    "jax",
                    _of_point(lambda point: point.environment.get("jax", "-")),
                    8,
                    priority=1,
                    style="$text-muted",
                ),
            ),
            id=id,
        )
        self._unit = ""

    def show(self, found: LibraryHistory | None, one: MeasurementHistory | None) -> None:
        """Shows the points of a measurement, with the cursor on the newest; None: none."""
        rows: dict[Hashable, HistoryPoint | Between] = {}
        if found is not None and one is not None:
            self._unit = found.unit
            for number, point in enumerate(one.points):
                for part, words in enumerate(_between(found, one, point) if number else ()):
                    rows[number, part] = words
                rows[number] = point
        self.show_rows(rows)
        self.refresh()
        if rows:
            self.move_to(self.count - 1)

    @property
    def point(self) -> HistoryPoint | None:
        """The point under the cursor."""
        row = self.current_row
        return row if isinstance(row, HistoryPoint) else None

    def whole_line(self, row: HistoryPoint | Between, width: int) -> Content | None:
        return cell(f" {row.text}", width, row.style) if isinstance(row, Between) else None

    def action_open(self) -> None:
        """Opens the session of the point under the cursor."""
        if self.point is not None:
            self.post_message(self.Opened(self, self.cursor))

    def on_row_list_chosen(self, message: RowList.Chosen) -> None:
        self.action_open()

    def _value(self, point: HistoryPoint) -> str:
        return figure(point.value, self._unit)


def _of_point(read: Callable[[HistoryPoint], Cell]) -> Callable[[HistoryPoint | Between], Cell]:
    return lambda row: read(row) if isinstance(row, HistoryPoint) else ""


def _half_width(point: HistoryPoint) -> str:
    if point.low is None or point.high is None or not point.value:
        return "-"
    return f"± {percent((point.high - point.low) / 2 / point.value)}"


def _between(found: LibraryHistory, one: MeasurementHistory, point: HistoryPoint) -> list[Between]:
    change = next((change for change in one.changes if change.first == point), None)
    words: list[Between] = []
    if change is not None:
        words.append(Between(f"══ {change_text(found, change)}", change_style(change)))
    changed = changed_text(change.changed if change is not None else point.changed)
    if changed:
        words.append(Between(f" · {changed}", "$text-muted"))
    return words
