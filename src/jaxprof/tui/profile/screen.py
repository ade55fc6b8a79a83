"""The Profile screen: the captures of a run (which are not timings): timeline, compilation and memory.

Each view is a tab. A program of an opened profile has its own kernels and shares the timeline of the profile; an opened
profile also has an overview, which is its first view.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from textual.content import Content
from textual.widgets import ContentSwitcher

from jaxprof.analysis.memory import buffers_of, memory_of_dump
from jaxprof.analysis.profile import overview, with_hlo
from jaxprof.analysis.programs.derive import program_result
from jaxprof.analysis.timeline import TEXT_NAME
from jaxprof.report.memory import fit_words
from jaxprof.session.run import IMPORTED
from jaxprof.text import shorten
from jaxprof.tui.kit.captures import (
    TrustLine,
    ask_about,
    can_capture,
    capture,
    first_with_capture,
    how_to_capture,
    nothing_was_run,
    source_of,
    uncaptured_program,
    views_of,
    whole_of,
    why_no_capture,
)
from jaxprof.tui.kit.dialogs import Choose, Option
from jaxprof.tui.kit.guard import HIDDEN, in_thread, on
from jaxprof.tui.kit.row_list import RowList
from jaxprof.tui.kit.screen import SessionScreen
from jaxprof.tui.kit.screen_bars import StageTabs, Tab
from jaxprof.tui.profile.compile_pane import CompilePane
from jaxprof.tui.profile.memory import BufferList, MemoryView
from jaxprof.tui.profile.overview import OverviewList, overview_facts
from jaxprof.tui.profile.timeline.pane import TimelinePane
from jaxprof.units import UNKNOWN, bytes_, percent

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from jaxprof.analysis.profile import ProfileOverview
    from jaxprof.analysis.programs.result import ProgramResult
    from jaxprof.session import Run


def allocator_line(run: Run) -> Content:
    """Return the peak of the device's allocator, as it reports it."""
    memory = run.memory
    if memory is None or memory.allocator_peak_bytes is None:
        why = "a CPU's allocator keeps no count" if run.plan.device.startswith("cpu") else "the device reports none"
        if run.plan.how == IMPORTED:
            why = "a profile has none"
        return Content.styled(f"allocator peak, measured: {UNKNOWN} ({why})", "$text-muted")
    limit = memory.allocator_limit_bytes
    share = memory.allocator_peak_bytes / limit if limit else None
    of = f" of {bytes_(limit)}, {percent(share)}" if limit else ""
    return Content.assemble("allocator peak, measured: ", (bytes_(memory.allocator_peak_bytes), "bold"), of)


def arrays_of(program: ProgramResult) -> list[tuple[float, int]]:
    """Return the bytes of a program's live arrays by the second of its life. Counts that repeat the last one are not
    recorded, so that one holds until the end, or until now."""
    counts = program.arrays.counts if program.arrays is not None else ()
    points = [(second, size) for second, _, size in counts]
    return [*points, (program.wall_seconds, points[-1][1])] if points else []


_NO_MEMORY = {
    "numpy": "NumPy's memory is unknown: XLA compiles no program for it.",
    "eager": "An op-by-op run has no single program whose memory could be shown.",
    "imported": "This profile has no HLO of the program, from which its memory could be derived.",
}
_NO_SCHEDULE = "This module has no schedule, so the lifetimes of its buffers are unknown."
_NO_PASSES = {
    "numpy": "NumPy compiles nothing.",
    "eager": "An op-by-op run compiles each op by itself: the details of the run list the time of each.",
    "imported": "This profile has no compilation with phases. One that starts before the first call of a function "
    "has them; times of kernels are better read from one that is started after it.",
}
"""Why a run has none, by how it was run."""


def why_no_memory(run: Run) -> str:
    """Return why a run has no memory to show."""
    over = "No memory was recorded." if run.over else "The program is not compiled yet."
    return _NO_MEMORY.get(run.plan.how, over)


def why_no_passes(run: Run) -> str:
    """Return why a run has no compile passes to show."""
    if run.plan.how in _NO_PASSES:
        return _NO_PASSES[run.plan.how]
    if not run.over:
        return "The compile is captured after the timing, which has not finished yet."
    untaken = [row.message for row in run.trust["compile"].rows] if "compile" in run.trust else []
    if untaken and "compile" not in run.captures:
        return f"The compile was not captured: {untaken[0]}."
    return "The compile was not captured (--no-capture, or a session of an older version)."


VIEWS = {"overview": "Overview", "timeline": "Timeline", "compile": "Compile", "memory": "Memory"}
FOCUS = {"overview": "#overview", "timeline": "#lanes", "compile": "#passes", "memory": "#buffers"}
"""The widget that takes the focus in each view."""


class ProfileScreen(SessionScreen, keys="profile"):
    """The captures of one run."""

    MODE = "profile"
    AUTO_FOCUS = "#lanes"
    _run = ""
    _view = "timeline"
    _overview_of: tuple[str, int] = ("", 0)
    """The run of the whole profile whose overview is shown, and `id` of its session."""

    @property
    def place(self) -> str:
        """The place of this screen in the menu, which lists Compiles and Memory as places of their own."""
        return {"compile": "compiles", "memory": "memory"}.get(self._view, "timeline")

    def compose_body(self) -> ComposeResult:
        yield StageTabs(id="profile-tabs")
        yield TrustLine(id="trust")
        with ContentSwitcher(initial=self._view, id="profile-body"):
            yield OverviewList(id="overview")
            yield TimelinePane(id="timeline")
            yield CompilePane(id="compile")
            yield MemoryView(id="memory")

    # -- which run --------------------------------------------------------------------------------------------

    @property
    def _shown(self) -> Run | None:
        return self.profiler.session.runs.get(self._run)

    def show_session(self, runs: frozenset[str], *, replaced: bool) -> None:
        """Show the run in view if it has changed."""
        session = self.profiler.session
        if replaced or self._run not in session.runs:
            self._choose(first_with_capture(session, self.profiler.run_in_view))
        elif self._run in runs:
            self._choose(self._run)

    def come_into_view(self) -> None:
        """Show the run that another screen had in view, in the requested view."""
        super().come_into_view()
        if not self.whole:
            return
        session, wanted = self.profiler.session, self.profiler.run_in_view
        view, self.profiler.view_wanted = self.profiler.view_wanted, ""
        if wanted != self._run and wanted in session.runs and (view or views_of(session, session.runs[wanted])):
            self._choose(wanted)
        elif not session.runs:  # what is said of it depends on what else is open
            self._choose("")
        if view in VIEWS:
            self.action_tab(view)
        kernel, self.profiler.kernel_wanted = self.profiler.kernel_wanted, ""
        if kernel:
            self.query_one(TimelinePane).want_kernel(kernel)

    def _choose(self, run_id: str) -> None:
        self._run = run_id
        session = self.profiler.session
        run = session.runs.get(run_id)
        source = source_of(session, run) if run is not None else None
        words = self._words(run)
        self.query_one(TrustLine).show_run(source if not words else None)  # the views say it
        self._show_tabs()
        self.refresh_bindings()
        if run is None or source is None:
            self.query_one(TimelinePane).show(session, "", None, words)
            self.query_one(CompilePane).show(None, words)
        else:
            recorded, passes = TEXT_NAME in source.texts, run.compile_passes
            why = "" if recorded else words or f"No timeline. {why_no_capture(run)}"
            self.query_one(TimelinePane).show(session, source.id if recorded else "", source.steps, why)
            self.query_one(CompilePane).show(passes.tree if passes is not None else None, words or why_no_passes(run))
            self._show_overview(run)
        self._show_memory(run)

    def _words(self, run: Run | None) -> str:
        """Return why there is nothing to show: nothing was run, or the program was not captured; empty otherwise."""
        if run is None:
            return nothing_was_run(self.profiler)
        program = uncaptured_program(self.profiler.session)
        return how_to_capture(self.profiler, program) if program is run else ""

    def _show_memory(self, run: Run | None) -> None:
        """Show the memory while it is in view: a thread derives it from the HLO of the program."""
        if self._view != "memory":
            return
        session, words, view = self.profiler.session, self._words(run), self.query_one(MemoryView)
        if (module := self.profiler.module_in_view) is not None:
            view.read(module, lambda: memory_of_dump(module), _NO_SCHEDULE)
        elif run is None or words:
            program = program_result(session, run.id) if run is not None and run.is_program else None
            known = (fit_words(session, program), arrays_of(program)) if program is not None else ()
            view.show_words(words, *known)
        else:
            compiled = with_hlo(session, run)
            key, why = (id(session), compiled.id), why_no_memory(compiled)
            view.read(key, lambda: buffers_of(session, compiled.id), why, allocator_line(compiled))

    def _show_overview(self, run: Run) -> None:
        """Read the overview of a profile in a thread, because that reads the HLO of its programs."""
        session = self.profiler.session
        whole = whole_of(session, run)
        if whole is None:
            if self._view == "overview":
                self.action_tab("timeline")
        elif self._overview_of != (whole.id, id(session)):
            self._overview_of = (whole.id, id(session))
            self.query_one(OverviewList).show(None, lambda width: ())
            wanted = self._overview_of

            def show(contents: ProfileOverview) -> None:
                if wanted == self._overview_of:
                    self.query_one(OverviewList).show(wanted, partial(overview_facts, contents))

            in_thread(self, lambda: overview(session, whole), "overview", then=show)

    @on(RowList.Chosen, "#overview")
    def _to_hlo_of(self) -> None:
        target = self.query_one(OverviewList).target
        if target is not None:
            self.profiler.show_in("hlo", target.run, kernel=target.name)

    # -- tabs -------------------------------------------------------------------------------------------------

    def _show_tabs(self) -> None:
        run = self._shown
        has = views_of(self.profiler.session, run) if run is not None else frozenset()
        tabs = [
            Tab(name, title, enabled=name in has or name == self._view)
            for name, title in VIEWS.items()
            if name in has or name != "overview"
        ]
        module = self.profiler.module_in_view if self._view == "memory" else None
        label = module.title if module is not None else run.label if run is not None else ""
        tabs.append(Tab("", shorten(label, 60), shorten(label, 40), enabled=False))
        self.query_one(StageTabs).show(tabs, frozenset({self._view}))

    def why_not(self, action: str, parameters: tuple[object, ...]) -> str | None:
        """Hide the overview unless a profile is in view, and the capture unless one is missing."""
        session, run = self.profiler.session, self._shown
        if action == "capture" and not can_capture(self.profiler, uncaptured_program(session)):
            return HIDDEN
        if action == "tab" and parameters == ("overview",) and (run is None or whole_of(session, run) is None):
            return HIDDEN
        return super().why_not(action, parameters)

    def action_tab(self, name: str) -> None:
        if name not in VIEWS or not self.check_action("tab", (name,)):
            return
        self._view = name
        self.query_one(ContentSwitcher).current = name
        self._show_memory(self._shown)
        self.query_one(FOCUS[name]).focus()
        self._show_tabs()
        self.show_state()

    def action_next_tab(self, step: int) -> None:
        shown = [name for name in VIEWS if self.check_action("tab", (name,))]
        self.action_tab(shown[(shown.index(self._view) + step) % len(shown)])

    # -- keys -------------------------------------------------------------------------------------------------

    def action_capture(self) -> None:
        capture(self.profiler, uncaptured_program(self.profiler.session))

    def action_trust(self) -> None:
        if self._shown is not None:
            ask_about(self.profiler, self._shown)

    def action_choose_run(self) -> None:
        session = self.profiler.session
        runs = list(session.runs.values())
        if not runs:
            return
        options = [Option(run.label, ", ".join(sorted(views_of(session, run))) or "no capture") for run in runs]
        current = next((n for n, run in enumerate(runs) if run.id == self._run), 0)

        def take(number: int) -> None:
            self.profiler.run_in_view = runs[number].id
            self._choose(runs[number].id)

        Choose("Which run?", options, current).ask(self.app, take)

    @on(RowList.Chosen, "#buffers")
    def _to_instruction(self) -> None:
        session, name = self.profiler.session, self.query_one(BufferList).instruction
        if name:
            of_file = self.profiler.module_in_view is not None
            run = "" if of_file else with_hlo(session, session.runs[self._run]).id
            self.profiler.show_in("hlo", run, kernel=name)

    async def action_back(self) -> None:
        if self._view == "memory" and self.query_one(MemoryView).to_peak():
            return
        if self._view != "timeline" or not self.query_one(TimelinePane).step_back():
            self.profiler.step_back()
