"""What can be done with the file of a kept session, or the folder of a job, after a question: rename, copy, delete."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from jaxprof import units
from jaxprof.errors import JaxprofError
from jaxprof.text import safe
from jaxprof.tui.kit.dialogs import Confirm, FormField, ask_path, ask_text

if TYPE_CHECKING:
    from jaxprof.session.log import Entry, Library
    from jaxprof.tui.profiler import Profiler


Listed = Callable[["Path | None"], object]
"""Lists the sessions again; the cursor then goes to the one at the path, if there is one."""


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
