"""What is below the findings of a job: its steps as a heat map, its processes as a table. The stylesheet decides which
are displayed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.containers import Container, Vertical
from textual.content import Content
from textual.message import Message
from textual.widget import Widget

from jaxprof.text import safe
from jaxprof.tui.job.arrival_table import ArrivalTable, arrivals_title, clock_note
from jaxprof.tui.job.beside_table import BesideTable
from jaxprof.tui.job.browse import MapProcess
from jaxprof.tui.job.heat_map import LINES_AROUND, JobMap
from jaxprof.tui.job.rank_table import RankTable
from jaxprof.tui.kit.guard import Guarded, on
from jaxprof.tui.kit.row_list import RowList
from jaxprof.tui.kit.threads import in_thread

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from jaxprof.analysis.jobs.figures import ProcessFigures
    from jaxprof.analysis.jobs.standing import Standing
    from jaxprof.tui.job.reading import JobInView

VIEWS = {"map": "Steps", "ranks": "Processes", "beside": "Beside the others", "arrivals": "Arrivals"}
MAIN = ("ranks", "beside", "arrivals")
"""Views that share a place of a large terminal, where the steps have their own."""


_LEAST = 10


class JobPanes(Guarded, Container):
    """A box for each view."""

    class StepsMade(Message):
        """A thread has made the steps to show."""

        def __init__(self, found: JobInView, seen: Standing, wanted: tuple[object, ...], *, whole: bool) -> None:
            super().__init__()
            self.found = found
            self.seen = seen
            self.wanted = wanted
            self.whole = whole

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._found: JobInView | None = None
        self._only = ""
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
        rank = self.query_one(RankTable).rank
        if rank is not None and self.query_one(RankTable).has_focus:
            self._follow(rank.figures.index)
        self._show_beside()

    def _show_beside(self) -> None:
        """Shows the process under the cursor beside the others."""
        rank, found = self.query_one(RankTable).rank, self._found
        index = rank.figures.index if rank is not None else None
        key = (id(found), index)
        if found is None or index is None or key == self._beside:
            return
        from jaxprof.analysis.jobs.beside import beside_others

        self._beside = key
        self.query_one(BesideTable).show(beside_others(found.figures.processes, index))
        self._frame("beside", f"Process {index} on {safe(found.host_of(index))} beside the median of the others", "")

    def set_filter(self, text: str) -> None:
        """Shows only processes with all these words."""
        self._only = text
        self.query_one(RankTable).set_filter(text)
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

        def make() -> None:
            seen = found.steps(columns, first, last, values_of)
            self.post_message(self.StepsMade(found, seen, wanted, whole=first is None))

        in_thread(self, make, "steps")

    def on_job_panes_steps_made(self, message: StepsMade) -> None:
        """Shows the steps, unless others are wanted since."""
        if message.wanted == self._asked:
            self.map.show_steps(message.seen, whole=message.whole)

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
