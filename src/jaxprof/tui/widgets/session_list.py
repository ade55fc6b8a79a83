"""Kept sessions as rows: short on Home, a table on Sessions. Entries are read elsewhere, in a thread."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content

from jaxprof import units
from jaxprof.tui.ago import ago, moment
from jaxprof.tui.widgets.drawing import cell
from jaxprof.tui.widgets.row_list import RowList

if TYPE_CHECKING:
    from jaxprof.store import Entry


class SessionList(RowList):
    """One row a session, the newest first."""

    EMPTY = "Nothing was run yet."
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "Open", tooltip="Open this session", id="sessions.open"),
    ]

    class Opened(RowList.Highlighted):
        """A session shall be opened."""

    def __init__(self, *, id: str | None = None, now: Callable[[], float] | None = None) -> None:
        super().__init__(id=id)
        self._entries: dict[Path, Entry] = {}
        self._now = now
        self._wanted: Path | None = None

    def show_entries(self, entries: Sequence[Entry]) -> None:
        """Shows these sessions."""
        self._entries = {entry.path: entry for entry in entries}
        self.set_keys(list(self._entries))
        if self._wanted is not None:
            self.move_to_key(self._wanted)
            self._wanted = None

    def follow(self, path: Path) -> None:
        """Puts the cursor on that session once it is listed."""
        self._wanted = path

    @property
    def entry(self) -> Entry | None:
        """The session under the cursor."""
        current = self.current
        return self._entries.get(current) if isinstance(current, Path) else None

    def draw_row(self, index: int, width: int) -> Content:
        entry = self._entries.get(self.keys[index])  # type: ignore[call-overload]
        if entry is None:
            return Content("")
        when = cell(ago(entry.modified_seconds, self._now() if self._now else None), 11, "$text-muted")
        end = state(entry)
        names = ", ".join(entry.workloads) or (entry.problem or "no runs")
        room = width - 11 - end.cell_length - 3
        return Content.assemble(" ", when, cell(names, max(1, room)), " ", end, " ")

    def action_open(self) -> None:
        """Opens the session under the cursor."""
        if self.keys:
            self.post_message(self.Opened(self, self.cursor))

    def on_row_list_chosen(self, message: RowList.Chosen) -> None:
        self.action_open()


class SessionTable(SessionList):
    """The same with columns: for the Sessions screen."""

    def draw_header(self, width: int) -> Content | None:
        name, workloads, host = self._widths(width)
        return Content.assemble(
            " ",
            cell("name", name),
            " ",
            cell("when", self._when_width(width)),
            cell("workloads", workloads),
            " ",
            cell("host", host) + Content(" ") if host else "",
            cell("runs", 10, right=True),
            cell("size", 9, right=True),
            " ",
            cell("state", 7),
        )

    def draw_row(self, index: int, width: int) -> Content:
        entry = self._entries.get(self.keys[index])  # type: ignore[call-overload]
        if entry is None:
            return Content("")
        name, workloads, host = self._widths(width)
        words = ", ".join(entry.workloads) or entry.problem or "no runs"
        shown_host = entry.header.host if entry.header is not None else units.UNKNOWN
        return Content.assemble(
            " ",
            cell(entry.name, name, "bold"),
            " ",
            cell(self._when(entry, width), self._when_width(width), "$text-muted"),
            cell(words, workloads, "$warning" if entry.problem else ""),
            " ",
            cell(shown_host, host, "$text-muted") + Content(" ") if host else "",
            _right(counts(entry), 10),
            cell(units.bytes_(entry.size_bytes), 9, "$text-muted", right=True),
            " ",
            life(entry),
        )

    def _widths(self, width: int) -> tuple[int, int, int]:
        """Of name, workloads and host; the host only where there is room for it."""
        rest = width - self._when_width(width) - 10 - 9 - 8 - 3
        host = 14 if rest >= 70 else 0
        rest -= host + 1 if host else 0
        name = max(12, min(28, rest * 2 // 3))
        return name, max(4, rest - name), host

    def _when_width(self, width: int) -> int:
        return 17 if width >= 100 else 12

    def _when(self, entry: Entry, width: int) -> str:
        if width >= 100:
            return moment(entry.modified_seconds)
        return ago(entry.modified_seconds, self._now() if self._now else None)


def counts(entry: Entry) -> Content:
    """How many runs went well, and how many did not: `5 ✓ 1 ✗`."""
    by_status = Counter(closed.status for closed in entry.closed)
    well = by_status["ok"]
    bad = sum(by_status.values()) - well
    parts = [Content.styled(f"{well} ✓", "$success" if well else "$quiet")]
    if bad:
        parts.append(Content.styled(f" {bad} ✗", "$error"))
    return Content.assemble(*parts)


def state(entry: Entry) -> Content:
    """Runs, or what is unusual about the file."""
    if entry.problem:
        return Content.styled("refused", "$warning")
    if entry.live:
        return Content.styled("● live", "$success")
    return counts(entry)


def life(entry: Entry) -> Content:
    """`live` while somebody writes it, `torn` where the writer did not end in good order."""
    if entry.problem:
        return cell("refused", 7, "$warning")
    if entry.live:
        return cell("● live", 7, "$success")
    return cell("whole", 7, "$quiet") if entry.complete else cell("torn", 7, "$warning")


def _right(content: Content, width: int) -> Content:
    return Content(" " * max(0, width - content.cell_length)) + content
