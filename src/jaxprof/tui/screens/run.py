"""Run: the queue while it is worked, each run's phase with its clock, the samples as they come, the child's log.

Everything is driven by what arrives, but for one thing: while a phase goes on and says nothing, its clock is drawn
again ten times a second, one cell of it. When nothing runs there is no timer, and nothing is sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.timer import Timer

from jaxprof.results import result
from jaxprof.results.programs.derive import is_program, program_result
from jaxprof.safe_text import shorten
from jaxprof.tui.again import run_again
from jaxprof.tui.screens.base import SessionScreen
from jaxprof.tui.screens.view_keys import view_keys
from jaxprof.tui.size_class import wear_size
from jaxprof.tui.views import views_of
from jaxprof.tui.widgets.distribution import WAITING, distribution
from jaxprof.tui.widgets.log_pane import LogPane
from jaxprof.tui.widgets.phase_strip import PhaseStrip, steps
from jaxprof.tui.widgets.picture import Lines, Picture
from jaxprof.tui.widgets.program_summary import summary_lines
from jaxprof.tui.widgets.run_figures import failure, figures, why_no_samples
from jaxprof.tui.widgets.run_list import RunList
from jaxprof.tui.widgets.tightening import Tightening
from jaxprof.tui.widgets.trend import trend

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from jaxprof.session import Run

TICK_SECONDS = 0.1


class RunScreen(SessionScreen):
    """The runs that are going on, and those that were."""

    MODE: ClassVar[str] = "run"
    AUTO_FOCUS = "#runs"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "Details", tooltip="Everything that is known of this run", id="run.open"),
        Binding("c", "cancel", "Cancel", tooltip="Cancel this run; the others go on", id="run.cancel"),
        Binding("C", "cancel_all", "Cancel all", tooltip="Cancel this run and all that wait", id="run.cancel_all"),
        Binding("r", "again", "Run again", tooltip="Run this again, beside its baseline", id="run.again"),
        Binding("l", "log", "Log", tooltip="What the worker wrote to its stdout and stderr", id="run.log"),
        *view_keys("run"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._timer: Timer | None = None
        self._followed = ""
        """The running run that the cursor goes along with; empty once somebody has moved it elsewhere."""
        self._titles: dict[str, str] = {}
        self._tightening = Tightening()

    def compose_body(self) -> ComposeResult:
        wear_size(self)
        with Vertical(id="runs-box", classes="box") as box:
            box.border_title = "Runs"
            yield RunList(id="runs")
        with Vertical(id="run-now", classes="box"):
            yield PhaseStrip(id="strip")
            yield Lines(id="program-summary")
            with Horizontal(id="samples"):
                yield Picture(id="distribution")
                yield Picture(id="trend")
            yield Lines(id="figures")
            yield Lines(id="failure")
        with Vertical(id="log-box", classes="box") as box:
            box.border_title = "Log of the worker"
            yield LogPane(id="log")

    # -- showing ----------------------------------------------------------------------------------------------

    def show_session(self, runs: frozenset[str], *, replaced: bool) -> None:
        """Shows the list, the run under the cursor, and lets the clock run while something does."""
        session, rows = self.profiler.session, self.query_one(RunList)
        if replaced:
            self._tightening, self._followed = Tightening(), ""
        rows.shift_seconds = self.query_one(PhaseStrip).shift_seconds = self.profiler.clock_shift_seconds
        rows.show(session, runs, growing=self.profiler.session_grows)
        running = next((run.id for run in session.runs.values() if run.status == "running"), "")
        if running and running != self._followed:
            if self._followed in ("", rows.current) or replaced:
                rows.move_to_key(running)
            self._followed = running
        self._show_summary()
        if replaced or rows.current in runs or self._baseline() in runs:
            self._show_run()
        self._set_clock(bool(running) and self.profiler.session_grows)

    def _baseline(self) -> str:
        run = self._run()
        return run.plan.baseline if run is not None else ""

    def _run(self) -> Run | None:
        key = self.query_one(RunList).current
        return self.profiler.session.runs.get(key) if isinstance(key, str) else None

    def _show_summary(self) -> None:
        """How many of the runs are done, on the frame of their list."""
        runs = self.profiler.session.runs.values()
        over = sum(run.over for run in runs)
        waiting = sum(run.status == "queued" for run in runs) if self.profiler.session_grows else 0
        text = f"{over} of {len(runs)} done" if len(runs) else ""
        self._set_title("runs-box", "", f"{text} · {waiting} waiting" if waiting else text)

    def _set_title(self, box: str, title: str, subtitle: str) -> None:
        if self._titles.get(box) != title + "\0" + subtitle:
            self._titles[box] = title + "\0" + subtitle
            widget = self.query_one(f"#{box}")
            if title:
                widget.border_title = Content(title)
            widget.border_subtitle = Content(subtitle)

    def _show_run(self) -> None:
        """The run under the cursor."""
        run = self._run()
        self.set_class(run is None, "-nothing")
        self.refresh_bindings()
        if run is None:
            self.query_one(LogPane).show("", ())
            return
        one = result(self.profiler.session, run.id)
        state = f"{run.status} · pid {run.pid}" if run.status == "running" and run.pid else run.status
        self._set_title("run-now", shorten(f"{run.plan.variant} · {run.plan.device}", 48), state)
        self.query_one(PhaseStrip).show(steps(one, growing=self.profiler.session_grows))
        samples = run.samples("run")
        broken = run.status in ("failed", "crashed") or bool(run.error and not samples)
        program = is_program(run)
        self.query_one(PhaseStrip).display = not program
        self.query_one("#samples").display = not broken and not program
        self._show_program(run if program else None)
        key = (run.id, len(samples))
        empty = why_no_samples(run)
        shown = (key, empty)
        self.query_one("#distribution", Picture).show(
            shown, lambda w, h: distribution(samples, one.summary, w, h, empty)
        )
        beside = empty if empty == WAITING else ""
        self.query_one("#trend", Picture).show(shown, lambda w, h: trend(samples, one.summary, w, h, beside))
        so_far = self._tightening.of(run.id, samples)
        baseline = self.profiler.session.runs.get(run.plan.baseline)
        theirs = len(baseline.samples("run")) if baseline is not None else 0
        name = baseline.plan.variant if baseline is not None else ""
        self.query_one("#figures", Lines).show(
            (key, theirs, run.status, run.check is None), lambda width: figures(one, name, so_far, width)
        )
        self.query_one("#failure", Lines).show(
            (run.id, run.status, run.error), lambda width: failure(run, width) if broken else ()
        )
        self.query_one(LogPane).show(run.id, run.log)

    def _show_program(self, run: Run | None) -> None:
        """A program of the user's has a screen for itself; here stands the most important of it."""
        lines = self.query_one("#program-summary", Lines)
        if run is None:
            lines.show(None, lambda width: ())
            return
        session, found = self.profiler.session, program_result(self.profiler.session, run.id)
        key = (run.id, run.status, len(found.stretches), len(found.compiles))
        lines.show(key, lambda width: summary_lines(session, found, width))

    # -- the clock --------------------------------------------------------------------------------------------

    @property
    def ticking(self) -> bool:
        """Whether a clock is drawn again and again."""
        return self._timer is not None

    def _set_clock(self, on: bool) -> None:
        """The only timer of this screen: there while a run goes on and the screen is in view."""
        if on and self._timer is None and self.is_current:
            self._timer = self.set_interval(TICK_SECONDS, self._tick)
        elif not on and self._timer is not None:
            self._timer.stop()
            self._timer = None

    def _tick(self) -> None:
        self.query_one(RunList).tick()
        self.query_one(PhaseStrip).tick()

    def on_screen_suspend(self) -> None:
        """Out of view, nothing ticks."""
        self._set_clock(False)

    def come_into_view(self) -> None:
        """Catches up, and lets the clock run again."""
        super().come_into_view()
        if not self.whole:
            return
        running = any(run.status == "running" for run in self.profiler.session.runs.values())
        self._set_clock(running and self.profiler.session_grows)

    # -- keys -------------------------------------------------------------------------------------------------

    def on_row_list_highlighted(self, message: RunList.Highlighted) -> None:
        """Shows another run; the cursor no longer goes along with the queue, unless it was put on the running one."""
        if not self.whole:
            return
        run = self._run()
        if run is not None:
            self.profiler.run_in_view = run.id
        self._show_run()

    def on_row_list_chosen(self, message: RunList.Chosen) -> None:
        """Opens a run that was clicked twice."""
        self.action_open()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys that can do nothing here and now are dimmed."""
        run = self._run() if self.whole else None
        if action in ("open", "log"):
            return None if run is None else True
        if action == "cancel":
            return True if run is not None and not run.over and self._ours else None
        if action == "cancel_all":
            return True if self._ours and self.profiler.live.busy else None
        if action == "again":
            return True if run is not None and run.over else None
        if action == "hlo":
            return True if run is not None and "hlo" in run.texts else None
        if action == "profile":
            return True if run is not None and parameters[0] in views_of(self.profiler.session, run) else None
        return super().check_action(action, parameters)

    @property
    def _ours(self) -> bool:
        """Whether the session in view is the one that this app writes."""
        return self.profiler.session is self.profiler.live.session

    def action_open(self) -> None:
        """Everything of this run, on a screen of its own."""
        from jaxprof.tui.screens.run_detail import RunDetailInRun

        run = self._run()
        if run is not None and is_program(run):
            self.profiler.show_program(run.id)
        elif run is not None:
            self.app.push_screen(RunDetailInRun(run.id))

    def action_cancel(self) -> None:
        """Cancels the run under the cursor."""
        run = self._run()
        if run is not None and not run.over:
            self.profiler.live.cancel(run.id)

    def action_cancel_all(self) -> None:
        """Cancels everything that goes on or waits."""
        self.profiler.live.cancel_all()

    def action_again(self) -> None:
        """Puts this run, and its baseline, into the queue once more."""
        run = self._run()
        if run is not None:
            run_again(self.profiler, run)

    def action_log(self) -> None:
        """The log in place of the samples, or larger; and back."""
        self.toggle_class("-log")
        (self.query_one(LogPane) if self.has_class("-log") else self.query_one(RunList)).focus()

    def action_hlo(self) -> None:
        """What XLA made of this run."""
        run = self._run()
        if run is not None:
            self.profiler.show_hlo(run.id)

    def action_profile(self, view: str) -> None:
        """What was recorded of this run: its timeline, its compile, or its memory."""
        run = self._run()
        if run is not None:
            self.profiler.show_profile(run.id, view)
