"""The views below the findings of a job: its steps as a heat map, its processes as a table, a comparison of one process
with the others, and arrivals at collectives. The stylesheet decides which are displayed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual.containers import Container, Vertical
from textual.content import Content
from textual.widget import Widget

from jaxprof.analysis.programs.loop_time import COMPILE, COPY, DATA, DEVICE, DISPATCH, HOST, part_key
from jaxprof.facts.processes import FIGURES
from jaxprof.report.hosts import arrival_table
from jaxprof.text import safe
from jaxprof.tui.job.heat_map import JobMap, MapLine, legend
from jaxprof.tui.kit.format import status_mark
from jaxprof.tui.kit.guard import Guarded, on
from jaxprof.tui.kit.picture import Lines
from jaxprof.tui.kit.row_list import RowList
from jaxprof.tui.kit.table_columns import TableColumn, of_column
from jaxprof.tui.kit.table_view import Heading, ReportList, TableView, TextRow
from jaxprof.tui.kit.threads import in_thread
from jaxprof.units import UNKNOWN, bytes_, counted, percent, percent_or_less, scaled, seconds

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from jaxprof.analysis.arrivals import Arrivals
    from jaxprof.analysis.jobs.figures import ProcessFigures
    from jaxprof.analysis.jobs.job import JobFigures, ProcessComparison
    from jaxprof.analysis.jobs.step_grid import StepGrid
    from jaxprof.tui.job.reading import JobInView
    from jaxprof.tui.kit.table_columns import Cell


class ArrivalTable(ReportList):
    """One row for each process that captured the collective."""

    EMPTY: ClassVar[str] = "No captures of the same steps. Use jaxprof script -n 4 --capture-steps 100."

    def show(self, seen: Arrivals | None) -> None:
        """Show which process arrives last; None if there are no captures."""
        table = arrival_table(seen) if seen is not None else None
        self.show_table(table, {row.index: row for row in table.rows} if table is not None else {})


def arrivals_title(seen: Arrivals | None) -> str:
    """Return the title of the arrivals: the collective, its executions, the time of the exchange itself, its bytes
    and rate."""
    if seen is None:
        return "Arrivals"
    moved = ""
    if seen.exchanged is not None and seen.bus_bytes_per_second:
        moved = f", {bytes_(seen.exchanged.bytes)} at {scaled(seen.bus_bytes_per_second, 'B/s')}"
        if seen.possible_bytes_per_second is not None:
            moved += f" of {scaled(seen.possible_bytes_per_second, 'B/s')}"
    exchange = seconds(seen.exchange_seconds)
    return f"{seen.name}: {counted(seen.instances, 'execution')}, the exchange itself {exchange}{moved}"


def clock_note(seen: Arrivals | None) -> str:
    """Return what the column `its clock` means and its uncertainty, for the frame."""
    return f"its clock: offset from the first process, ± {seconds(seen.uncertain_seconds)}" if seen is not None else ""


_MARKED_SHARE = 0.05
"""A part is marked if its share of the loop exceeds that of the other processes by this much."""


@dataclass(frozen=True)
class BesideRow:
    """One line of the comparison: a part of the loop, or a compiled function."""

    name: str
    here: str = ""
    others: str = ""
    more: str = ""
    note: str = ""
    worse: bool = False


def rows_of(comparison: ProcessComparison) -> dict[Hashable, BesideRow | Heading]:
    """Return the parts of the loop, then the functions that were compiled again."""
    rows: dict[Hashable, BesideRow | Heading] = {}
    if comparison.parts is None:
        rows["parts"] = TextRow(" Too few samples of its loop, or of the other loops.")
    for part in comparison.parts or ():
        rows["part", part.part] = BesideRow(
            part.part,
            percent(part.share),
            percent(part.others_share),
            seconds(part.more_seconds) if part.more_seconds > 0 else "",
            part.where.short() if part.where else "",
            part.share - part.others_share >= _MARKED_SHARE and part.part != "device",
        )
    again = f"{counted(len(comparison.compiled), 'function')}; others: the most in any other process"
    rows["again"] = TextRow(f" Recompiled: {again if comparison.compiled else 'nothing'}")
    for compiled in comparison.compiled:
        rows["compiled", compiled.function, compiled.called_from] = BesideRow(
            compiled.function,
            f"{compiled.count}×",
            f"{compiled.others_most}×",
            seconds(compiled.seconds),
            compiled.reason,
            compiled.count >= 2 * compiled.others_most + 2,
        )
    return rows


class BesideTable(TableView[BesideRow]):
    """Compares a process with the others."""

    EMPTY: ClassVar[str] = "No process."

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(
            (
                TableColumn("", _styled("name"), 10, most=34, fits=True),
                TableColumn("here", _styled("here"), 8, right=True),
                TableColumn("others", _styled("others"), 8, right=True, style="$text-muted"),
                TableColumn("more", _styled("more"), 9, right=True),
                TableColumn("", lambda row: row.note, 12, weight=1, style="$text-muted"),
            ),
            id=id,
        )

    def show(self, comparison: ProcessComparison | None) -> None:
        """Show a process beside the others; None shows nothing."""
        self.show_rows(rows_of(comparison) if comparison is not None else {})


def _styled(name: str) -> Callable[[BesideRow], Cell]:
    def read(row: BesideRow) -> Cell:
        text: str = getattr(row, name)
        return (text, "bold $worse") if row.worse and name in ("here", "more") else text

    return read


_PARTS = (DATA, HOST, DISPATCH, COPY, COMPILE, DEVICE)
_FIGURES = (("steps_per_second", 8, 3), ("wall_seconds", 8, 4), ("compile_count", 10, 5), ("compiled_again", 12, 5))
"""Facts of a process that are shown as they are, each with its width and priority."""


class RankTable(TableView["ProcessFigures"], keys="ranks"):
    """One row for each process that could be read."""

    EMPTY: ClassVar[str] = "No process."

    def __init__(self, *, id: str | None = None) -> None:
        self._lost_seconds: Mapping[int, float] = {}
        """By process, the seconds that its own work takes more than that of the median process, if that is more than
        chance."""
        self._late: dict[int, set[str]] = {}
        """By process that a finding is about, the parts of its loop that the findings name."""
        facts = {fact.key: fact for fact in FIGURES}
        super().__init__(
            (
                TableColumn("process", self._index, 9, right=True, sort=lambda row: row.index),
                TableColumn("on host", lambda row: row.host, 8, weight=1, most=30, fits=True,
                            sort=lambda row: row.host),
                TableColumn("status", _status, 11, priority=1, sort=lambda row: row.status),
                TableColumn("lost", self._lost, 8, right=True, sort=self._lost_of),
                TableColumn("share", self._lost_share, 6, right=True, priority=2, sort=self._lost_of),
                *(self._part(part, facts[f"{part_key(part)}_share"].reader()) for part in _PARTS),
                *(of_column(facts[key], width, sorts=True, priority=priority) for key, width, priority in _FIGURES),
            ),
            order="process",
            id=id,
        )  # fmt: skip

    def show(self, job: JobFigures, lost_seconds: Mapping[int, float]) -> None:
        """Show the processes of a job, with the seconds that the job loses by each."""
        self._lost_seconds, self._late = lost_seconds, {}
        for finding in job.findings:
            if finding.code != "failed-after" and finding.index is not None:
                self._late.setdefault(finding.index, set()).add(finding.part)
        self.show_rows({process.index: process for process in job.processes})

    def _part(self, part: str, read: Callable[[ProcessFigures], float | None]) -> TableColumn[ProcessFigures]:
        def draw(row: ProcessFigures) -> Cell:
            words = percent_or_less(read(row)).replace("< ", "<")  # six cells wide, like the other figures
            return words, "bold $worse" if part in self._late.get(row.index, ()) else ""

        return TableColumn(part, draw, max(6, len(part) + 2), right=True, priority=3 * (part == DEVICE), sort=read)

    def _index(self, row: ProcessFigures) -> Cell:
        return str(row.index), "bold $error" if row.index in self._late else "bold"

    def _lost_of(self, row: ProcessFigures) -> float:
        return self._lost_seconds.get(row.index, 0.0)

    def _lost(self, row: ProcessFigures) -> Cell:
        lost = self._lost_of(row)
        return (seconds(lost), "bold $warning") if lost else (UNKNOWN, "$quiet")

    def _lost_share(self, row: ProcessFigures) -> Cell:
        lost = self._lost_of(row)
        return percent(lost / sum(self._lost_seconds.values())) if lost else (UNKNOWN, "$quiet")


def _status(row: ProcessFigures) -> Cell:
    return Content.assemble(status_mark(row.status), " ", safe(row.status))


VIEWS = {"map": "Steps", "ranks": "Processes", "beside": "Beside the others", "arrivals": "Arrivals"}
MAIN = ("ranks", "beside", "arrivals")
"""Views that share one place on a large terminal, where the map has its own."""


_LEAST_LINES = 10
"""Least height of the map while another view is below it."""
_LINES_AROUND = 6
"""Lines of the map that are no rows: its axis, the facts and the legend below, and the frame."""


class JobPanes(Guarded, Container):
    """A box for each view."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._job: JobInView | None = None
        self._requested: tuple[object, ...] = ()
        """Key of the grid that was requested last."""

    def compose(self) -> ComposeResult:
        widgets: dict[str, tuple[Widget, ...]] = {
            "map": (JobMap(id="map"), Lines(id="map-facts"), Lines(id="map-legend")),
            "ranks": (RankTable(id="ranks"),),
            "beside": (BesideTable(id="beside"),),
            "arrivals": (ArrivalTable("after the others", "waits for others", "its clock", id="arrivals"),),
        }
        for name, inside in widgets.items():
            with Vertical(id=f"{name}-box", classes="box") as box:
                box.border_title = VIEWS[name]
                yield from inside

    @property
    def map(self) -> JobMap:
        """The heat map."""
        return self.query_one(JobMap)

    def forget(self) -> None:
        """Prepare for another job."""
        self._job, self._requested = None, ()
        self.map.forget()
        self.query_one(RankTable).show_rows({})

    def show(self, job: JobInView) -> None:
        """Show the current figures of a job."""
        first, self._job = self._job is None, job
        self.query_one(RankTable).show(job.figures, job.lost_seconds)
        self.query_one(ArrivalTable).show(job.figures.arrivals)
        self.show_filtered()
        if first:
            self.map.show_worst_first()
            self._go_to_worst(job)
        self._show_comparison()
        self._make_steps()

    def _go_to_worst(self, job: JobInView) -> None:
        """Move the cursor to the process that a finding is about, the most expensive first; else to that which loses
        most."""
        costs = {
            finding.index: finding.seconds or 0.0
            for finding in job.figures.findings
            if finding.code != "failed-after" and finding.index is not None
        }
        costs = costs or dict(job.lost_seconds)
        if costs:
            self._follow(max(costs, key=lambda index: costs[index]))

    def _follow(self, index: int | None) -> None:
        """Move the cursor of both views to that process."""
        if index is not None:
            self.query_one(RankTable).move_to_key(index)
            if self.map.process != index:
                self.map.go_to(index)

    @on(JobMap.Moved)
    @on(RowList.Highlighted, "#map")
    def _map_cursor_moved(self) -> None:
        if self.map.has_focus:
            self._follow(self.map.process)
        self._show_sums()

    @on(RowList.Highlighted, "#ranks")
    def _table_cursor_moved(self) -> None:
        ranks = self.query_one(RankTable)
        if ranks.current_row is not None and ranks.has_focus:
            self._follow(ranks.current_row.index)
        self._show_comparison()

    def _show_comparison(self) -> None:
        """Show the process under the cursor beside the others."""
        rank, job = self.query_one(RankTable).current_row, self._job
        if job is None or rank is None:
            return
        from jaxprof.analysis.jobs.job import compare_with_others

        self.query_one(BesideTable).show(compare_with_others(job.figures.processes, rank.index))
        self._frame("beside", f"Process {rank.index} on {safe(rank.host)} beside the median of the others", "")

    def show_filtered(self) -> None:
        """Show on the map only the processes that the filter leaves in the table."""
        job = self._job
        if job is None:
            return
        accused = {finding.index for finding in job.figures.findings if finding.code != "failed-after"}
        shown = set(self.query_one(RankTable).left_by_filter())
        self.map.show_processes(
            [
                MapLine(index, process.host, job.lost_seconds.get(index, 0.0), index in accused, (index,))
                for process in job.figures.processes
                if (index := process.index) in shown
            ]
        )
        self._show_sums()

    # -- steps ------------------------------------------------------------------------------------------------

    @on(JobMap.StepsRequested)
    def _make_steps(self) -> None:
        """Make the grid of the steps in view, in a thread; only the grid requested last is shown."""
        job, view = self._job, self.map
        if job is None or not view.size.width:
            return
        first, last = view.browse.requested
        requested = (id(job), view.columns, first, last, view.values_of)
        if requested == self._requested:
            return
        self._requested, columns, values_of = requested, view.columns, view.values_of

        def show(grid: StepGrid) -> None:
            if requested == self._requested:  # no other grid was requested since
                view.show_steps(grid, whole=first is None)

        in_thread(self, lambda: job.steps(columns, first, last, values_of), "steps", then=show)

    def share_height(self, *, both: bool) -> None:
        """Give the map only the lines that its rows need while another view is below it, else all."""
        box = self.query_one("#map-box")
        if both and self._job is not None:
            most = max(_LEAST_LINES, self.size.height // 2)
            box.styles.height = min(most, len(self._job.figures.processes) + _LINES_AROUND)
        else:
            box.styles.clear_rule("height")

    # -- frames -----------------------------------------------------------------------------------------------

    @on(TableView.Sorted)
    def _show_sums(self) -> None:
        """Show what is under the cursor of the map, the titles, the orders, and how many rows are hidden."""
        rows, view, job = self.query_one(RankTable), self.map, self._job
        facts, count = view.facts, len(job.figures.processes) if job is not None else 0
        self.query_one("#map-facts", Lines).show(facts, lambda width: Content.styled(facts, "bold").wrap(width)[:2])
        self.query_one("#map-legend", Lines).show(count, lambda width: [legend(count)] if count else [])
        words = [f"{rows.hidden} hidden"] if rows.hidden else []
        self._frame("ranks", VIEWS["ranks"], " · ".join(filter(None, [*words, rows.order_in_words])))
        self._frame("map", view.title, view.note)
        seen = job.figures.arrivals if job is not None else None
        self._frame("arrivals", safe(arrivals_title(seen)), clock_note(seen))

    def _frame(self, name: str, title: str, subtitle: str) -> None:
        box = self.query_one(f"#{name}-box")
        for which, text in (("border_title", title), ("border_subtitle", subtitle)):
            if str(getattr(box, which) or "") != text:
                setattr(box, which, Content(text))

    def process_at(self, index: int | None) -> ProcessFigures | None:
        """Return the figures of a process; None if it is not there."""
        processes = self._job.figures.processes if self._job is not None else ()
        return next((process for process in processes if process.index == index), None)
