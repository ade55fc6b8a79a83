"""A kept session or job: its summary, and what can be done with its file: rename, copy, delete it, prune old ones.

No session is folded for this. Everything that deletes shows what, and asks first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from textual.content import Content
from textual.message import Message

from jaxprof import units
from jaxprof.errors import JaxprofError
from jaxprof.session.log.library import total_bytes
from jaxprof.session_names import JOB_EXTENSION
from jaxprof.text import safe
from jaxprof.tui.kit.dialogs import AskText, Choose, Confirm, Option, SaveAs
from jaxprof.tui.kit.drawing import hang
from jaxprof.tui.kit.format import moment, status_mark
from jaxprof.tui.kit.table_columns import TableColumn, placed, row_line
from jaxprof.tui.kit.threads import in_thread

if TYPE_CHECKING:
    from jaxprof.events import RunClosed, RunSpec
    from jaxprof.session.log import Entry, Library
    from jaxprof.session.log.entry import JobOutline
    from jaxprof.tui.kit.screen import SessionScreen


_MOST_ERRORS: Final = 8


class KeptChanged(Message):
    """The kept sessions have changed; the cursor goes to `path`, if there is one."""

    def __init__(self, path: Path | None = None) -> None:
        super().__init__()
        self.path = path


def session_summary(entry: Entry, open_path: Path | None, width: int) -> list[Content]:
    """Return the summary of `entry`; `open_path` is the session that is open."""
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
        (process.process_index, process.problem or (process.closed[-1].error if process.closed else ""))
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

    def mark(self) -> Content:
        """Return the mark of its status."""
        return status_mark(self.closed.status if self.closed is not None else "running" if self.live else "")

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


_RULES: Final[tuple[tuple[str, dict[str, int]], ...]] = (
    ("older than a year", {"older_than_days": 365}),
    ("older than 90 days", {"older_than_days": 90}),
    ("older than 30 days", {"older_than_days": 30}),
    ("older than a week", {"older_than_days": 7}),
    ("all but the newest 100", {"keep": 100}),
    ("all but the newest 20", {"keep": 20}),
    ("all", {"keep": 0}),
)
"""What can be pruned, with the options of `Library.prunable`."""


def rename(screen: SessionScreen, entry: Entry) -> None:
    """Ask for another name of a session or job, which may be open or still written."""

    def take(name: str) -> None:
        def renamed(library: Library) -> Path:
            after = library.rename(entry.path, name)
            screen.profiler.session_moved(entry.path, after)
            return after

        _do(screen, renamed)

    title = "Rename the session" if entry.job is None else "Rename the job"
    AskText(title, "New name:", entry.name, "Enter renames").ask(screen.app, take)


def save_as(screen: SessionScreen, entry: Entry) -> None:
    """Ask where to copy a session or job to."""

    def copy(library: Library, path: Path) -> None:
        screen.say(str(library.copy(entry.path, Path.cwd() / path)), "Copied to")

    dialog = SaveAs("Save as", f"A copy of {entry.name}.", "", Path.cwd() / entry.path.name)
    dialog.ask_for_path(screen.app, lambda path: _do(screen, lambda library: copy(library, path)))


def delete(screen: SessionScreen, entry: Entry) -> None:
    """Delete a session or job, after a question."""
    words = ", ".join(entry.workloads) or "no runs"
    title, what = "Delete this session?", f"{entry.name}: {words}"
    if entry.job is not None:
        count = units.counted(len(entry.job.processes), "process", "processes")
        title, what = "Delete this job?", f"{entry.path}: {words}, the sessions of {count} and their roll-ups"
    question = f"{what}, {units.bytes_(entry.size_bytes)}. This cannot be undone."
    dialog = Confirm(title, question, "Delete")
    dialog.ask(screen.app, lambda yes: _do(screen, lambda library: library.delete(entry.path)))


def prune(screen: SessionScreen) -> None:
    """Ask which old sessions to delete, among the rules that match any, and delete them after a question."""
    library = screen.profiler.library()

    def matching() -> list[tuple[Option, list[Path]]]:
        doomed = [(rule, library.prunable(**options)) for rule, options in _RULES]
        return [(Option(rule, _counted(paths)), paths) for rule, paths in doomed if paths]

    def ask(found: list[tuple[Option, list[Path]]]) -> None:
        if not screen.is_current:
            return
        if found:
            dialog = Choose("Prune sessions", [option for option, _ in found])
            dialog.ask(screen.app, lambda number: _prune(screen, *found[number]))
        else:
            screen.say("There is nothing to prune.")

    in_thread(screen, matching, "what can be pruned", then=ask)


def _prune(screen: SessionScreen, rule: Option, paths: list[Path]) -> None:
    """Delete these sessions and jobs after a question."""
    question = f"{rule.note}: {rule.label}. Sessions that are being written are kept. This cannot be undone."
    dialog = Confirm("Delete all of these?", question, "Delete")
    dialog.ask(screen.app, lambda yes: _do(screen, lambda library: _delete_all(library, paths)))


def _counted(paths: Sequence[Path]) -> str:
    """Return how many sessions and jobs these are, and their size: `2 sessions and 1 job, 34 KiB`."""
    jobs = sum(path.name.endswith(JOB_EXTENSION) for path in paths)
    counts = (units.counted(count, noun) for count, noun in ((len(paths) - jobs, "session"), (jobs, "job")) if count)
    return f"{' and '.join(counts)}, {units.bytes_(total_bytes(paths))}"


def _delete_all(library: Library, paths: Iterable[Path]) -> None:
    """Delete all that can be deleted: a session may be written again meanwhile. Raises the first error afterwards."""
    errors = []
    for path in paths:
        try:
            library.delete(path)
        except JaxprofError as error:
            errors.append(error)
    if errors:
        raise errors[0]


def _do(screen: SessionScreen, what: Callable[[Library], Path | None]) -> None:
    """Call `what` with the library, report its error, and list the sessions again. The cursor then goes to the session
    that `what` returns, if any."""
    after = None
    try:
        after = what(screen.profiler.library())
    except JaxprofError as error:
        screen.profiler.tell(error)
    screen.post_message(KeptChanged(after))
