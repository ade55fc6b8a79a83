"""The Sessions screen: browse, open, rename, copy, delete and prune saved sessions and jobs.

Listing folds no session.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Button, Input, Label, Static

from jaxprof import units
from jaxprof.errors import JaxprofError, UsageError
from jaxprof.session.log.library import total_bytes
from jaxprof.text import safe
from jaxprof.tui.kit.dialogs import Dialog, form_keys
from jaxprof.tui.kit.filter import FilterLine
from jaxprof.tui.kit.guard import on
from jaxprof.tui.kit.picture import Lines
from jaxprof.tui.kit.row_list import RowList
from jaxprof.tui.kit.screen import SessionScreen
from jaxprof.tui.kit.session_list import SessionTable, session_summary
from jaxprof.tui.kit.threads import in_thread
from jaxprof.tui.messages import LiveChanged, SessionsListed

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from jaxprof.session.log import Entry, Library


MIB = 1 << 20
_FIELDS = (
    ("keep", "keep the newest", "number of sessions, of any age; empty: all"),
    ("days", "not older than", "days; empty: any age"),
    ("space", "within", "MiB in total; empty: no limit"),
)


class Prune(Dialog[list[Path]], keys="form"):
    """Asks what to delete; its answer is the list of files, or None."""

    def __init__(self, library: Library) -> None:
        super().__init__()
        self._library = library
        self._doomed: list[Path] = []

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog wide-dialog") as box:
            box.border_title = "Prune sessions"
            box.border_subtitle = form_keys("goes to Delete")
            for name, label, hint in _FIELDS:
                with Horizontal(classes="field"):
                    yield Label(label, markup=False, classes="field-name prune-name")
                    yield Input(id=name, compact=True, placeholder=hint)
            note = "Sessions that are being written are never deleted."
            yield Static(note, markup=False, classes="dialog-said")
            yield Static("", id="said", markup=False, classes="dialog-said")
            with Horizontal(classes="dialog-buttons"):
                yield Button("Cancel", id="leave", compact=True)
                yield Button("Delete", id="delete", variant="error", compact=True, disabled=True)

    def on_mount(self) -> None:
        self._count()

    def on_input_changed(self) -> None:
        self._count()

    def on_input_submitted(self) -> None:
        self.query_one("#delete", Button).focus()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.dismiss(self._doomed if event.button.id == "delete" else None)

    def _count(self) -> None:
        """Show how many sessions would be deleted."""
        message = self.query_one("#said", Static)
        try:
            keep, days, space = (self._number(name) for name, _, _ in _FIELDS)
        except UsageError as error:
            self._doomed = []
            message.update(str(error))
            message.add_class("wrong")
        else:
            message.remove_class("wrong")
            self._doomed = self._library.prunable(
                keep=None if keep is None else int(keep),
                older_than_days=days,
                max_bytes=None if space is None else int(space * MIB),
            )
            size = total_bytes(self._doomed)
            count = len(self._doomed)
            message.update(
                f"{units.counted(count, 'session')} would be deleted, {units.bytes_(size)}."
                if count
                else "Nothing would be deleted."
            )
        self.query_one("#delete", Button).disabled = not self._doomed

    def _number(self, name: str) -> float | None:
        text = self.query_one(f"#{name}", Input).value.strip()
        if not text:
            return None
        try:
            value = float(text)
        except ValueError:
            value = -1.0
        if not 0 <= value < 1e12:
            raise UsageError(f"{text!r} is not a number from 0 up")
        return value


class SessionsScreen(SessionScreen, keys="sessions"):
    """A table of sessions, with the summary of the one under the cursor below or beside it."""

    MODE = "sessions"
    AUTO_FOCUS = "#sessions"

    def compose_body(self) -> ComposeResult:
        with Vertical(id="sessions-body"):
            with Vertical(id="sessions-box", classes="box") as box:
                box.border_title = "Sessions"
                yield FilterLine("sessions")
                yield SessionTable(id="sessions")
            with VerticalScroll(id="summary-box", classes="box") as box:
                box.border_title = "Summary"
                yield Lines(id="summary")

    def come_into_view(self) -> None:
        super().come_into_view()
        self.action_read()

    def on_live_changed(self, message: LiveChanged) -> None:
        self.action_read()

    def show_session(self, runs: frozenset[str], *, replaced: bool) -> None:
        """List the sessions again when a run has ended."""
        session_runs = self.profiler.session.runs
        if any(run in session_runs and session_runs[run].over for run in runs):
            self.action_read()

    def action_read(self) -> None:
        in_thread(self, lambda: self.profiler.list_sessions(None), "entries", then=self._take)

    def _take(self, listed: SessionsListed) -> None:
        if not self.whole:
            return
        count = len(listed.entries)
        box = self.query_one("#sessions-box")
        box.border_title = f"Sessions · {count} · {units.bytes_(listed.size_bytes)}"
        box.border_subtitle = Content(safe(str(listed.folder).replace(str(Path.home()), "~")))
        self.query_one(SessionTable).show_entries(listed.entries)
        self._show_summary()

    @on(RowList.Highlighted)
    def _session_in_view(self) -> None:
        self.once_settled(self._show_summary)

    def _show_summary(self) -> None:
        rows, open_path = self.query_one(SessionTable), self.profiler.session_path
        entry, key = rows.current_row, (repr(rows.current_row), open_path, rows.total)
        if entry is None and rows.total:  # the filter hides all
            self.query_one("#summary", Lines).show(key, lambda width: ())
        else:
            self.query_one("#summary", Lines).show(key, lambda width: session_summary(entry, open_path, width))

    @on(RowList.Chosen, "#sessions")
    def _open(self) -> None:
        entry = self._entry
        if entry is not None:
            self.profiler.open_session(entry.path)

    # -- keys --------------------------------------------------------------------------------------------------

    @property
    def _entry(self) -> Entry | None:
        """The session, or job, under the cursor."""
        return self.query_one(SessionTable).current_row

    def action_open_file(self) -> None:
        self.profiler.ask_for_file()

    def action_rename(self) -> None:
        from jaxprof.tui.kit.dialogs import AskText

        entry = self._entry
        if entry is None:
            return

        def rename(name: str) -> None:
            self._do(lambda library: self._renamed(entry.path, library.rename(entry.path, name)))

        title = "Rename the session" if entry.job is None else "Rename the job"
        AskText(title, "New name:", entry.name, "Enter renames").ask(self.app, rename)

    def _renamed(self, before: Path, after: Path) -> None:
        """Follow the new name of a session, which may be open or still written."""
        self.profiler.session_moved(before, after)
        self.query_one(SessionTable).follow(after)

    def action_save_as(self) -> None:
        from jaxprof.tui.kit.dialogs import SaveAs

        entry = self._entry
        if entry is None:
            return

        def copy(library: Library, path: Path) -> None:
            self.say(str(library.copy(entry.path, Path.cwd() / path)), "Copied to")

        dialog = SaveAs("Save as", f"A copy of {entry.name}.", "", Path.cwd() / entry.path.name)
        dialog.ask(self.app, lambda path: self._do(lambda library: copy(library, path)))

    def action_delete(self) -> None:
        from jaxprof.tui.kit.dialogs import Confirm

        entry = self._entry
        if entry is None:
            return

        words = ", ".join(entry.workloads) or "no runs"
        title, what = "Delete this session?", f"{entry.name}: {words}"
        if entry.job is not None:
            count = units.counted(len(entry.job.processes), "process", "processes")
            title, what = "Delete this job?", f"{entry.path}: {words}, the sessions of {count} and their roll-ups"
        question = f"{what}, {units.bytes_(entry.size_bytes)}. This cannot be undone."
        dialog = Confirm(title, question, "Delete")
        dialog.ask(self.app, lambda yes: self._do(lambda library: library.delete(entry.path)))

    def action_prune(self) -> None:
        prune = Prune(self.profiler.library())
        prune.ask(self.app, lambda doomed: self._do(lambda library: _delete_all(library, doomed)))

    def _do(self, what: Callable[[Library], object]) -> None:
        """Call `what` with the library, report its error, and read the folder again."""
        try:
            what(self.profiler.library())
        except JaxprofError as error:
            self.profiler.tell(error)
        self.action_read()

    def action_copy_path(self) -> None:
        entry = self._entry
        if entry is not None:
            self.copy(str(entry.path))

    def action_history(self) -> None:
        entry = self._entry
        workloads = entry.workloads if entry is not None else []
        self.profiler.show_history(workloads[0] if len(workloads) == 1 else "")

    def action_filter(self) -> None:
        self.query_one(FilterLine).open()

    @on(FilterLine.Edited)
    def _filtered(self) -> None:
        self._show_summary()

    async def action_back(self) -> None:
        if self.query_one(FilterLine).value:
            self.query_one(FilterLine).clear()
        else:
            await self.app.run_action("app.back")


def _delete_all(library: Library, paths: list[Path]) -> None:
    for path in paths:
        library.delete(path)
