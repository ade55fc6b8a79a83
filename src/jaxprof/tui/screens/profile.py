"""Profile: what was recorded of a run, rather than timed. When things ran, how the compile went, what is in memory.

The three views are tabs of one place. A run's own captures are shown; a program of an opened profile has its kernels
for itself and shares the timeline of the whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.containers import Container

from jaxprof.results.timeline import TEXT_NAME
from jaxprof.safe_text import safe, shorten
from jaxprof.tui.dialogs.choose import Choose, Option
from jaxprof.tui.screens.base import SessionScreen
from jaxprof.tui.size_class import wear_size
from jaxprof.tui.views import first_with_capture, source_of, views_of
from jaxprof.tui.widgets.memory_pane import BufferList, MemoryPane
from jaxprof.tui.widgets.pass_tree import CompilePane
from jaxprof.tui.widgets.stage_tabs import StageTabs, Tab
from jaxprof.tui.widgets.timeline_pane import TimelinePane
from jaxprof.tui.widgets.trust_line import TrustLine, why_no_capture

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from jaxprof.session import Run, Session

VIEWS = {"timeline": "Timeline", "compile": "Compile", "memory": "Memory"}
FOCUS = {"timeline": "#lanes", "compile": "#passes", "memory": "#buffers"}
"""What takes the keys in each view."""


class ProfileScreen(SessionScreen):
    """The captures of one run."""

    MODE: ClassVar[str] = "profile"
    AUTO_FOCUS = "#lanes"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("t", "tab('timeline')", "Timeline", tooltip="When things ran, lane by lane", id="profile.timeline"),
        Binding("p", "tab('compile')", "Compile", tooltip="Where the time of the compile went: phases and passes",
                id="profile.compile"),
        Binding("m", "tab('memory')", "Memory", tooltip="What the peak of the memory is made of", id="profile.memory"),
        Binding("u", "trust", "Trust", show=False, tooltip="All that was looked at to say whether this can be trusted",
                id="profile.trust"),
        Binding("r", "choose_run", "Run", tooltip="Choose the run to look at", id="profile.run"),
        Binding("escape", "back", "Back", tooltip="Clear the search; then back to where this was opened",
                id="profile.back"),
    ]  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self._run = ""
        self._view = "timeline"

    def on_mount(self) -> None:
        for view in VIEWS:
            self.query_one(f"#{view}").display = view == self._view

    def compose_body(self) -> ComposeResult:
        wear_size(self)
        yield StageTabs(id="profile-tabs")
        yield TrustLine(id="trust")
        with Container(id="profile-body"):
            yield TimelinePane(id="timeline")
            yield CompilePane(id="compile")
            yield MemoryPane(id="memory")

    # -- which run --------------------------------------------------------------------------------------------

    def show_session(self, runs: frozenset[str], *, replaced: bool) -> None:
        """Shows the run that is in view, if it changed."""
        session = self.profiler.session
        if replaced or self._run not in session.runs:
            self._choose(first_with_capture(session, self.profiler.run_in_view))
        elif self._run in runs:
            self._choose(self._run)

    def come_into_view(self) -> None:
        """The run that another screen had in view is in view here too, in the view that was asked for."""
        super().come_into_view()
        if not self.whole:
            return
        session, wanted = self.profiler.session, self.profiler.run_in_view
        view, self.profiler.view_wanted = self.profiler.view_wanted, ""
        if wanted != self._run and wanted in session.runs and (view or views_of(session, session.runs[wanted])):
            self._choose(wanted)
        if view in VIEWS:
            self.action_tab(view)
        kernel, self.profiler.kernel_wanted = self.profiler.kernel_wanted, ""
        if kernel:
            self.query_one(TimelinePane).want_kernel(kernel)

    def _choose(self, run_id: str) -> None:
        self._run = run_id
        session = self.profiler.session
        run = session.runs.get(run_id)
        self.query_one(TrustLine).show(source_of(session, run) if run is not None else None)
        self._show_tabs()
        if run is None:
            self.query_one(TimelinePane).show(session, "", None, "Nothing was run yet.")
            self.query_one(CompilePane).show(None, "Nothing was run yet.")
            self.query_one(MemoryPane).show(session, None)
            return
        source = source_of(session, run)
        words = "" if TEXT_NAME in source.texts else f"No timeline. {why_no_capture(run)}"
        self.query_one(TimelinePane).show(session, source.id if TEXT_NAME in source.texts else "", source.steps, words)
        passes = run.compile_passes
        self.query_one(CompilePane).show(passes.tree if passes is not None else None, why_no_passes(run))
        if self._view == "memory":
            self.query_one(MemoryPane).show(session, run)

    # -- tabs -------------------------------------------------------------------------------------------------

    def _show_tabs(self) -> None:
        run = self.profiler.session.runs.get(self._run)
        has = views_of(self.profiler.session, run) if run is not None else frozenset()
        tabs = [Tab(name, title, title, enabled=name in has or name == self._view) for name, title in VIEWS.items()]
        label = shorten(run.label, 60) if run is not None else ""
        tabs.append(Tab("", label, shorten(label, 40) if label else "", enabled=False))
        self.query_one(StageTabs).show(tabs, frozenset({self._view}))

    def action_tab(self, name: str) -> None:
        """To a view."""
        if name not in VIEWS:
            return
        self._view = name
        for view in VIEWS:
            self.query_one(f"#{view}").display = view == name
        if name == "memory":
            session = self.profiler.session
            self.query_one(MemoryPane).show(session, session.runs.get(self._run))
        self.query_one(FOCUS[name]).focus()
        self._show_tabs()

    # -- keys -------------------------------------------------------------------------------------------------

    def action_trust(self) -> None:
        """Lists all that was looked at."""
        from jaxprof.tui.dialogs.trust import ask_about

        run = self.profiler.session.runs.get(self._run)
        if run is not None:
            ask_about(self.profiler, run)

    def action_choose_run(self) -> None:
        """Asks for the run."""
        session = self.profiler.session
        runs = list(session.runs.values())
        if not runs:
            return
        options = [Option(run.label, ", ".join(sorted(views_of(session, run))) or "no capture") for run in runs]
        current = next((n for n, run in enumerate(runs) if run.id == self._run), 0)

        def chosen(number: int | None) -> None:
            if number is not None:
                self.profiler.run_in_view = runs[number].id
                self._choose(runs[number].id)

        self.app.push_screen(Choose("Which run?", options, current), chosen)

    @on(TimelinePane.HloWanted)
    def _to_hlo(self, message: TimelinePane.HloWanted) -> None:
        """To the HLO of the run that the kernel belongs to."""
        session = self.profiler.session
        run = run_of_op(session, self._run, message.module, message.program)
        if run is None:
            self.notify(f"The HLO of {safe(message.module)} was not recorded.", title="No HLO", markup=False)
        else:
            self.profiler.show_hlo(run, kernel=message.name)

    @on(BufferList.HloWanted)
    def _to_instruction(self, message: BufferList.HloWanted) -> None:
        self.profiler.show_hlo(self._run, kernel=message.name)

    async def action_back(self) -> None:
        """Clears the search; then back to where this was opened."""
        if not self.query_one(TimelinePane).clear_search():
            self.profiler.leave_profile()


def why_no_passes(run: Run) -> str:
    """Why nothing is known of where the time of a compile went."""
    if run.plan.how == "numpy":
        return "NumPy compiles nothing."
    if run.plan.how == "eager":
        return "Op by op there is no one compile: Details of the run lists what each op took."
    if run.plan.how == "imported":
        return "This profile was taken of a run, and has no compile in it; or only one without phases."
    if not run.over:
        return "The compile is captured after the timing; this run is not there yet."
    untaken = [str(row.get("message", "")) for row in run.trust["compile"].rows] if "compile" in run.trust else []
    if untaken and "compile" not in run.captures:
        return f"The compile was not captured: {untaken[0]}."
    return "The compile was not captured (--no-capture, or a session of an older version)."


def run_of_op(session: Session, run_id: str, module: str, program: str | None) -> str | None:
    """The run that has the HLO of an op; None where none has."""
    runs = session.runs
    run = runs.get(run_id)
    if run is not None and "hlo" in run.texts and run.plan.how != "imported":
        return run_id
    programs = [one for one in runs.values() if one.plan.how == "imported" and "hlo" in one.texts]
    same = [one for one in programs if program is not None and one.plan.parameters.get("program") == program]
    named = [one for one in programs if one.plan.workload == module]
    return next((one.id for one in [*same, *named]), None)
