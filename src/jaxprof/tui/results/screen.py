"""The screen of the runs: the variants side by side with their figures, or where each is while it is measured; below,
all of the row under the cursor, and what its process wrote.

Events drive everything but the clock of the current phase, a cell that is redrawn ten times a second. When nothing
runs, there is no timer, and nothing is sent to the terminal. The screen computes nothing: `jaxprof.analysis` derives,
the widgets draw.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from textual.containers import Vertical
from textual.content import Content

from jaxprof.analysis.runs.run_result import RunResult, newest_run
from jaxprof.base.errors import UsageError
from jaxprof.base.text import safe
from jaxprof.base.units import counted, seconds
from jaxprof.report.runs import RunGroup, break_even_text, leading_run, parameters_text, verdict_parts
from jaxprof.runner.planning import left_in_words
from jaxprof.session.run import IMPORTED
from jaxprof.tui import clock
from jaxprof.tui.keys import key_of
from jaxprof.tui.kit.dialogs import Confirm, rerun_program
from jaxprof.tui.kit.drawing import whole_parts
from jaxprof.tui.kit.format import baseline_name, half_width, interval, speedup_style
from jaxprof.tui.kit.guard import HIDDEN, on
from jaxprof.tui.kit.host import Destination, Host
from jaxprof.tui.kit.picture import OUTPUT_TITLE, Lines, LogPane, show_titles
from jaxprof.tui.kit.screen import SessionScreen
from jaxprof.tui.results.result_panel import ResultPanel
from jaxprof.tui.results.run_table import RunTable

if TYPE_CHECKING:
    from pathlib import Path

    from textual.app import ComposeResult

    from jaxprof.findings import Explanation
    from jaxprof.session import Run, Session


class ResultsScreen(SessionScreen, keys="results"):
    MODE = "results"
    TICK_SECONDS = 0.1
    AUTO_FOCUS = "#results"
    EXPLAINS = True

    _followed = ""
    """The newest run, which the cursor follows until the user moves it to another row."""
    _found: Explanation | None = None

    def compose_body(self) -> ComposeResult:
        yield Lines(id="verdict")
        with Vertical(id="results-box", classes="box") as box:
            box.border_title = "Runs"
            yield RunTable()
        yield ResultPanel(id="panel", classes="box")
        with Vertical(id="log-box", classes="box") as box:
            box.border_title = OUTPUT_TITLE
            yield LogPane(id="log")

    # -- showing ----------------------------------------------------------------------------------------------

    def show_session(self, runs: frozenset[str], *, replaced: bool) -> None:
        session, grows = self.profiler.session, self.profiler.session_grows
        if replaced:
            self._followed = ""
        rows = self._rows
        rows.show(session, runs)
        if not grows:
            rows.move_to_key(self.profiler.destination.run)
        newest = newest_run(session) if grows or (self._ours and not replaced) else ""
        if newest and newest != self._followed:
            if self._followed in ("", rows.current) or replaced:
                rows.move_to_key(newest)
            self._followed = newest
        self._show_summary()
        self._show_panel()
        self.set_clock(self._ticks)

    @property
    def _rows(self) -> RunTable:
        return self.query_one(RunTable)

    @property
    def _ticks(self) -> bool:
        return self.profiler.session_grows and any(
            run.status == "running" for run in self.profiler.session.runs.values()
        )

    @property
    def _ours(self) -> bool:
        return self.profiler.session is self.profiler.live.session

    @on(RunTable.Sorted)
    def _show_summary(self) -> None:
        """Show on the frame how many runs there are or are done, how long the others will take, marks and order."""
        runs, rows = self.profiler.session.runs.values(), self._rows
        parts = [counted(len(runs), "run")] if runs else []
        if runs and self.profiler.session_grows:
            waiting = sum(run.shown.status == "queued" for run in runs)
            parts = [f"{sum(run.shown.over for run in runs)} of {len(runs)} done"]
            parts += [f"{waiting} queued"] if waiting else []
            parts += [left_in_words(runs, clock.monotonic() + self.profiler.opened.clock_shift_seconds)]
        parts += [f"{len(rows.marked)} marked"] if rows.marked else []
        parts += [rows.order_in_words] if runs else []
        show_titles(self.query_one("#results-box"), subtitle=Content(" · ".join(filter(None, parts))))

    def arrive(self, destination: Destination) -> None:
        if not self.profiler.session_grows:
            self._rows.move_to_key(destination.run)
        self.set_clock(self._ticks)

    def tick(self) -> None:
        self._rows.tick()
        self._show_summary()

    def on_row_list_highlighted(self, message: RunTable.Highlighted) -> None:
        """Show another row; the cursor stops following the queue unless it is on the current run."""
        if not self.whole:
            return
        run = self.chosen
        if run is not None and run.id != self.profiler.destination.run:
            self.profiler.select(run.id)
        self._show_panel()
        self.query_one(ResultPanel).scroll_home(animate=False)

    @property
    def chosen(self) -> Run | None:
        result = self._rows.current_row
        return result.run if result is not None else None

    def show_explanation(self, found: Explanation) -> None:
        self._found = found
        self._show_panel()

    def _show_panel(self) -> None:
        rows, result = self._rows, self._rows.current_row
        run = result.run if result is not None else None
        group = rows.group_by_run.get(run.id) if run is not None else None
        self.set_class(run is not None and bool(run.log), "-wrote")
        sweep = rows.sweeps.get(group.workload) if group is not None else None
        session, found = self.profiler.session, self._found
        all_findings = found.findings if found is not None and found.session is session else ()
        findings = [each for each in all_findings if run is not None and run.id in (each.run, *each.also)]
        self.query_one("#verdict", Lines).show(partial(verdict_line, group, result))
        self.query_one(ResultPanel).show(session, result, group, sweep, findings)
        self.query_one(LogPane).show(run.id if run is not None else "", run.log if run is not None else ())
        self.refresh_bindings()

    # -- keys -------------------------------------------------------------------------------------------------

    def why_not(self, action: str, parameters: tuple[object, ...]) -> str | None:
        """Dim the keys that can do nothing now, or hide them without any run; Esc is the app's unless zoomed."""
        if not self.whole:
            return super().why_not(action, parameters)
        if action == "unzoom":
            return None if self.has_class("-zoom") or self.has_class("-log") else HIDDEN
        on_runs = ("log", "step", "sort", "reverse", "copy", "open", "mark", "compare", "cancel", "again")
        if action not in on_runs:
            return super().why_not(action, parameters)
        runs, run = self.profiler.session.runs, self.chosen
        if not runs:
            return HIDDEN
        from jaxprof.tui.results.compare_dialog import unfit

        if action == "compare" and any(unfit(each) is None for each in runs.values()):
            return None
        if run is None:
            return "no run is chosen" if action == "cancel" else ""
        if action == "open" and self.has_class("-zoom"):
            return ""
        if action in ("mark", "compare") and (error := unfit(run)) is not None:
            return str(error)
        if action == "cancel" and (run.shown.over or not self._ours):
            return "this run has ended" if run.shown.over else "another process runs it: cancel it there"
        if action == "again" and run.plan.how == IMPORTED:
            from jaxprof.runner.rerun import NOT_AGAIN

            return f"{run.label} {'. '.join(NOT_AGAIN[IMPORTED])}"
        return "this run has not ended yet" if action == "again" and not run.shown.over else None

    @on(RunTable.Chosen)
    def action_open(self) -> None:
        run = self.chosen
        if run is not None and run.is_program:
            self.profiler.show(Destination("program", run=run.id))
        elif run is not None:
            self._give_room("-zoom", self.query_one(ResultPanel))

    def action_step(self, step: int) -> None:
        self._rows.action_move(step)

    def action_mark(self) -> None:
        rows, run = self._rows, self.chosen
        if run is None:
            return
        if run.id not in rows.marked and len(rows.marked) == 2:
            hint = f"{key_of('results.mark')} on one of them unmarks it; {key_of('results.compare')} compares them."
            raise UsageError("two runs are marked already", hint)
        rows.toggle(run.id)
        rows.action_move(1)
        self._show_summary()

    def action_compare(self) -> None:
        from jaxprof.tui.results.compare_dialog import in_comparison, in_order, of_runs

        session, marked, run = self.profiler.session, self._rows.marked, self.chosen
        sides = in_comparison(session, run) if run is not None and not marked else None
        self.app.push_screen(of_runs(session, *(sides or in_order(session, marked))))

    def action_sort(self) -> None:
        self._rows.action_sort_by_next()

    def action_reverse(self) -> None:
        self._rows.action_turn()

    def action_log(self) -> None:
        self._give_room("-log", self.query_one(LogPane))

    def action_unzoom(self) -> None:
        if self.has_class("-log"):
            self.action_log()
        else:
            self._give_room("-zoom", self.query_one(ResultPanel))

    def _give_room(self, name: str, part: ResultPanel | LogPane) -> None:
        self.toggle_class(name)
        (part if self.has_class(name) else self._rows).focus()
        self.refresh_bindings()

    def action_cancel(self) -> None:
        run = self.chosen
        if run is not None and not run.shown.over:
            self.profiler.live.cancel(run.id)
            self._rows.redraw()  # at once, because its end may take a moment

    def action_again(self) -> None:
        if (run := self.chosen) is not None:
            run_again(self.profiler, run)

    def action_copy(self) -> None:
        if (result := self._rows.current_row) is not None:
            self.copy(row_text(result, baseline_name(self.profiler.session, result.run)))


def verdict_line(group: RunGroup | None, chosen: RunResult | None, width: int) -> list[Content]:
    """Return the answer of a group of runs in one line: how fast, whether the result is right, when it pays off."""
    if group is None or chosen is None:
        return []
    shown = leading_run(group, chosen)
    parts = verdict_parts(group, shown)
    speedup = shown.versus.speedup if shown.versus is not None else None
    wrong = shown.run.check is not None and shown.run.check.passed is False
    style = speedup_style(speedup) if speedup is not None else "$foreground"
    style = "$error" if wrong else style
    contents = [Content.styled(safe(part), "" if at else f"bold {style}") for at, part in enumerate(parts)]
    return [whole_parts(contents, width)] if parts else []


LONGEST_SHOWN = 800
"""Most characters of code in the dialog of `run_again`: the user must see all of it before answering."""


def run_again(app: Host, run: Run) -> None:
    """Queue a run and its baseline again; code that only a session file names is shown first, and starts once the user
    agrees. Raises UsageError for what cannot be repeated or shown."""
    from jaxprof.runner.rerun import plan_again

    if run.is_program:
        rerun_program(app, run)
        return
    planned = plan_again(app.session, run.id)
    shown = code_to_confirm(app.session, run, app.session_path) if app.session is not app.live.session else ""
    if not shown:
        app.start_runs(planned)
        return
    question = f"This run comes from the session file. It runs the code of:\n{shown}"
    Confirm("Run again", question, "Run").ask(app, lambda yes: app.start_runs(planned))


def code_to_confirm(session: Session, run: Run, path: Path | None) -> str:
    """Return the code that the session file would run, to be shown first; empty if there is none. Raises UsageError for
    a downloaded file, and for more than a dialog shows: nothing may hide below its end."""
    from jaxprof.runner.rerun import list_starts, refuse_fetched

    if path is not None:
        refuse_fetched(path)
    shown = "\n".join(list_starts(session, run))
    if len(shown) > LONGEST_SHOWN:
        raise UsageError("the code in the file is too long for a dialog", "jaxprof run --from FILE shows it.")
    return shown


def row_text(result: RunResult, baseline: str) -> str:
    """Return a run in one line, for a message or a commit: names, median with interval, speed-up, break-even."""
    run = result.run
    head = f"{safe(run.label)} {parameters_text(run.plan.parameters)}".rstrip()
    if result.summary is None:
        return f"{head}: {run.shown.status}" + (f" ({safe(run.shown.error)})" if run.shown.error else "")
    text = f"{head}: median {seconds(result.summary.median)}{half_width(result.summary)} ({interval(result.summary)})"
    if result.versus is not None:
        text += f", {result.versus.speedup.ratio_text} over {safe(baseline)}"
        if result.versus.break_even_calls is not None:
            text += f", break-even after {break_even_text(result)}"
    return text.replace("\u202f", " ")
