"""Findings and barriers of a program as lists: what is worth looking at, and why kernels are not one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message

from jaxprof.tui.widgets.drawing import bar, cell
from jaxprof.tui.widgets.kernel_table import middle
from jaxprof.tui.widgets.row_list import RowList
from jaxprof.units import bytes_

if TYPE_CHECKING:
    from jaxprof.hlo.analysis import Barrier, Finding


class RemarkList(RowList):
    """The base of both: rows that can be filtered, the largest first."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "enter", "Kernel", tooltip="To the kernel that it speaks of", id="remarks.enter"),
    ]

    class Entered(Message):
        """The kernel of a row is to be shown: computation (empty where it is not said) and name."""

        def __init__(self, remarks: RemarkList, computation: str, name: str) -> None:
            super().__init__()
            self.remarks = remarks
            self.computation = computation
            self.name = name

        @property
        def control(self) -> RemarkList:
            return self.remarks

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._only = ""

    def set_filter(self, text: str) -> None:
        """Shows only rows with all these words."""
        self._only = text.casefold()
        self.fill()

    def fill(self) -> None:
        """Lists the rows that pass the filter."""
        words = self._only.split()
        self.set_keys([number for number in range(self.total) if all(word in self.haystack(number) for word in words)])

    @property
    def total(self) -> int:
        """All rows, also those that the filter hides."""
        return 0

    def haystack(self, number: int) -> str:
        """The words of a row, without capitals."""
        return ""

    def about(self, number: int) -> tuple[str, str]:
        """The kernel that a row speaks of: computation and name; empty where there is none."""
        return "", ""

    @property
    def _number(self) -> int | None:
        return self.current if isinstance(self.current, int) else None

    def action_enter(self) -> None:
        """To the kernel."""
        if self._number is not None:
            computation, name = self.about(self._number)
            if name:
                self.post_message(self.Entered(self, computation, name))

    def on_row_list_chosen(self, message: RowList.Chosen) -> None:
        self.action_enter()


class FindingList(RemarkList):
    """One row a finding."""

    EMPTY = "Nothing to remark."

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._findings: Sequence[Finding] = ()

    def show_findings(self, findings: Sequence[Finding]) -> None:
        """Shows the findings of another program."""
        self._findings = findings
        self.fill()

    @property
    def finding(self) -> Finding | None:
        """The one under the cursor."""
        return self._findings[self._number] if self._number is not None else None

    @property
    def total(self) -> int:
        return len(self._findings)

    def haystack(self, number: int) -> str:
        finding = self._findings[number]
        return f"{finding.code} {finding.message}".casefold()

    def about(self, number: int) -> tuple[str, str]:
        where = self._findings[number].where
        return "", where[0] if where else ""

    def draw_header(self, width: int) -> Content | None:
        room = width - 2 - 24 - 1 - 10
        return Content.assemble(
            " ", cell("finding", 24), " ", cell("what", max(1, room)), cell("bytes", 10, right=True)
        )

    def draw_row(self, index: int, width: int) -> Content:
        key = self.keys[index]
        assert isinstance(key, int)
        finding = self._findings[key]
        room = width - 2 - 24 - 1 - 10
        size = bytes_(finding.bytes) if finding.bytes is not None else ""
        return Content.assemble(
            " ",
            cell(finding.code.replace("-", " "), 24, "bold $accent"),
            " ",
            cell(finding.message, max(1, room)),
            cell(size, 10, "$text-muted", right=True),
        )


class BarrierList(RemarkList):
    """One row a barrier, those that cost most bytes first."""

    EMPTY = "No array goes from one kernel to another."

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._barriers: Sequence[Barrier] = ()
        self._most = 1

    def show_barriers(self, barriers: Sequence[Barrier]) -> None:
        """Shows the barriers of another program."""
        self._barriers = barriers
        self._most = max((barrier.bytes for barrier in barriers), default=1) or 1
        self.fill()

    @property
    def barrier(self) -> Barrier | None:
        """The one under the cursor."""
        return self._barriers[self._number] if self._number is not None else None

    @property
    def total(self) -> int:
        return len(self._barriers)

    def haystack(self, number: int) -> str:
        barrier = self._barriers[number]
        return f"{barrier.producer} {barrier.consumer} {barrier.reason.replace('-', ' ')}".casefold()

    def about(self, number: int) -> tuple[str, str]:
        barrier = self._barriers[number]
        return barrier.computation, barrier.consumer

    def _widths(self, width: int) -> tuple[int, int]:
        reason = 18
        return max(8, (width - 6 - 9 - 2 - 3 - reason - 2) // 2), reason

    def draw_header(self, width: int) -> Content | None:
        name, reason = self._widths(width)
        return Content.assemble(
            " ", cell("would save", 16), " ", cell("written by", name), "   ", cell("read by", name), " ",
            cell("reason", reason),
        )  # fmt: skip

    def draw_row(self, index: int, width: int) -> Content:
        key = self.keys[index]
        assert isinstance(key, int)
        barrier = self._barriers[key]
        name, reason = self._widths(width)
        return Content.assemble(
            " ",
            bar(barrier.bytes / self._most, 6),
            cell(bytes_(barrier.bytes), 10, right=True),
            " ",
            cell(middle(barrier.producer, name), name),
            (" → ", "$quiet"),
            cell(middle(barrier.consumer, name), name),
            " ",
            cell(barrier.reason.replace("-", " "), reason, "$accent"),
        )
