"""Sessions: what was kept. Browse, open, rename, copy, delete, and keep the folder small. Listing folds nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from jaxprof import units
from jaxprof.errors import JaxprofError
from jaxprof.safe_text import safe
from jaxprof.tui.messages import EntriesRead, LiveChanged
from jaxprof.tui.screens.base import SessionScreen
from jaxprof.tui.widgets.filter_line import FilterLine
from jaxprof.tui.widgets.row_list import RowList
from jaxprof.tui.widgets.session_list import SessionList, SessionTable
from jaxprof.tui.widgets.session_summary import summary

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from jaxprof.store import Entry, Library


class SessionsScreen(SessionScreen):
    """A table above, the summary of the session under the cursor below or beside."""

    MODE: ClassVar[str] = "sessions"
    AUTO_FOCUS = "#sessions"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("o", "open_file", "Open file", tooltip="Open a session by its path", id="sessions.open_file"),
        Binding("n", "rename", "Rename", tooltip="Give this session another name", id="sessions.rename"),
        Binding("w", "save_as", "Save as", tooltip="Copy this session to another place", id="sessions.save_as"),
        Binding("x,delete", "delete", "Delete", tooltip="Delete this session; asks first", id="sessions.delete"),
        Binding("P", "prune", "Prune", tooltip="Delete old sessions; shows which, asks first", id="sessions.prune"),
        Binding(
            "slash", "filter", "Filter", key_display="/", tooltip="Only sessions with these words", id="sessions.filter"
        ),
        Binding("y", "copy_path", "Copy path", show=False, tooltip="Copy the path of this session", id="sessions.copy"),
        Binding("ctrl+l", "read", "Read again", show=False, tooltip="Read the folder again", id="sessions.read"),
        Binding("escape", "back", "Back", show=False, tooltip="Clear the filter, or back to Home", id="sessions.back"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._entries: list[Entry] = []
        self._only = ""

    def compose_body(self) -> ComposeResult:
        with Vertical(id="sessions-body"):
            with Vertical(id="sessions-box", classes="box") as box:
                box.border_title = "Sessions"
                yield FilterLine()
                yield SessionTable(id="sessions")
            with VerticalScroll(id="summary-box", classes="box") as box:
                box.border_title = "Summary"
                yield Static(id="summary", markup=False)

    def come_into_view(self) -> None:
        super().come_into_view()
        self.action_read()

    def on_live_changed(self, message: LiveChanged) -> None:
        self.action_read()

    def show_session(self, runs: frozenset[str], *, replaced: bool) -> None:
        """A run that is over has changed the counts in the table."""
        known = self.profiler.session.runs
        if any(run in known and known[run].over for run in runs):
            self.action_read()

    def action_read(self) -> None:
        """Reads the folder again."""
        self.run_worker(
            lambda: self.profiler.list_sessions(self, None),
            name="entries",
            group="entries",
            exclusive=True,
            thread=True,
        )

    def on_entries_read(self, message: EntriesRead) -> None:
        if not self.whole:
            return
        self._entries = message.entries
        count = len(message.entries)
        box = self.query_one("#sessions-box")
        box.border_title = f"Sessions · {count} · {units.bytes_(message.size_bytes)}"
        box.border_subtitle = Content(safe(str(message.folder).replace(str(Path.home()), "~")))
        self._show_entries()

    def _show_entries(self) -> None:
        words = self._only.casefold().split()
        shown = [entry for entry in self._entries if all(word in _haystack(entry) for word in words)]
        self.query_one(SessionTable).show_entries(shown)
        self._show_summary()

    @on(RowList.Highlighted)
    def _session_in_view(self) -> None:
        self.once_settled(self._show_summary)

    def _show_summary(self) -> None:
        entry = self.query_one(SessionTable).entry
        self.query_one("#summary", Static).update(summary(entry, self.profiler.session_path))

    @on(SessionList.Opened)
    def _open(self) -> None:
        entry = self.query_one(SessionTable).entry
        if entry is not None:
            self.profiler.open_session(entry.path)

    # -- keys --------------------------------------------------------------------------------------------------

    def action_open_file(self) -> None:
        """Asks for a path, and opens it."""
        from jaxprof.tui.dialogs.ask_text import AskText

        def answered(text: str | None) -> None:
            if text:
                self.profiler.open_session((Path.cwd() / Path(text).expanduser()).resolve())

        self.app.push_screen(
            AskText("Open", "A session, a profile or its folder, or HLO.", "", "Enter opens"), answered
        )

    def action_rename(self) -> None:
        """Asks for another name."""
        from jaxprof.tui.dialogs.ask_text import AskText

        entry = self.query_one(SessionTable).entry
        if entry is None:
            return

        def answered(name: str | None) -> None:
            if name:
                self._do(lambda library: self._renamed(entry.path, library.rename(entry.path, name)))

        self.app.push_screen(AskText("Rename the session", "Its new name.", entry.name, "Enter renames"), answered)

    def _renamed(self, before: Path, after: Path) -> None:
        """A session that is open or being written keeps its place in the app under its new name."""
        self.profiler.session_moved(before, after)
        self.query_one(SessionTable).follow(after)

    def action_save_as(self) -> None:
        """Asks for a place, and copies the session there."""
        from jaxprof.tui.dialogs.save_as import SaveAs

        entry = self.query_one(SessionTable).entry
        if entry is None:
            return

        def chosen(path: Path | None) -> None:
            if path is not None:
                self._do(lambda library: self._copied(library.copy(entry.path, Path.cwd() / path)))

        dialog = SaveAs("Save as", f"A copy of {entry.name}.", "", Path.cwd() / entry.path.name)
        self.app.push_screen(dialog, chosen)

    def _copied(self, path: Path) -> None:
        self.notify(safe(str(path)), title="Copied to", markup=False)

    def action_delete(self) -> None:
        """Asks, then deletes the session under the cursor."""
        from jaxprof.tui.dialogs.confirm import Confirm

        entry = self.query_one(SessionTable).entry
        if entry is None:
            return

        def answered(yes: bool | None) -> None:
            if yes:
                self._do(lambda library: library.delete(entry.path))

        words = ", ".join(entry.workloads) or "no runs"
        question = f"{entry.name}: {words}, {units.bytes_(entry.size_bytes)}. It cannot be brought back."
        self.app.push_screen(Confirm("Delete this session?", question, "Delete"), answered)

    def action_prune(self) -> None:
        """Asks what to keep, shows what would go, and deletes it."""
        from jaxprof.tui.dialogs.prune import Prune

        def answered(doomed: list[Path] | None) -> None:
            if doomed:
                self._do(lambda library: _delete_all(library, doomed))

        self.app.push_screen(Prune(self.profiler.library()), answered)

    def _do(self, what: Callable[[Library], object]) -> None:
        """Does something with the folder, shows what prevented it, and reads the folder again."""
        try:
            what(self.profiler.library())
        except JaxprofError as error:
            self.profiler.tell(error)
        self.action_read()

    def action_copy_path(self) -> None:
        """Copies the path of the session under the cursor."""
        entry = self.query_one(SessionTable).entry
        if entry is not None:
            self.app.copy_to_clipboard(str(entry.path))
            self.notify(safe(str(entry.path)), title="Copied", markup=False)

    def action_filter(self) -> None:
        """Opens the line for the filter."""
        self.query_one(FilterLine).open(self._only)

    @on(FilterLine.Edited)
    def _filter_edited(self, message: FilterLine.Edited) -> None:
        self._only = message.text
        self._show_entries()

    @on(FilterLine.Left)
    def _filter_left(self) -> None:
        self.query_one(SessionTable).focus()

    async def action_back(self) -> None:
        """Clears the filter; without one, back to Home."""
        if self._only:
            self.query_one(FilterLine).clear()
        else:
            await self.app.run_action("app.back")


def _delete_all(library: Library, paths: list[Path]) -> None:
    for path in paths:
        library.delete(path)


def _haystack(entry: Entry) -> str:
    host = entry.header.host if entry.header is not None else ""
    return " ".join([entry.name, host, *entry.workloads, *(plan.device for plan in entry.planned)]).casefold()
