"""Program: what a user's own program does while it runs, and did: its time, compile ledger, findings, lines, output.

On a small terminal the five views are tabs of one place; on a larger one several of them stand side by side. Everything
is driven by what arrives, but for the two clocks of the head, which tick while the program goes on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.timer import Timer
from textual.widgets import Static

from jaxprof.results.programs.derive import ProgramResult, is_program, program_result, programs
from jaxprof.tui.screens.base import SessionScreen
from jaxprof.tui.size_class import wear_size
from jaxprof.tui.views import last_window
from jaxprof.tui.widgets.filter_line import FilterLine
from jaxprof.tui.widgets.hot_lines import LineWanted
from jaxprof.tui.widgets.ledger_list import LedgerList
from jaxprof.tui.widgets.program_head import ProgramHead
from jaxprof.tui.widgets.program_panes import VIEWS, ProgramPanes
from jaxprof.tui.widgets.program_summary import head_of
from jaxprof.tui.widgets.stage_tabs import StageTabs, Tab
from jaxprof.units import integer

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from jaxprof.session import Run

TICK_SECONDS = 0.1
CAPTURE_SECONDS = 2.0
"""How long a capture by key is."""
CANCELLING = (
    "It was interrupted, as by ctrl+c. c again terminates it.",
    "It was asked to terminate. c again kills it.",
    "It is being killed.",
)
MAIN = ("ledger", "findings", "lines")
"""Those that share the large place of a large terminal, on which time and output always have their own."""
KEYS = {"ledger": "l", "findings": "f", "lines": "n", "time": "t", "output": "o"}
EMPTY = """No program was recorded in this session.

x on Home                       starts one from here
jaxprof script train.py         starts one from the shell
jaxprof.record("run.jaxprof")   as a line of a program that something else starts"""


class ProgramScreen(SessionScreen):
    """One program."""

    MODE: ClassVar[str] = "program"
    AUTO_FOCUS = "#ledger"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("l", "tab('ledger')", "Ledger", show=False, tooltip="What was compiled, for how long, and why again",
                id="program.ledger"),
        Binding("f", "tab('findings')", "Findings", show=False, tooltip="What is worth changing, and where",
                id="program.findings"),
        Binding("n", "tab('lines')", "Lines", show=False, tooltip="The lines that took the time", id="program.lines"),
        Binding("t", "tab('time')", "Time", show=False, tooltip="Where the time went: as a table, and over time",
                id="program.time"),
        Binding("o", "tab('output')", "Output", show=False, tooltip="What the program wrote", id="program.output"),
        Binding("slash", "filter", "Filter", key_display="/", tooltip="Only functions, findings and lines with these"
                " words", id="program.filter"),
        Binding("w", "capture", "Capture", tooltip="Switch the profiler on in the program, for a moment",
                id="program.capture"),
        Binding("c", "cancel", "Cancel", tooltip="ctrl+c for the program; again: terminate it; again: kill it",
                id="program.cancel"),
        Binding("r", "again", "Run again", tooltip="Run this program once more", id="program.again"),
        Binding("p", "profile", "Profile", tooltip="The timeline of the last capture window", id="program.profile"),
        Binding("h", "hlo", "HLO", tooltip="Kernels and HLO of the last capture window", id="program.hlo"),
        Binding("z", "zoom", "Zoom", show=False, tooltip="One view alone on a large terminal, and back",
                id="program.zoom"),
        Binding("escape", "unfilter", "Back", show=False, tooltip="Show everything again", id="program.unfilter"),
    ]  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self._timer: Timer | None = None
        self._run = ""
        self._view = self._main = "ledger"
        self._only = ""
        self._cancelled = ("", 0)
        """The program that was asked to end, and how often."""

    def compose_body(self) -> ComposeResult:
        wear_size(self)
        yield Static(Content(EMPTY), id="program-empty")
        yield ProgramHead(id="program-head")
        yield StageTabs(id="program-tabs")
        yield FilterLine()
        yield ProgramPanes(id="program-body")

    def on_mount(self) -> None:
        self.add_class(f"-view-{self._view}", f"-main-{self._main}")

    # -- showing ----------------------------------------------------------------------------------------------

    @property
    def run(self) -> Run | None:
        """The program in view."""
        return self.profiler.session.runs.get(self._run)

    def show_session(self, runs: frozenset[str], *, replaced: bool) -> None:
        """Shows the program, if anything of it changed."""
        before = self._run
        if replaced or self.run is None:
            self._choose()
        if replaced or self._run != before:
            self.query_one(ProgramPanes).forget()
        if replaced or self._run != before or self._run in runs:
            self._show()

    def _choose(self) -> None:
        """The program that another screen had in view; else the last of the session."""
        session = self.profiler.session
        wanted = session.runs.get(self.profiler.run_in_view)
        found = programs(session)
        self._run = wanted.id if wanted is not None and is_program(wanted) else found[-1].id if found else ""

    def come_into_view(self) -> None:
        """Catches up, and lets the clocks run again."""
        super().come_into_view()
        if not self.whole:
            return
        before = self._run
        self._choose()
        if self._run != before:
            self._show()
        self._set_clock(self.query_one(ProgramHead).runs)

    def _show(self) -> None:
        run = self.run
        self.set_class(run is None, "-empty")
        self.refresh_bindings()
        if run is None:
            self.query_one(ProgramHead).show(None)
            self._set_clock(False)
            return
        session = self.profiler.session
        found = program_result(session, run.id)
        head = self.query_one(ProgramHead)
        head.shift_seconds = self.profiler.clock_shift_seconds
        head.show(head_of(session, found, growing=self.profiler.session_grows, silent=self.profiler.silent_since))
        self.query_one(ProgramPanes).show(session, found)
        self._show_tabs(found)
        self._set_clock(head.runs)

    def _show_tabs(self, found: ProgramResult) -> None:
        notes = {
            "ledger": integer(found.compile_count) if found.compile_count else "",
            "findings": str(len(found.findings)) if found.findings else "",
        }
        tabs = [Tab(name, f"{KEYS[name]} {title}", title, notes.get(name, "")) for name, title in VIEWS.items()]
        self.query_one(StageTabs).show(tabs, self._shown)

    @property
    def _shown(self) -> frozenset[str]:
        """The views that are in view, as the stylesheet has it."""
        if self.has_class("-zoom"):
            return frozenset({self._view})
        if self.has_class("-tall") and self.has_class("-very-wide"):
            return frozenset(VIEWS)
        if self.has_class("-tall") and self.has_class("-wide"):
            return frozenset({self._main, "time", "output"})
        return frozenset({self._view})

    # -- the clocks -------------------------------------------------------------------------------------------

    @property
    def ticking(self) -> bool:
        """Whether clocks are drawn again and again."""
        return self._timer is not None

    def _set_clock(self, on: bool) -> None:
        if on and self._timer is None and self.profiler.current_mode == self.MODE:
            self._timer = self.set_interval(TICK_SECONDS, self.query_one(ProgramHead).tick)
        elif not on and self._timer is not None:
            self._timer.stop()
            self._timer = None

    def on_screen_suspend(self) -> None:
        """Out of view, nothing ticks."""
        self._set_clock(False)

    # -- views and filter -------------------------------------------------------------------------------------

    def action_tab(self, name: str) -> None:
        """To a view."""
        if name not in VIEWS:
            return
        self.remove_class(f"-view-{self._view}", f"-main-{self._main}")
        self._view, self._main = name, name if name in MAIN else self._main
        self.add_class(f"-view-{name}", f"-main-{self._main}")
        self.query_one(f"#{name}").focus()
        if self.run is not None:
            self._show_tabs(program_result(self.profiler.session, self._run))

    def action_zoom(self) -> None:
        """One view alone, or as many as there is room for."""
        self.toggle_class("-zoom")
        self.action_tab(self._view)

    def action_filter(self) -> None:
        """Opens the line for the filter."""
        self.query_one(FilterLine).open(self._only)

    def on_filter_line_edited(self, message: FilterLine.Edited) -> None:
        self._only = message.text
        self.query_one(ProgramPanes).set_filter(message.text)

    def on_filter_line_left(self) -> None:
        self.query_one(f"#{self._view}").focus()

    def action_unfilter(self) -> None:
        """Shows everything again."""
        self.query_one(FilterLine).clear()
        self.on_filter_line_left()

    @on(LedgerList.Entered)
    def _compilation(self, message: LedgerList.Entered) -> None:
        """All of one compilation."""
        from jaxprof.tui.dialogs.compilation import CompilationDialog

        self.app.push_screen(CompilationDialog(message.row))

    @on(LineWanted)
    def _source(self, message: LineWanted) -> None:
        """A line among those around it."""
        from jaxprof.tui.dialogs.source_lines import SourceLines

        self.app.push_screen(SourceLines(message.where))

    # -- what is asked of the program -------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys that can do nothing here and now are dimmed; Esc is the app's unless there is a filter to clear."""
        if not self.whole:
            return super().check_action(action, parameters)
        run = self.run
        if action in ("capture", "cancel"):
            return True if run is not None and not run.over and self._ours else None
        if action in ("profile", "hlo"):
            whole, hlo = last_window(self.profiler.session)
            return True if (whole if action == "profile" else hlo) else None
        if action == "again":
            return True if run is not None and (run.over or not self._ours) else None
        if action in ("filter", "tab"):
            return True if run is not None else None
        if action == "unfilter":
            return bool(self._only)
        return super().check_action(action, parameters)

    @property
    def _ours(self) -> bool:
        """Whether the program in view is one that this app has started."""
        return self.profiler.session is self.profiler.live.session and self.profiler.live.program is not None

    def action_capture(self) -> None:
        """Switches the profiler on in the program for a moment."""
        run = self.run
        windows = run.program.windows if run is not None and run.program is not None else []
        if windows and windows[-1].state == "began":
            self.notify("A profile is being captured already.", markup=False)
            return
        self.profiler.live.capture(CAPTURE_SECONDS)
        self.notify(
            f"The profiler is on for {CAPTURE_SECONDS:g} s; p and h show the window once it was read.",
            title="Capturing", markup=False,
        )  # fmt: skip

    def action_profile(self) -> None:
        """When the kernels of the last window ran."""
        self.profiler.show_profile(last_window(self.profiler.session)[0])

    def action_hlo(self) -> None:
        """The kernels of the last window."""
        self.profiler.show_hlo(last_window(self.profiler.session)[1])

    def action_cancel(self) -> None:
        """Ends the program: first as ctrl+c does, then less and less gently."""
        run = self.run
        if run is None or run.over:
            return
        count = self._cancelled[1] + 1 if self._cancelled[0] == run.id else 1
        self._cancelled = (run.id, count)
        self.profiler.live.cancel(run.id)
        self.notify(CANCELLING[min(count, len(CANCELLING)) - 1], title="Ending the program", markup=False)

    def action_again(self) -> None:
        """Runs the program once more; one of an opened session is asked about first, because a file names it."""
        from jaxprof.tui.program_again import run_again

        if self.run is not None:
            run_again(self.profiler, self.run)
