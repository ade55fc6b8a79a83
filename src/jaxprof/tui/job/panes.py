"""Lists of a job: its processes, one process beside the others, and arrivals at a collective."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual.content import Content

from jaxprof.analysis.programs.loop_time import COMPILE, COPY, DATA, DEVICE, DISPATCH, HOST, part_key
from jaxprof.facts.processes import FIGURES
from jaxprof.report.hosts import arrival_table
from jaxprof.text import safe
from jaxprof.tui.kit.format import status_mark
from jaxprof.tui.kit.table_columns import TableColumn, of_column
from jaxprof.tui.kit.table_view import Heading, ReportList, TableView, TextRow
from jaxprof.units import UNKNOWN, counted, percent, percent_or_less, seconds

if TYPE_CHECKING:
    from jaxprof.analysis.arrivals import Arrivals
    from jaxprof.analysis.jobs.figures import ProcessFigures
    from jaxprof.analysis.jobs.job import JobFigures, ProcessComparison
    from jaxprof.tui.kit.table_columns import Cell


class ArrivalTable(ReportList):
    """One row for each process that captured the collective."""

    EMPTY: ClassVar[str] = "No captures of the same steps. Use jaxprof script -n 4 --capture-steps 100."

    def show(self, seen: Arrivals | None) -> None:
        """Show which process arrives last; None if there are no captures."""
        table = arrival_table(seen) if seen is not None else None
        rows = dict(zip(seen.indices, table.rows, strict=True)) if seen is not None and table is not None else {}
        self.show_table(table, rows)


_MARKED_SHARE = 0.05
"""A part is marked if its share of the loop exceeds that of the other processes by this much."""


@dataclass(frozen=True)
class BesideRow:
    """One line of the comparison: a part of the loop, or a compiled function."""

    name: str
    here: str
    others: str
    more: str
    note: str
    worse: bool


def rows_of(comparison: ProcessComparison) -> dict[Hashable, BesideRow | Heading]:
    """Return the parts of the loop, then the functions that were compiled again."""
    rows: dict[Hashable, BesideRow | Heading] = {}
    if comparison.parts is None:
        rows["parts"] = TextRow(" Too few samples of its loop, or of the other loops.")
    for part in comparison.parts or ():
        more = seconds(part.more_seconds) if part.more_seconds > 0 else ""
        worse = part.share - part.others_share >= _MARKED_SHARE and part.part != DEVICE
        where = part.where.short() if part.where else ""
        rows["part", part.part] = BesideRow(
            part.part, percent(part.share), percent(part.others_share), more, where, worse
        )
    again = f"{counted(len(comparison.compiled), 'function')}; others: the most in any other process"
    rows["again"] = TextRow(f" Recompiled: {again if comparison.compiled else 'nothing'}")
    for function, most in comparison.compiled:
        worse = function.count >= 2 * most + 2
        rows["compiled", function.function, function.called_from] = BesideRow(
            function.function, f"{function.count}×", f"{most}×", seconds(function.seconds), function.reason, worse
        )
    return rows


class BesideTable(TableView[BesideRow]):
    """Compares a process with the others."""

    EMPTY: ClassVar[str] = "No process."

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(
            (
                TableColumn("", lambda row: row.name, 10, most=34, fits=True),
                TableColumn("here", lambda row: (row.here, _style(row)), 8, right=True),
                TableColumn("others", lambda row: row.others, 8, right=True, style="$text-muted"),
                TableColumn("more", lambda row: (row.more, _style(row)), 9, right=True),
                TableColumn("", lambda row: row.note, 12, weight=1, style="$text-muted"),
            ),
            id=id,
        )


def _style(row: BesideRow) -> str:
    return "bold $worse" if row.worse else ""


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


def _status(row: ProcessFigures) -> Cell:
    return Content.assemble(status_mark(row.status), " ", safe(row.status))
