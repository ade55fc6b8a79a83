"""The Run screen: the queue, the phase of each run with its clock, the samples as they arrive, and the run's output.

Events drive everything but the clock of the current phase, a cell that is redrawn ten times a second. When nothing
runs, there is no timer, and nothing is sent to the terminal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from textual.containers import Horizontal, Vertical
from textual.content import Content

from jaxprof.analysis import result
from jaxprof.analysis.run_result import Convergence
from jaxprof.errors import JaxprofError, UsageError
from jaxprof.runner.expected_time import left_in_words, seconds_left
from jaxprof.text import shorten
from jaxprof.tui.keys import key_of
from jaxprof.tui.kit.captures import RunKeys
from jaxprof.tui.kit.dialogs import Confirm
from jaxprof.tui.kit.format import baseline_name
from jaxprof.tui.kit.log_pane import OUTPUT_TITLE, LogPane
from jaxprof.tui.kit.picture import Lines, Picture
from jaxprof.tui.kit.plots import WAITING, distribution, trend
from jaxprof.tui.kit.program_summary import OF_PROGRAM
from jaxprof.tui.kit.run_list import RunList
from jaxprof.tui.run.current_run import (
    PhaseStrip,
    convergence_text,
    failure,
    figures,
    launch_text,
    steps,
    why_no_samples,
)

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from jaxprof.runner import PlannedRun
    from jaxprof.session import Run, Session
    from jaxprof.tui.profiler import Profiler


_LONGEST = 800
"""Most characters of code in the dialog: the user must see all of it before answering."""


def run_again(app: Profiler, run: Run) -> None:
    """Queue a run and its baseline again.

    Code that only a session file names is shown first; until the user answers, nothing of it is planned or started.
    """
    if run.is_program:
        from jaxprof.tui.kit.script_dialog import rerun_program

        rerun_program(app, run)
        return
    plans = app.live.planned if app.session is app.live.session else {}
    if run.id in plans:
        app.start_runs(planned_again(app.session, run.id, plans))
        return
    try:
        shown = code_to_confirm(app.session, run, app.session_path)
    except JaxprofError as error:
        app.tell(error)
        return

    def start(yes: bool = True) -> None:
        try:
            app.start_runs(planned_again(app.session, run.id, plans))
        except JaxprofError as error:
            app.tell(error)

    if shown:
        question = f"This run comes from the session file. It runs the code of:\n{shown}"
        Confirm("Run again", question, "Run").ask(app, start)
    else:
        start()


def planned_again(session: Session, run_id: str, plans: Mapping[str, PlannedRun]) -> list[PlannedRun]:
    """Return the plan of the run `run_id` of `session`, its baseline first.

    `plans` holds the plans of this app by run id; for an opened session the plan comes from its file. Raises UsageError
    if the file does not say enough.
    """
    planned = plans.get(run_id)
    if planned is None:
        from jaxprof.runner.rerun import SidesAgain, plan_again

        return plan_again(session, run_id, SidesAgain(ask=lambda lines: None))  # shown before
    if planned.spec.side:
        first = planned.baseline or planned
        again = replace(first)
        others = [plan for plan in plans.values() if plan.baseline is first]
        return [again, *(replace(plan, baseline=again) for plan in others)]
    if planned.baseline is None:
        return [replace(planned)]
    baseline = replace(planned.baseline)
    return [baseline, replace(planned, baseline=baseline)]


def code_to_confirm(session: Session, run: Run, path: Path | None) -> str:
    """Return the code that the session file would run, to be shown first; empty if there is none.

    Raises UsageError for a downloaded file, and for more than a dialog shows: nothing may hide below its end.
    """
    from jaxprof.runner.from_file import refuse_fetched
    from jaxprof.runner.rerun import recorded_starts

    if path is not None:
        refuse_fetched(path)
    shown = "\n".join(recorded_starts(session, run))
    if len(shown) > _LONGEST:
        raise UsageError("the code in the file is too long for a dialog", "jaxprof run --from FILE shows it.")
    return shown


class RunScreen(RunKeys, keys="run"):
    """The current runs, and earlier ones of the session."""

    MODE = "run"
    TICK_SECONDS = 0.1
    AUTO_FOCUS = "#runs"

    def __init__(self) -> None:
        super().__init__()
        self._followed = ""
        """The newest run, which the cursor follows until the user moves it to another row."""
        self._titles: dict[str, str] = {}
        self._convergence = Convergence()

    def compose_body(self) -> ComposeResult:
        with Vertical(id="runs-box", classes="box") as box:
            box.border_title = "Runs"
            yield RunList(id="runs")
        with Vertical(id="run-now", classes="box"):
            yield PhaseStrip(id="strip")
            with Horizontal(id="samples"):
                yield Picture(id="distribution")
                yield Picture(id="trend")
            yield Lines(id="figures")
            yield Lines(id="failure")
        with Vertical(id="log-box", classes="box") as box:
            box.border_title = OUTPUT_TITLE
            yield LogPane(id="log")

    # -- showing ----------------------------------------------------------------------------------------------

    def show_session(self, runs: frozenset[str], *, replaced: bool) -> None:
        """Show the list and the run under the cursor; the clock ticks while a run is in progress."""
        session, rows = self.profiler.session, self.query_one(RunList)
        if replaced:
            self._convergence, self._followed = Convergence(), ""
        rows.shift_seconds = self.query_one(PhaseStrip).shift_seconds = self.profiler.opened.clock_shift_seconds
        rows.show(session, runs, growing=self.profiler.session_grows)
        rows.cancelling = self.profiler.live.cancelling if self._ours else frozenset()
        running = any(run.status == "running" for run in session.runs.values())
        newest = newest_run(session) if self._ours or self.profiler.session_grows or running else ""
        if newest and newest != self._followed:
            if self._followed in ("", rows.current) or replaced:
                rows.move_to_key(newest)
            self._followed = newest
        self._show_summary()
        run = self.chosen
        if replaced or rows.current in runs or (run is not None and run.plan.baseline in runs):
            self._show_run()
        self.set_clock(running and self.profiler.session_grows)

    @property
    def chosen(self) -> Run | None:
        key = self.query_one(RunList).current
        return self.profiler.session.runs.get(key) if isinstance(key, str) else None

    def _show_summary(self) -> None:
        """Show on the frame of the list how many runs are done, and about how long the others will take."""
        runs = self.profiler.session.runs.values()
        parts = [f"{sum(run.shown.over for run in runs)} of {len(runs)} done"] if runs else []
        if self.profiler.session_grows:
            waiting = sum(run.shown.status == "queued" for run in runs)
            parts += [f"{waiting} queued"] if waiting else []
            parts += [left_in_words(seconds_left(runs, monotonic() + self.profiler.opened.clock_shift_seconds))]
        self._set_title("runs-box", "", " · ".join(filter(None, parts)))

    def _set_title(self, box: str, title: str, subtitle: str) -> None:
        if self._titles.get(box) != title + "\0" + subtitle:
            self._titles[box] = title + "\0" + subtitle
            widget = self.query_one(f"#{box}")
            if title:
                widget.border_title = Content(title)
            widget.border_subtitle = Content(subtitle)

    def _show_run(self) -> None:
        """Show the run under the cursor."""
        run = self.chosen
        self.set_class(run is None, "-nothing")
        self.set_class(run is not None and bool(run.log), "-wrote")
        self.refresh_bindings()
        if run is None:
            self.query_one(LogPane).show("", ())
            return
        run_result = result(self.profiler.session, run.id)
        state = f"{run.shown.status} · pid {run.pid}" if run.shown.status == "running" and run.pid else run.shown.status
        state = " · ".join(part for part in (launch_text(run), state) if part)
        self._set_title("run-now", shorten(f"{run.variant} · {run.plan.device}", 48), state)
        self.query_one(PhaseStrip).show(steps(run_result, growing=self.profiler.session_grows))
        samples = run.samples("run")
        broken = run.shown.status in ("failed", "crashed", "interrupted", "timed out") or bool(
            run.shown.error and not samples
        )
        program = run.is_program
        self.query_one(PhaseStrip).display = not program
        self.query_one("#samples").display = not broken and not program
        key = (run.id, len(samples))
        empty = why_no_samples(run)
        shown = (key, empty)
        self.query_one("#distribution", Picture).show(
            shown, lambda w, h: distribution(samples, run_result.summary, w, h, empty, run_result.modes)
        )
        beside = empty if empty == WAITING else ""
        self.query_one("#trend", Picture).show(
            shown, lambda w, h: trend(samples, run_result.summary, w, h, beside, run_result.modes)
        )
        so_far = convergence_text(self._convergence.of(run))
        baseline = self.profiler.session.runs.get(run.plan.baseline)
        theirs = len(baseline.samples("run")) if baseline is not None else 0
        name = baseline_name(self.profiler.session, run)
        self.query_one("#figures", Lines).show(
            (key, theirs, run.shown.status, run.check is None),
            lambda width: [OF_PROGRAM] if program else figures(run_result, name, so_far, width),
        )
        self.query_one("#failure", Lines).show(
            (run.id, run.shown.status, run.shown.error), lambda width: failure(run, width) if broken else ()
        )
        self.query_one(LogPane).show(run.id, run.log)

    def tick(self) -> None:
        self.query_one(RunList).tick()
        self.query_one(PhaseStrip).tick()
        self._show_summary()

    def come_into_view(self) -> None:
        """Show what changed out of view, and start the clock again."""
        super().come_into_view()
        if not self.whole:
            return
        running = any(run.status == "running" for run in self.profiler.session.runs.values())
        self.set_clock(running and self.profiler.session_grows)

    # -- keys -------------------------------------------------------------------------------------------------

    def on_row_list_highlighted(self, message: RunList.Highlighted) -> None:
        """Show another run; the cursor stops following the queue unless it is on the current run."""
        if not self.whole:
            return
        run = self.chosen
        if run is not None:
            self.profiler.run_in_view = run.id
        self._show_run()

    def on_row_list_chosen(self, message: RunList.Chosen) -> None:
        """Open a run that was clicked twice."""
        self.action_open()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Dim the keys that can do nothing now."""
        run = self.chosen if self.whole else None
        if action == "close_log":
            return self.has_class("-log")
        if action in ("pause", "resume"):
            return self.whole and self.can_pause(action)
        if action == "log":
            return None if run is None else True
        if action == "cancel":
            return True if run is not None and not run.shown.over and self._ours else None
        if action == "cancel_all":
            return True if self._ours and self.profiler.live.busy else None
        if action == "again":
            return True if run is not None and run.shown.over else None
        return super().check_action(action, parameters)

    def why_not(self, action: str) -> str:
        run = self.chosen
        if action == "cancel" and run is not None:
            return "this run has ended" if run.shown.over else "another process runs it: cancel it there"
        if action in ("cancel", "cancel_all"):
            return "nothing runs or waits here"
        if action == "again" and run is not None:
            return "this run has not ended yet"
        return ""

    @property
    def _ours(self) -> bool:
        """Whether this app writes the session in view."""
        return self.profiler.session is self.profiler.live.session

    def action_cancel(self) -> None:
        run = self.chosen
        if run is not None and not run.shown.over:
            self.profiler.live.cancel(run.id)
            self._show_cancelling()

    def action_cancel_all(self) -> None:
        def cancel(yes: bool) -> None:
            self.profiler.live.cancel_all()
            self._show_cancelling()

        question = "The current run and all queued runs are cancelled. What they have measured so far is kept."
        Confirm("Cancel all runs?", question, "Cancel all").ask(self.app, cancel)

    def _show_cancelling(self) -> None:
        """Show at once that a run is being cancelled, because its end may take a moment."""
        rows = self.query_one(RunList)
        rows.cancelling = self.profiler.live.cancelling
        rows.redraw(rows.cancelling)

    def action_pause(self) -> None:
        super().action_pause()
        self.set_clock(False)
        self._set_title("runs-box", "", f"paused: {key_of('run.resume')} follows")

    def action_again(self) -> None:
        run = self.chosen
        if run is not None:
            run_again(self.profiler, run)

    def action_log(self) -> None:
        self.toggle_class("-log")
        (self.query_one(LogPane) if self.has_class("-log") else self.query_one(RunList)).focus()

    def action_close_log(self) -> None:
        self.action_log()


def newest_run(session: Session) -> str:
    """Return the run in progress that began last (earlier ones may wait for their turn), else the one that ended
    last; empty before the first run."""
    runs = list(session.runs.values())
    running = [run.id for run in runs if run.status == "running"]
    ended = [(run.ended_seconds, at) for at, run in enumerate(runs) if run.ended_seconds is not None]
    return running[-1] if running else runs[max(ended)[1]].id if ended else ""
