"""Saved sessions and jobs as rows, and a summary of the one under the cursor. A thread elsewhere reads the entries; no
session itself is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from textual.content import Content

from jaxprof import units
from jaxprof.text import safe
from jaxprof.tui.keys import key_of
from jaxprof.tui.kit.drawing import hang
from jaxprof.tui.kit.format import ago, moment
from jaxprof.tui.kit.table_columns import TableColumn, either, placed, row_line
from jaxprof.tui.kit.table_view import TableView

if TYPE_CHECKING:
    from jaxprof.events import RunClosed, RunSpec
    from jaxprof.session.log import Entry
    from jaxprof.session.log.entry import JobOutline


class SessionTable(TableView["Entry"], keys="session_list"):
    """One row per session, the newest first."""

    EMPTY = "No sessions yet."

    def __init__(self, *, id: str | None = None, now: Callable[[], float] | None = None) -> None:
        super().__init__(
            (
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
            ),
            id=id,
        )  # fmt: skip
        self._now = now
        self._wanted: Path | None = None

    def when(self, entry: Entry) -> str:
        """Return the age of a session: `3 min ago`."""
        return ago(entry.modified_seconds, self._now() if self._now else None)

    def haystack(self, row: Entry) -> str:
        hosts = row.job.hosts if row.job is not None else [row.header.host] if row.header is not None else []
        return " ".join([row.name, *hosts, *row.workloads, *(plan.spec.device for plan in row.planned)])

    def show_entries(self, entries: Sequence[Entry]) -> None:
        """Show these sessions."""
        self.show_rows({entry.path: entry for entry in entries})
        if self._wanted is not None:
            self.move_to_key(self._wanted)
            self._wanted = None

    def follow(self, path: Path) -> None:
        """Move the cursor to that session once it is listed."""
        self._wanted = path


def workloads(entry: Entry) -> tuple[str, str]:
    """Return the workloads of a session, or what is wrong with its file; for a job, the number of its processes too."""
    words = ", ".join(entry.workloads) or entry.problem or "no runs"
    if entry.job is not None and not entry.problem:
        words += f" · {units.counted(len(entry.job.processes), 'process', 'processes')}"
    return words, "$warning" if entry.problem else ""


def host(entry: Entry) -> str:
    """Return the machine that recorded the session, or the number of machines."""
    if entry.job is not None and len(entry.job.hosts) > 1:
        return units.counted(len(entry.job.hosts), "host")
    return entry.header.host if entry.header is not None else units.UNKNOWN


def counts(entry: Entry) -> Content:
    """Return the numbers of runs, or processes of a job, that are ok, failed and cancelled: `5 ✓ 1 ✗ 2 –`."""
    by_status = Counter(closed.status for closed in entry.closed)
    ok, cancelled = by_status["ok"], by_status["cancelled"]
    failed = sum(by_status.values()) - ok - cancelled
    parts = [Content.styled(f"{ok} ✓", "$success" if ok else "$quiet")]
    if failed:
        parts.append(Content.styled(f" {failed} ✗", "$error"))
    if cancelled:
        parts.append(Content.styled(f" {cancelled} –", "$warning"))
    return Content.assemble(*parts)


def life(entry: Entry) -> tuple[str, str]:
    """Return `live` while a run of the session is in progress, `open` while a process holds it, `interrupted` if its
    writer did not close it, otherwise `complete`. For a job, add how many of its processes are missing."""
    if entry.problem:
        return "refused", "$warning"
    if entry.live:
        return ("● live", "$success") if entry.running else ("open", "$quiet")
    if entry.job is not None and entry.complete and entry.job.missing:
        return f"{entry.job.missing} missing", "$warning"
    return entry.state, "$quiet" if entry.state == "complete" else "$warning"


_MOST_ERRORS: Final = 8


_MARKS = {
    "ok": ("✓", "$success"),
    "failed": ("✗", "$error"),
    "crashed": ("✗", "$error"),
    "cancelled": ("–", "$warning"),
    "timed out": ("✗", "$error"),
}


def session_summary(entry: Entry | None, open_path: Path | None, width: int) -> list[Content]:
    """Return the summary of `entry`; without an entry, what to do."""
    if entry is None:
        words = f"No sessions yet. Press {key_of('app.mode.start')} for Start, then Enter to run a workload."
        return Content.styled(words, "$text-muted").wrap(width)
    lines = Content.styled(safe(entry.name), "bold").wrap(width)
    if entry.problem:
        return [
            *lines,
            *Content.styled(safe(entry.problem), "$warning").wrap(width),
            *_line("file", str(entry.path), width),
        ]
    header = entry.header
    if header is not None:
        host = header.host if entry.job is None else ", ".join(entry.job.hosts)
        if entry.process_count > 1 and entry.job is None:
            host += f", process {entry.process_index} of {entry.process_count}"
        lines += _line("recorded", f"{moment(header.wall_seconds)} on {host}, jaxprof {header.jaxprof}", width)
        lines += _line("command", " ".join(header.command), width)
    lines += _line("file", f"{entry.path} · {units.bytes_(entry.size_bytes)}", width)
    lines += _line("state", _state(entry, open_path), width)
    lines.append(Content(""))
    if entry.job is not None:
        return [*lines, *_processes(entry.job, width)]
    closed = {event.run: event for event in entry.closed}
    lines += _runs([SummarisedRun(plan.spec, closed.get(plan.run), entry.live) for plan in entry.planned], width)
    if not entry.planned:
        lines.append(Content.styled("This session contains no runs.", "$text-muted"))
    return lines


def _processes(job: JobOutline, width: int) -> Iterator[Content]:
    """Yield how the processes of a job ended, and why those that failed did."""
    recorded = ", ".join(f"{count} {status}" for status, count in job.by_status.items())
    missing = f"; {job.missing} of {job.count} have no session in this folder" if job.missing else ""
    yield from _line("processes", f"{len(job.processes)}: {recorded}{missing}", width)
    errors = [
        (process.index, process.problem or (process.closed.error if process.closed is not None else ""))
        for process in job.processes
    ]
    failed = [(index, error) for index, error in errors if error]
    for index, error in failed[:_MOST_ERRORS]:
        yield from hang(Content(f"  {index}  "), safe(error), width, "$error")
    if len(failed) > _MOST_ERRORS:
        yield Content.styled(f"  and {len(failed) - _MOST_ERRORS} more", "$text-muted")
    yield Content("")
    yield from Content.styled("Enter shows its processes beside each other.", "$text-muted").wrap(width)


def _line(name: str, text: str, width: int) -> list[Content]:
    return hang(Content.styled(f"{name:<10}", "$primary"), safe(text), width, "$text-muted")


def _state(entry: Entry, open_path: Path | None) -> str:
    words = []
    if entry.path == open_path:
        words.append("open now")
    if entry.live:
        words.append("being written")
    elif entry.complete:
        words.append("complete" if entry.job is None else "every session in this folder is complete")
    else:
        who = "its writer" if entry.job is None else "the writer of a session"
        words.append(f"interrupted: {who} did not close it; the data written until then is readable")
    return ", ".join(words)


@dataclass(frozen=True, slots=True)
class SummarisedRun:
    """A run of a saved session: its plan, and how it ended."""

    plan: RunSpec
    closed: RunClosed | None
    live: bool
    """Whether a process still writes the session."""

    def mark(self) -> tuple[str, str]:
        """Return the mark of its status."""
        status = self.closed.status if self.closed is not None else ""
        return _MARKS.get(status, ("…", "$primary") if self.live else ("?", "$warning"))

    def median(self) -> str:
        """Return the median of a call."""
        return units.seconds(self.closed.median_seconds if self.closed is not None else None)

    def sizes(self) -> str:
        """`n=1000, k=32`."""
        return ", ".join(f"{name}={value}" for name, value in self.plan.parameters.items())

    def error_lines(self, width: int) -> list[Content]:
        """Return the error to show below the run; nothing without one."""
        if self.closed is None or not self.closed.error:
            return []
        style = "$error" if self.closed.status != "cancelled" else "$warning"
        return hang(Content("   "), self.closed.error, width, style)


_RUN_COLUMNS: Sequence[TableColumn[SummarisedRun]] = (
    TableColumn("", SummarisedRun.mark, 1),
    TableColumn("workload", lambda run: run.plan.workload, 8, most=34, fits=True),
    TableColumn("variant", lambda run: run.plan.variant, 5, most=24, fits=True),
    TableColumn("device", lambda run: run.plan.device, 7, fits=True, style="$text-muted"),
    TableColumn("median", SummarisedRun.median, 9, gap=2, right=True, style="bold"),
    TableColumn("parameters", SummarisedRun.sizes, 8, weight=1, style="$text-muted"),
)


def _runs(runs: Sequence[SummarisedRun], width: int) -> Iterator[Content]:
    """Yield a line per run, and its error."""
    layout = placed(_RUN_COLUMNS, width, runs, margin=0)
    for run in runs:
        yield row_line(run, layout, width).rstrip()
        yield from run.error_lines(width)
