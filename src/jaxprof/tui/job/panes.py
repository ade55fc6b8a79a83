"""What is below the findings of a job: its steps as a heat map, its processes as a table. The stylesheet decides which
are displayed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual.containers import Container, Vertical
from textual.content import Content
from textual.widget import Widget

from jaxprof.analysis.programs.verdict import COMPILE, COPY, DATA, DEVICE, DISPATCH, HOST, part_key
from jaxprof.facts.processes import FIGURES
from jaxprof.report.hosts import ARRIVALS, ArrivalRow, arrival_table
from jaxprof.text import safe
from jaxprof.tui.job.heat_map import LINES_AROUND, JobMap, MapProcess
from jaxprof.tui.kit.format import status_mark
from jaxprof.tui.kit.guard import Guarded, on
from jaxprof.tui.kit.row_list import RowList
from jaxprof.tui.kit.table_columns import TableColumn, of_column
from jaxprof.tui.kit.table_view import Heading, TableView, TextRow
from jaxprof.tui.kit.threads import in_thread
from jaxprof.units import UNKNOWN, bytes_, counted, percent, percent_or_less, scaled, seconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult

    from jaxprof.analysis.arrivals import Arrivals
    from jaxprof.analysis.jobs.figures import ProcessFigures
    from jaxprof.analysis.jobs.findings import CollectiveFigures
    from jaxprof.analysis.jobs.job import BesideOthers, JobFigures
    from jaxprof.analysis.jobs.step_grid import Standing
    from jaxprof.tui.job.reading import JobInView
    from jaxprof.tui.kit.table_columns import Cell


class ArrivalTable(TableView[ArrivalRow]):
    """One row for each process that captured the collective."""

    EMPTY: ClassVar[str] = "No captures of the same steps. script -n 4 --capture-steps 100 takes them."

    def __init__(self, *, id: str | None = None) -> None:
        layout = ((9, 0), (14, 0), (8, 0), (18, 1), (20, 0), (18, 1), (12, 2))
        shown = zip(ARRIVALS, layout, strict=True)
        columns = [of_column(column, width, sorts=True, priority=priority) for column, (width, priority) in shown]
        super().__init__(columns, order="process", id=id)

    def show(self, seen: Arrivals | None) -> None:
        """Shows who arrives last; None: no captures."""
        self.show_rows({row.index: row for row in arrival_table(seen).rows} if seen is not None else {})


def arrivals_title(seen: Arrivals | None, exchanges: Sequence[CollectiveFigures] = ()) -> str:
    """The collective, how often it was seen, what the exchange itself took, and how much was moved how fast."""
    if seen is None:
        return "Arrivals"
    given = next((each for each in exchanges if each.name == seen.name and each.bus_bytes_per_second), None)
    moved = ""
    if given is not None and given.exchanged is not None:
        moved = f", {bytes_(given.exchanged.bytes)} at {scaled(given.bus_bytes_per_second, 'B/s')}"
        if given.possible_bytes_per_second is not None:
            moved += f" of {scaled(given.possible_bytes_per_second, 'B/s')}"
    exchange = seconds(seen.exchange_seconds)
    return f"{seen.name}: {counted(seen.instances, 'execution')}, the exchange itself {exchange}{moved}"


def clock_note(seen: Arrivals | None) -> str:
    """How sure the clocks are."""
    return f"its clock: ahead of the first one's, ± {seconds(seen.uncertain_seconds)}" if seen is not None else ""


_STANDS_OUT = 0.05
"""Of the loop."""


@dataclass(frozen=True)
class BesideRow:
    """One line: a part, or a function."""

    name: str
    here: str = ""
    others: str = ""
    more: str = ""
    note: str = ""
    worse: bool = False


def rows_of(found: BesideOthers) -> dict[Hashable, BesideRow | Heading]:
    """The parts of the loop, then what was compiled again."""
    rows: dict[Hashable, BesideRow | Heading] = {}
    if found.parts is None:
        rows["parts"] = TextRow(" Too little was seen of its loop, or of any other.")
    for part in found.parts or ():
        rows["part", part.part] = BesideRow(
            part.part,
            percent(part.share),
            percent(part.others_share),
            seconds(part.more_seconds) if part.more_seconds > 0 else "",
            part.where.short() if part.where else "",
            part.share - part.others_share >= _STANDS_OUT and part.part != "device",
        )
    again = counted(len(found.compiled), "function") if found.compiled else "nothing"
    rows["again"] = TextRow(f" It compiled {again} again; others: the most that any of them did")
    for each in found.compiled:
        rows["compiled", each.function, each.called_from] = BesideRow(
            each.function,
            f"{each.count}×",
            f"{each.others_most}×",
            seconds(each.seconds),
            each.reason,
            each.count >= 2 * each.others_most + 2,
        )
    return rows


class BesideTable(TableView[BesideRow]):
    """What distinguishes a process."""

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

    def show(self, found: BesideOthers | None) -> None:
        """Shows a process beside the others; None: nothing."""
        self.show_rows(rows_of(found) if found is not None else {})


def _styled(name: str) -> Callable[[BesideRow], Cell]:
    def read(row: BesideRow) -> Cell:
        text: str = getattr(row, name)
        return (text, "bold $worse") if row.worse and name in ("here", "more") else text

    return read


_PARTS = (DATA, HOST, DISPATCH, COPY, COMPILE, DEVICE)
_FIGURES = (("steps_per_second", 8, 3), ("wall_seconds", 8, 4), ("compile_count", 10, 5), ("compiled_again", 7, 5))
"""Facts of a process that are shown as they are, each with its width and priority."""


class RankTable(TableView["ProcessFigures"], keys="ranks"):
    """One row for each process that could be read."""

    EMPTY: ClassVar[str] = "No process."

    def __init__(self, *, id: str | None = None) -> None:
        self._lost_seconds: Mapping[int, float] = {}
        """By process: what its own work takes more than that of the median process, if that is more than chance."""
        self._late: dict[int, set[str]] = {}
        """By process that a finding is about: the parts of its loop that it names."""
        facts = {fact.key: fact for fact in FIGURES}
        super().__init__(
            (
                TableColumn("process", self._who, 9, right=True, sort=lambda row: row.index),
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
        """Shows the processes of a job, with what the job lost by each."""
        self._lost_seconds, self._late = lost_seconds, {}
        for finding in job.findings:
            if finding.code != "failed-after" and finding.index is not None:
                self._late.setdefault(finding.index, set()).add(finding.part)
        self.show_rows({process.index: process for process in job.processes})

    def _part(self, part: str, read: Callable[[ProcessFigures], float | None]) -> TableColumn[ProcessFigures]:
        def draw(row: ProcessFigures) -> Cell:
            words = percent_or_less(read(row)).replace("< ", "<")  # six cells, as all others
            return words, "bold $worse" if part in self._late.get(row.index, ()) else ""

        return TableColumn(part, draw, max(6, len(part) + 2), right=True, priority=3 * (part == DEVICE), sort=read)

    def _who(self, row: ProcessFigures) -> Cell:
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
"""Views that share a place of a large terminal, where the steps have their own."""


_LEAST = 10


class JobPanes(Guarded, Container):
    """A box for each view."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._found: JobInView | None = None
        self._beside: tuple[object, ...] = ()
        """What is shown beside the others."""
        self._asked: tuple[object, ...] = ()
        """The steps that were asked for last."""

    def compose(self) -> ComposeResult:
        widgets: tuple[Widget, ...] = (
            JobMap(id="map"),
            RankTable(id="ranks"),
            BesideTable(id="beside"),
            ArrivalTable(id="arrivals"),
        )
        for name, widget in zip(VIEWS, widgets, strict=True):
            with Vertical(id=f"{name}-box", classes="box") as box:
                box.border_title = VIEWS[name]
                yield widget

    @property
    def map(self) -> JobMap:
        """The heat map."""
        return self.query_one(JobMap)

    def forget(self) -> None:
        """Prepares for another job."""
        self._found, self._asked, self._beside = None, (), ()
        self.map.forget()
        self.query_one(RankTable).show_rows({})

    def show(self, found: JobInView) -> None:
        """Shows the current figures of a job."""
        first, self._found = self._found is None, found
        self.query_one(RankTable).show(found.figures, found.lost_seconds)
        self.query_one(ArrivalTable).show(found.figures.arrivals)
        self._show_processes()
        if first:
            self._go_to_worst(found)
        self._show_beside()
        self._make_steps()
        self._show_sums()

    def _go_to_worst(self, found: JobInView) -> None:
        """Moves the cursor to the process that a finding is about, the most expensive first; else to that which loses
        most."""
        costs = {
            each.index: each.seconds or 0.0
            for each in found.figures.findings
            if each.code != "failed-after" and each.index is not None
        }
        costs = costs or dict(found.lost_seconds)
        if costs:
            self._follow(max(costs, key=lambda index: costs[index]))

    def _follow(self, index: int | None) -> None:
        """Has the cursor of both views on that process."""
        if index is not None:
            self.query_one(RankTable).move_to_key(index)
            if self.map.browse.process != index:
                self.map.go_to(index)

    @on(JobMap.Moved)
    def _moved_on_map(self) -> None:
        if self.map.has_focus:
            self._follow(self.map.browse.process)
        self._show_beside()
        self._show_sums()

    @on(RowList.Highlighted, "#ranks")
    def _moved_in_table(self) -> None:
        rank = self.query_one(RankTable).current_row
        if rank is not None and self.query_one(RankTable).has_focus:
            self._follow(rank.index)
        self._show_beside()

    def _show_beside(self) -> None:
        """Shows the process under the cursor beside the others."""
        rank, found = self.query_one(RankTable).current_row, self._found
        index = rank.index if rank is not None else None
        key = (id(found), index)
        if found is None or index is None or key == self._beside:
            return
        from jaxprof.analysis.jobs.job import beside_others

        self._beside = key
        self.query_one(BesideTable).show(beside_others(found.figures.processes, index))
        self._frame("beside", f"Process {index} on {safe(found.host_of(index))} beside the median of the others", "")

    def show_filtered(self) -> None:
        """Shows on the map only the processes that the filter leaves in the table."""
        self._show_processes()
        self._show_sums()

    def _show_processes(self) -> None:
        found = self._found
        if found is None:
            return
        accused = {finding.index for finding in found.figures.findings if finding.code != "failed-after"}
        rows = self.query_one(RankTable)
        shown = set(rows.left_by_filter())
        self.map.show_processes(
            [
                MapProcess(each.index, each.host, found.lost_seconds.get(each.index, 0.0), each.index in accused)
                for each in found.figures.processes
                if each.index in shown
            ]
        )

    # -- steps ------------------------------------------------------------------------------------------------

    @on(JobMap.Wanted)
    def _make_steps(self) -> None:
        """Makes the steps in view, in a thread; of several that are asked for, the last is shown."""
        found, view = self._found, self.map
        if found is None or not view.size.width:
            return
        first, last = view.browse.wanted
        wanted = (id(found), view.columns, first, last, view.values_of)
        if wanted == self._asked:
            return
        self._asked, columns, values_of = wanted, view.columns, view.values_of

        def show(seen: Standing) -> None:
            if wanted == self._asked:  # no others since
                self.map.show_steps(seen, whole=first is None)

        in_thread(self, lambda: found.steps(columns, first, last, values_of), "steps", then=show)

    def share_height(self, *, both: bool) -> None:
        """Gives the map the lines that its rows need where another view is below it; else all."""
        box = self.query_one("#map-box")
        if both and self._found is not None:
            most = max(_LEAST, self.size.height // 2)
            box.styles.height = min(most, len(self._found.figures.processes) + LINES_AROUND + 2)
        else:
            box.styles.clear_rule("height")

    # -- frames -----------------------------------------------------------------------------------------------

    @on(RankTable.Sorted)
    def _show_sums(self) -> None:
        """Shows the titles, the orders, and how many rows are hidden."""
        rows = self.query_one(RankTable)
        words = [f"{rows.hidden} hidden"] if rows.hidden else []
        self._frame("ranks", VIEWS["ranks"], " · ".join(filter(None, [*words, rows.order_in_words])))
        self._frame("map", self.map.title, self.map.note)
        seen = self._found.figures.arrivals if self._found is not None else None
        exchanges = self._found.figures.collectives if self._found is not None else ()
        self._frame("arrivals", safe(arrivals_title(seen, exchanges)), clock_note(seen))

    def _frame(self, name: str, title: str, subtitle: str) -> None:
        box = self.query_one(f"#{name}-box")
        for which, text in (("border_title", title), ("border_subtitle", subtitle)):
            if str(getattr(box, which) or "") != text:
                setattr(box, which, Content(text))

    def process_at(self, index: int | None) -> ProcessFigures | None:
        """The figures of a process; None if it is not there."""
        processes = self._found.figures.processes if self._found is not None else ()
        return next((each for each in processes if each.index == index), None)
