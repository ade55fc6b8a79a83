"""One process of a job beside the others: the parts of its loop against the median, what it compiled again alone."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual.content import Content

from jaxprof.text import safe
from jaxprof.tui.kit.drawing import cell
from jaxprof.tui.kit.table_columns import TableColumn
from jaxprof.tui.kit.table_view import TableView
from jaxprof.units import counted, percent, seconds

if TYPE_CHECKING:
    from jaxprof.analysis.jobs.beside import BesideOthers
    from jaxprof.tui.kit.table_columns import Cell

_STANDS_OUT = 0.05
"""Of the loop."""


@dataclass(frozen=True)
class BesideRow:
    """One line: a part, a function, or a heading."""

    name: str
    here: str = ""
    others: str = ""
    more: str = ""
    note: str = ""
    worse: bool = False
    heading: bool = False


def rows_of(found: BesideOthers) -> dict[Hashable, BesideRow]:
    """The parts of the loop, then what was compiled again."""
    rows: dict[Hashable, BesideRow] = {}
    if found.parts is None:
        rows["parts"] = BesideRow("Too little was seen of its loop, or of any other.", heading=True)
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
    rows["again"] = BesideRow(f"It compiled {again} again; others: the most that any of them did", heading=True)
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

    def whole_line(self, row: BesideRow, width: int) -> Content | None:
        return cell(f" {safe(row.name)}", width, "$text-muted") if row.heading else None


def _styled(name: str) -> Callable[[BesideRow], Cell]:
    def read(row: BesideRow) -> Cell:
        text: str = getattr(row, name)
        return (text, "bold $worse") if row.worse and name in ("here", "more") else text

    return read
