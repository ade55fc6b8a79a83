"""The processes of a job as rows: where each spends the time of its loop, and how it ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType
from textual.content import Content

from jaxprof.analysis.programs.verdict import COMPILE, COPY, DATA, DEVICE, DISPATCH, HOST
from jaxprof.text import safe
from jaxprof.tui.keys import bindings
from jaxprof.tui.kit.format import status_mark
from jaxprof.tui.kit.row_list import RowList
from jaxprof.tui.kit.table_columns import TableColumn
from jaxprof.tui.kit.table_view import TableView
from jaxprof.units import UNKNOWN, integer, percent, percent_or_less, scaled, seconds

if TYPE_CHECKING:
    from jaxprof.analysis.jobs.figures import ProcessFigures
    from jaxprof.analysis.jobs.job import JobFigures
    from jaxprof.tui.kit.table_columns import Cell


@dataclass(frozen=True)
class Rank:
    """One process, as a row."""

    figures: ProcessFigures
    late_parts: frozenset[str]
    """The parts of its loop that a finding is about."""
    accused: bool
    """Whether a finding is about it."""
    lost_seconds: float
    """What its own work takes more than that of the median process; 0 where that is not more than chance."""
    lost_share: float | None
    """Of what all processes lose; None if nobody loses any."""


def _share(part: str) -> Callable[[Rank], float | None]:
    def read(rank: Rank) -> float | None:
        return rank.figures.shares[part] if rank.figures.shares is not None else None

    return read


def _part(part: str, title: str, priority: int = 0) -> TableColumn[Rank]:
    read = _share(part)

    def draw(rank: Rank) -> Cell:
        words = percent_or_less(read(rank)).replace("< ", "<")  # six cells, as all others
        return words, "bold $worse" if part in rank.late_parts else ""

    return TableColumn(title, draw, max(6, len(title) + 2), right=True, priority=priority, sort=read)


def _status(rank: Rank) -> Cell:
    status = rank.figures.status
    return Content.assemble(status_mark(status), " ", safe(status))


def _name(rank: Rank) -> Cell:
    return str(rank.figures.index), "bold $error" if rank.accused else "bold"


def _lost(rank: Rank) -> Cell:
    return (seconds(rank.lost_seconds), "bold $warning") if rank.lost_seconds else (UNKNOWN, "$quiet")


def _lost_share(rank: Rank) -> Cell:
    return percent(rank.lost_share) if rank.lost_seconds else (UNKNOWN, "$quiet")


class RankTable(TableView[Rank]):
    """One row for each process that could be read."""

    EMPTY: ClassVar[str] = "No process."
    BINDINGS: ClassVar[list[BindingType]] = bindings("ranks")

    class Opened(RowList.Highlighted):
        """The user wants to see a process."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(
            (
                TableColumn("process", _name, 9, right=True, sort=lambda rank: rank.figures.index),
                TableColumn("on host", lambda rank: rank.figures.host, 8, weight=1, most=30, fits=True,
                            sort=lambda rank: rank.figures.host),
                TableColumn("status", _status, 11, priority=1, sort=lambda rank: rank.figures.status),
                TableColumn("lost", _lost, 8, right=True, sort=lambda rank: rank.lost_seconds),
                TableColumn("share", _lost_share, 6, right=True, priority=2, sort=lambda rank: rank.lost_seconds),
                _part(DATA, "data"),
                _part(HOST, "host"),
                _part(DISPATCH, "dispatch"),
                _part(COPY, "copy"),
                _part(COMPILE, "compile"),
                _part(DEVICE, "device", 3),
                TableColumn("steps/s", lambda rank: scaled(rank.figures.steps_per_second), 8, right=True, priority=3,
                            sort=lambda rank: rank.figures.steps_per_second),
                TableColumn("wall", lambda rank: seconds(rank.figures.wall_seconds), 8, right=True, priority=4,
                            sort=lambda rank: rank.figures.wall_seconds),
                TableColumn("compiled", lambda rank: integer(rank.figures.compile_count), 10, right=True, priority=5,
                            sort=lambda rank: rank.figures.compile_count),
                TableColumn("again", lambda rank: integer(rank.figures.compiled_again), 7, right=True, priority=5,
                            sort=lambda rank: rank.figures.compiled_again),
            ),
            order="process",
            id=id,
        )  # fmt: skip

    def show(self, job: JobFigures, lost_seconds: Mapping[int, float]) -> None:
        """Shows the processes of a job, with what the job lost by each."""
        about: dict[int, set[str]] = {}
        for finding in job.findings:
            if finding.code != "failed-after" and finding.index is not None:
                about.setdefault(finding.index, set()).add(finding.part)
        everything = sum(lost_seconds.values())
        self.show_rows(
            {
                process.index: Rank(
                    process,
                    frozenset(about.get(process.index, ())),
                    process.index in about,
                    lost := lost_seconds.get(process.index, 0.0),
                    lost / everything if everything else None,
                )
                for process in job.processes
            }
        )

    @property
    def rank(self) -> Rank | None:
        """The process under the cursor."""
        return self.current_row

    def action_open(self) -> None:
        """Opens the session of the process under the cursor."""
        if self.keys:
            self.post_message(self.Opened(self, self.cursor))

    def on_row_list_chosen(self, message: RowList.Chosen) -> None:
        message.stop()
        self.action_open()
