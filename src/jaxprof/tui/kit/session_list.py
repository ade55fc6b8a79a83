"""Saved sessions, and jobs, as rows: short on Home, a table on Sessions. A thread reads the entries elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from textual.content import Content

from jaxprof import units
from jaxprof.tui.kit.format import ago, moment
from jaxprof.tui.kit.table_columns import TableColumn, either
from jaxprof.tui.kit.table_view import TableView

if TYPE_CHECKING:
    from jaxprof.session.log import Entry


class SessionList(TableView["Entry"], keys="session_list"):
    """One row per session, newest first: when, what, and how many runs failed."""

    EMPTY = "No sessions yet."

    def __init__(
        self,
        columns: Sequence[TableColumn[Entry]] = (),
        *,
        titles: bool = False,
        id: str | None = None,
        now: Callable[[], float] | None = None,
    ) -> None:
        super().__init__(columns or self._short(), titles=titles, id=id)
        self._now = now
        self._wanted: Path | None = None

    def _short(self) -> tuple[TableColumn[Entry], ...]:
        return (
            TableColumn("when", self.when, 11, style="$text-muted", gap=0),
            TableColumn("workloads", workloads, 7, weight=1),
            TableColumn("runs", state, 4, most=13, fits=True, right=True),
        )

    def when(self, entry: Entry) -> str:
        """`3 min ago`."""
        return ago(entry.modified_seconds, self._now() if self._now else None)

    def show_entries(self, entries: Sequence[Entry]) -> None:
        """Shows these sessions."""
        self.show_rows({entry.path: entry for entry in entries})
        if self._wanted is not None:
            self.move_to_key(self._wanted)
            self._wanted = None

    def follow(self, path: Path) -> None:
        """Moves the cursor to that session once it is listed."""
        self._wanted = path


class SessionTable(SessionList):
    """The sessions with more columns, for the Sessions screen."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(self._all(), titles=True, id=id)

    def haystack(self, row: Entry) -> str:
        hosts = row.job.hosts if row.job is not None else [row.header.host] if row.header is not None else []
        return " ".join([row.name, *hosts, *row.workloads, *(plan.spec.device for plan in row.planned)])

    def _all(self) -> tuple[TableColumn[Entry], ...]:
        return (
            TableColumn("name", lambda entry: entry.name, 11, most=48, fits=True, style="bold"),
            TableColumn(
                "when",
                lambda entry: either(moment(entry.modified_seconds), self.when(entry), style="$text-muted"),
                11, weight=1, most=16,
            ),
            TableColumn("workloads", workloads, 10, weight=2),
            TableColumn("host", host, 14, priority=1, style="$text-muted"),
            TableColumn("runs", counts, 5, most=16, fits=True, right=True),
            TableColumn("size", lambda entry: units.bytes_(entry.size_bytes), 8, right=True, style="$text-muted"),
            TableColumn("state", life, 8, most=11, fits=True),
        )  # fmt: skip


def workloads(entry: Entry) -> tuple[str, str]:
    """The workloads of a session, or what is wrong with its file; of a job, in how many processes."""
    words = ", ".join(entry.workloads) or entry.problem or "no runs"
    if entry.job is not None and not entry.problem:
        words += f" · {units.counted(len(entry.job.processes), 'process', 'processes')}"
    return words, "$warning" if entry.problem else ""


def host(entry: Entry) -> str:
    """The machine on which the session was recorded, or how many they are."""
    if entry.job is not None and len(entry.job.hosts) > 1:
        return units.counted(len(entry.job.hosts), "host")
    return entry.header.host if entry.header is not None else units.UNKNOWN


def counts(entry: Entry) -> Content:
    """How many runs, or processes of a job, are ok, how many failed, and how many were cancelled: `5 ✓ 1 ✗ 2 –`."""
    by_status = Counter(closed.status for closed in entry.closed)
    ok, cancelled = by_status["ok"], by_status["cancelled"]
    failed = sum(by_status.values()) - ok - cancelled
    parts = [Content.styled(f"{ok} ✓", "$success" if ok else "$quiet")]
    if failed:
        parts.append(Content.styled(f" {failed} ✗", "$error"))
    if cancelled:
        parts.append(Content.styled(f" {cancelled} –", "$warning"))
    return Content.assemble(*parts)


def state(entry: Entry) -> Content:
    """The counts of runs, or the state of a file that is refused or live."""
    if entry.problem:
        return Content.styled("refused", "$warning")
    if entry.running:
        return Content.styled("● live", "$success")
    return counts(entry)


def life(entry: Entry) -> tuple[str, str]:
    """`live` while a run of it goes on, `open` while a process holds it; `interrupted` if its writer did not close it,
    else `complete`. Of a job also how many of its processes are missing."""
    if entry.problem:
        return "refused", "$warning"
    if entry.live:
        return ("● live", "$success") if entry.running else ("open", "$quiet")
    if entry.job is not None and entry.complete and entry.job.missing:
        return f"{entry.job.missing} missing", "$warning"
    return entry.state, "$quiet" if entry.state == "complete" else "$warning"
