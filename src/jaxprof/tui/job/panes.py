"""The processes of a job as lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from jaxprof.analysis.programs.loop_time import COMPILE, COPY, DATA, DEVICE, DISPATCH, HOST, part_key
from jaxprof.facts import at
from jaxprof.facts.processes import FIGURES
from jaxprof.text import safe
from jaxprof.tui.kit.format import status_mark
from jaxprof.tui.kit.table_columns import TableColumn, of_column
from jaxprof.tui.kit.table_view import TableView
from jaxprof.units import UNKNOWN, percent_or_less, seconds

if TYPE_CHECKING:
    from jaxprof.analysis.jobs.figures import ProcessFigures
    from jaxprof.analysis.jobs.job import JobFigures
    from jaxprof.tui.kit.table_columns import Cell


Column = TableColumn["ProcessFigures"]
_PARTS = (DATA, HOST, DISPATCH, COPY, COMPILE, DEVICE)
_FIGURES = (("steps_per_second", 8, 3), ("wall_seconds", 8, 4), ("compile_count", 10, 5), ("compiled_again", 12, 5))
"""Facts of a process that are shown as they are, each with its width and priority."""


class ProcessTable(TableView["ProcessFigures"]):
    """A row for each process that could be read: what it is, what the job loses by it, and further columns."""

    EMPTY: ClassVar[str] = "No process."

    def __init__(
        self, host: str, before: Sequence[Column], lost_priority: int, after: Sequence[Column], *, id: str | None = None
    ) -> None:
        """`host` is the title of the hosts; `before` and `after` are the columns around the lost seconds."""
        self._lost_seconds: Mapping[int, float] = {}
        """By process, the seconds that its own work takes more than that of the median process, if that is more than
        chance."""
        self._late: dict[int, set[str]] = {}
        """By process that a finding is about, the parts of its loop that the findings name."""
        super().__init__(
            (
                TableColumn("process", self._index, 9, right=True, sort=at("index")),
                TableColumn(host, lambda row: row.host, 5, most=24, fits=True, sort=at("host")),
                *before,
                TableColumn(
                    "lost", self._lost, 8, right=True, priority=lost_priority, sort=lambda row: -self._lost_of(row)
                ),
                *after,
            ),
            order="process",
            id=id,
        )

    def forget(self) -> None:
        """Prepare for another job, of which nothing is known yet."""
        self.empty = ""
        self.show_rows({})

    def show(self, job: JobFigures, lost_seconds: Mapping[int, float]) -> None:
        """Show the processes of a job, with the seconds that the job loses by each."""
        self._lost_seconds, self._late, self.empty = lost_seconds, {}, self.EMPTY
        for finding in job.findings:
            if finding.code != "failed-after" and finding.index is not None:
                self._late.setdefault(finding.index, set()).add(finding.part)
        self.show_rows({process.index: process for process in job.processes})

    def haystack(self, row: ProcessFigures) -> str:
        return f"{row.index} {row.host} {row.status}"

    def _index(self, row: ProcessFigures) -> Cell:
        return str(row.index), "bold $error" if row.index in self._late else "bold"

    def _lost_of(self, row: ProcessFigures) -> float:
        return self._lost_seconds.get(row.index, 0.0)

    def _lost(self, row: ProcessFigures) -> Cell:
        lost = self._lost_of(row)
        return (seconds(lost), "bold $warning") if lost else (UNKNOWN, "$quiet")


class RankTable(ProcessTable, keys="ranks"):
    """The processes with the parts of their loops, and what they compiled."""

    def __init__(self, *, id: str | None = None) -> None:
        facts = {fact.key: fact for fact in FIGURES}
        super().__init__(
            "on host",
            (
                TableColumn("status", lambda row: status_mark(row.status) + f" {safe(row.status)}", 11, priority=1,
                            sort=at("status")),
            ),
            0,
            (
                *(self._part(part, facts[f"{part_key(part)}_share"].reader()) for part in _PARTS),
                *(of_column(facts[key], width, sorts=True, priority=priority) for key, width, priority in _FIGURES),
            ),
            id=id,
        )  # fmt: skip

    def _part(self, part: str, read: Callable[[ProcessFigures], float | None]) -> TableColumn[ProcessFigures]:
        def draw(row: ProcessFigures) -> Cell:
            words = percent_or_less(read(row)).replace("< ", "<")  # six cells wide, like the other figures
            return words, "bold $worse" if part in self._late.get(row.index, ()) else ""

        return TableColumn(part, draw, max(6, len(part) + 2), right=True, priority=3 * (part == DEVICE), sort=read)
