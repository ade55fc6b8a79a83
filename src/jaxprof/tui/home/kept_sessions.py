"""A kept session or job: its summary, and what can be done with its file: rename, copy, delete it.

No session is folded for this. Everything that deletes shows what, and asks first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from textual.content import Content

from jaxprof import units
from jaxprof.errors import JaxprofError
from jaxprof.facts import Fact, column
from jaxprof.report.renderers import Table
from jaxprof.report.runs import parameters_text
from jaxprof.text import safe
from jaxprof.tui.kit.dialogs import Confirm, FormField, ask_path, ask_text
from jaxprof.tui.kit.drawing import hang
from jaxprof.tui.kit.format import moment
from jaxprof.tui.kit.table_columns import table_lines

if TYPE_CHECKING:
    from jaxprof.events import RunPlanned
    from jaxprof.session.log import Entry, Library
    from jaxprof.session.log.entry import JobOutline
    from jaxprof.tui.profiler import Profiler


_MOST_ERRORS: Final = 8
Listed = Callable[["Path | None"], object]
"""Lists the sessions again; the cursor then goes to the one at the path, if there is one."""


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
    lines += _runs(entry, width)
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
        words.append(entry.state if entry.job is None else "every session in this folder is complete")
    else:
        who = "its writer" if entry.job is None else "the writer of a session"
        words.append(f"interrupted: {who} did not close it; the data written until then is readable")
    return ", ".join(words)


def _runs(entry: Entry, width: int) -> Iterator[Content]:
    """Yield a line per run, then the errors of those that failed."""
    closed = {event.run: event for event in entry.closed}

    def status(plan: RunPlanned) -> str:
        return closed[plan.run].status if plan.run in closed else "running" if entry.live else units.UNKNOWN

    columns: tuple[Fact[RunPlanned], ...] = (
        column("workload", lambda plan: plan.spec.workload),
        column("variant", lambda plan: plan.spec.variant),
        column("device", lambda plan: plan.spec.device),
        column("median", lambda plan: closed[plan.run].median_seconds if plan.run in closed else None, units.seconds),
        column("status", status),
        column("parameters", lambda plan: parameters_text(plan.spec.parameters), gives_way=True),
    )
    yield from table_lines(Table(columns, entry.planned), width)
    for error in dict.fromkeys(event.error for event in entry.closed if event.error):
        yield from hang(Content("   "), error, width, "$error")


def rename(app: Profiler, entry: Entry, listed: Listed) -> None:
    """Ask for another name of a session or job, which may be open or still written."""

    def take(name: str) -> None:
        def renamed(library: Library) -> Path:
            after = library.rename(entry.path, name)
            app.session_moved(entry.path, after)
            return after

        _do(app, listed, renamed)

    title = "Rename the session" if entry.job is None else "Rename the job"
    ask_text(app, title, FormField("new name", safe(entry.name), ""), take, "renames")


def save_as(app: Profiler, entry: Entry, listed: Listed) -> None:
    """Ask where to copy a session or job to."""

    def copy(library: Library, path: Path) -> None:
        app.say(str(library.copy(entry.path, Path.cwd() / path)), "Copied to")

    def take(path: Path) -> None:
        _do(app, listed, lambda library: copy(library, path))

    ask_path(app, "Save as", Path.cwd() / entry.path.name, take, question=f"A copy of {entry.name}.")


def delete(app: Profiler, entry: Entry, listed: Listed) -> None:
    """Delete a session or job, after a question."""
    words = ", ".join(entry.workloads) or "no runs"
    title, what = "Delete this session?", f"{entry.name}: {words}"
    if entry.job is not None:
        count = units.counted(len(entry.job.processes), "process", "processes")
        title, what = "Delete this job?", f"{entry.path}: {words}, the sessions of {count} and their roll-ups"
    question = f"{what}, {units.bytes_(entry.size_bytes)}. This cannot be undone."
    dialog = Confirm(title, question, "Delete")
    dialog.ask(app, lambda yes: _do(app, listed, lambda library: library.delete(entry.path)))


def _do(app: Profiler, listed: Listed, what: Callable[[Library], Path | None]) -> None:
    """Call `what` with the library, report its error, and list the sessions again, with the cursor on the session that
    `what` returns, if any."""
    after = None
    try:
        after = what(app.library())
    except JaxprofError as error:
        app.tell(error)
    listed(after)
