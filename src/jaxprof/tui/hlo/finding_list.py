"""Findings and barriers of a program: what costs time, why kernels are not fused, and the facts about each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType
from textual.content import Content
from textual.message import Message

from jaxprof.text import columns, safe, shorten, shorten_middle
from jaxprof.tui.hlo.kernel_detail import figure_fact, kind_of, reason_words, source_facts
from jaxprof.tui.keys import bindings
from jaxprof.tui.kit.drawing import bar, cell
from jaxprof.tui.kit.fact_list import FactLine, FactTarget, heading, paragraph
from jaxprof.tui.kit.row_list import RowList
from jaxprof.tui.kit.table_columns import Drawing, Row, TableColumn
from jaxprof.tui.kit.table_view import TableView
from jaxprof.units import bytes_, counted

if TYPE_CHECKING:
    from jaxprof.hlo.analysis.barriers import Barrier
    from jaxprof.hlo.analysis.findings.finding import HloFinding
    from jaxprof.tui.hlo.modules import OpenedModule

_MOST_PLACES = 200
"""Places of a finding that are listed."""


class KernelNoteList(TableView[Row]):
    """The base of both lists: rows about kernels, the most expensive first."""

    NOTHING: ClassVar[tuple[str, str, str]] = ("", "", "")
    """The text of an empty list: for a whole module, for part of one, and for one before XLA's passes."""
    BINDINGS: ClassVar[list[BindingType]] = bindings("kernel_notes")

    class Entered(Message):
        """Requests the kernel of a row, by computation (empty if unknown) and name."""

        def __init__(self, computation: str, name: str) -> None:
            super().__init__()
            self.computation = computation
            self.name = name

    def __init__(self, columns: Sequence[TableColumn[Row]], *, id: str | None = None) -> None:
        super().__init__(columns, id=id)
        self.explain_empty(whole=True, optimised=True)

    def explain_empty(self, *, whole: bool, optimised: bool) -> None:
        """Chooses the text of an empty list: an incomplete module allows no conclusion."""
        self.EMPTY = self.NOTHING[0 if whole else 1 if optimised else 2]  # type: ignore[misc]

    def show(self, rows: Sequence[Row]) -> None:
        """Shows the rows of another program."""
        self.show_rows(dict(enumerate(rows)))

    def kernel_of(self, row: Row) -> tuple[str, str]:
        """The computation and name of a row's kernel; empty if there is none."""
        raise NotImplementedError

    def action_enter(self) -> None:
        """Goes to the kernel of the row."""
        row = self.current_row
        computation, name = self.kernel_of(row) if row is not None else ("", "")
        if name:
            self.post_message(self.Entered(computation, name))

    def on_row_list_chosen(self, message: RowList.Chosen) -> None:
        self.action_enter()


class FindingList(KernelNoteList["HloFinding"]):
    """One row per finding."""

    NOTHING = (
        "No findings.",
        "No findings in what was read.",
        "No finding that shows before XLA's passes.",
    )

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(
            (
                TableColumn("finding", lambda finding: finding.code.replace("-", " "), 12, most=24, fits=True,
                            style="bold $accent", gap=2),
                TableColumn("what", lambda finding: finding.message, 1, weight=1),
                TableColumn("bytes", lambda finding: bytes_(finding.bytes) if finding.bytes is not None else "", 5,
                            most=9, fits=True, right=True, style="$text-muted"),
            ),
            id=id,
        )  # fmt: skip

    def haystack(self, row: HloFinding) -> str:
        return f"{row.code} {row.message}"

    def kernel_of(self, row: HloFinding) -> tuple[str, str]:
        return "", row.where[0] if row.where else ""


class BarrierList(KernelNoteList["Barrier"]):
    """One row per barrier, the one that costs the most bytes first."""

    NOTHING = (
        "No array goes from one kernel to another.",
        "No barriers in what was read.",
        "Unknown: XLA's passes, which fuse kernels, have not run on this module.",
    )

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(
            (
                TableColumn("would save", self._saving, 16),
                TableColumn("written by", lambda barrier: _name(barrier.producer), 8, weight=1),
                TableColumn("", lambda barrier: "→", 1, style="$quiet"),
                TableColumn("read by", lambda barrier: _name(barrier.consumer), 8, weight=1),
                TableColumn("reason", lambda barrier: barrier.reason.replace("-", " "), 18, style="$accent"),
            ),
            id=id,
        )
        self._most = 1

    def show(self, rows: Sequence[Barrier]) -> None:
        self._most = max((barrier.bytes for barrier in rows), default=1) or 1
        super().show(rows)

    def haystack(self, row: Barrier) -> str:
        return f"{row.producer} {row.consumer} {row.reason.replace('-', ' ')}"

    def kernel_of(self, row: Barrier) -> tuple[str, str]:
        return row.computation, row.consumer

    def _saving(self, barrier: Barrier) -> Content:
        return bar(barrier.bytes / self._most, 6) + cell(bytes_(barrier.bytes), 10, right=True)


def _name(kernel: str) -> Drawing:
    return lambda width: Content(shorten_middle(kernel, width))


# -- the facts about one ----------------------------------------------------------------------------------------------


def barrier_facts(opened: OpenedModule, barrier: Barrier, width: int) -> list[FactLine]:
    """Everything about a barrier."""
    facts = [
        FactLine(Content.styled(barrier.reason.replace("-", " "), "bold $accent")),
        *paragraph(reason_words(barrier), width),
        heading("The array"),
        FactLine(Content.styled(shorten(str(barrier.shape), width), "$code-number")),
        figure_fact("would save", f"{bytes_(barrier.bytes)} a run (estimate)"),
    ]
    for label, name in (("Written by", barrier.producer), ("Read by", barrier.consumer)):
        facts.append(heading(label))
        same_name = [kernel for kernel in opened.kernels or () if kernel.name == name]
        kernel = next(
            (kernel for kernel in same_name if kernel.computation == barrier.computation),
            next(iter(same_name), None),
        )
        if kernel is None:
            facts.append(FactLine(Content(shorten(name, width))))
            continue
        facts.append(FactLine(Content(shorten(name, width)), FactTarget(kernel.computation, name, kernel=True)))
        facts.append(FactLine(Content.styled(shorten(kind_of(kernel), width), "$secondary")))
        if kernel.source is not None:
            facts += source_facts(kernel.source, width, opened.program.recorded_seconds, around=0)
    return facts


def finding_facts(opened: OpenedModule, finding: HloFinding, width: int) -> list[FactLine]:
    """Everything about a finding."""
    facts = [
        FactLine(Content.styled(finding.code.replace("-", " "), "bold $accent")),
        *paragraph(finding.message, width),
        heading("What to do"),
        *paragraph(finding.advice, width),
    ]
    if finding.bytes is not None:
        facts.append(figure_fact("bytes", f"{bytes_(finding.bytes)} a run (estimate)"))
    facts.append(heading("Where", counted(len(finding.where), "place")))
    wanted = frozenset(finding.where[:_MOST_PLACES])
    by_name = {kernel.name: kernel for kernel in opened.kernels or () if kernel.name in wanted}
    for name in finding.where[:_MOST_PLACES]:
        kernel = by_name.get(name)
        place = kernel.source if kernel is not None else None
        where = f"{place.file.rpartition('/')[2]}:{place.line}" if place is not None else ""
        target = FactTarget(kernel.computation, name, kernel=True) if kernel is not None else None
        named = cell(name, max(8, width - columns(where) - 2))
        facts.append(FactLine(Content.assemble(named, " ", (safe(where), "$code-name")), target))
    return facts
