"""One run in full: its phases as a table, how its samples are spread and when they were taken, when it pays off.

Pushed over the screen that it was asked from; Esc goes back there. It is told of changes like that screen is, so a
run can be watched here too.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content

from jaxprof.results import RunResult, result
from jaxprof.safe_text import safe, shorten
from jaxprof.tui.screens.base import SessionScreen
from jaxprof.tui.screens.results import row_text
from jaxprof.tui.size_class import wear_size
from jaxprof.tui.widgets.break_even import break_even_plot, curve_of
from jaxprof.tui.widgets.distribution import distribution
from jaxprof.tui.widgets.facts import (
    compile_lines,
    environment_lines,
    failure_lines,
    figure_lines,
    memory_lines,
    phase_lines,
    warning_lines,
)
from jaxprof.tui.widgets.phase_bars import stacked
from jaxprof.tui.widgets.picture import Lines, Picture
from jaxprof.tui.widgets.trend import trend
from jaxprof.tui.widgets.wording import parameters_text

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from jaxprof.session import Run


class RunDetailScreen(SessionScreen):
    """Everything that is known of one run."""

    AUTO_FOCUS = "#detail-scroll"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close", "Back", tooltip="Back to where this was opened", id="run_detail.close"),
        Binding("h", "hlo", "HLO", tooltip="What XLA made of this run", id="run_detail.hlo"),
        Binding("y", "copy", "Copy", tooltip="Copy the figures as text", id="run_detail.copy"),
        Binding("n", "step(1)", "Next run", tooltip="The next run of the session", id="run_detail.next"),
        Binding("p", "step(-1)", "Previous", tooltip="The run before it", id="run_detail.previous"),
        Binding("j", "scroll(1)", "Down", show=False, tooltip="A line down", id="run_detail.down"),
        Binding("k", "scroll(-1)", "Up", show=False, tooltip="A line up", id="run_detail.up"),
    ]

    def __init__(self, run: str) -> None:
        super().__init__()
        self.run = run
        """The id of the run that is shown."""

    def on_unmount(self) -> None:
        """Leaves the screens that are told of changes."""
        if self in self.profiler.session_screens:
            self.profiler.session_screens.remove(self)

    def compose_body(self) -> ComposeResult:
        wear_size(self)
        with VerticalScroll(id="detail-scroll"):
            yield Lines(id="head")
            yield Lines("What went wrong", id="failure", classes="box")
            with Vertical(id="detail-columns"):
                with Vertical(classes="column"):
                    yield Lines("Phases", id="phases", classes="box")
                    yield Lines("Figures", id="figures", classes="box")
                    yield Lines("Warnings", id="warnings", classes="box")
                    yield Lines("Memory", id="memory", classes="box")
                with Vertical(classes="column", id="pictures"):
                    yield Picture("Distribution of the steady run", id="distribution", classes="box")
                    yield Picture("Samples in their order", id="trend", classes="box")
                    yield Picture("When it pays off", id="break-even", classes="box")
                    yield Lines("Compiled op by op", id="compiles", classes="box")
                    yield Lines("Environment", id="environment", classes="box")

    # -- showing ----------------------------------------------------------------------------------------------

    def _run(self) -> Run | None:
        return self.profiler.session.runs.get(self.run)

    def show_session(self, runs: frozenset[str], *, replaced: bool) -> None:
        """Shows the run as it is now; closes when its session is gone."""
        run = self._run()
        if run is None:
            self.call_later(self.action_close)
            return
        if replaced or self.run in runs or run.plan.baseline in runs:
            self._show(run)

    def _show(self, run: Run) -> None:
        session = self.profiler.session
        one = result(session, run.id)
        baseline = result(session, run.plan.baseline) if run.plan.baseline in session.runs else None
        name = baseline.run.plan.variant if baseline is not None else ""
        theirs = baseline.summary if baseline is not None else None
        key = (run.id, run.status, tuple(one.phase_seconds.items()), one.summary, theirs, len(one.warnings))
        self._lines("head", key, lambda width: _head(one, width))
        self._lines("failure", key, lambda width: failure_lines(one, width))
        self._lines("phases", key, lambda width: _phases(one, width))
        self._lines("figures", (key, run.check is None), lambda width: figure_lines(one, name, width))
        self._lines("warnings", key, lambda width: warning_lines(one, width))
        self._lines("memory", (key, run.memory is None), lambda width: memory_lines(one, width))
        self._lines("compiles", (key, len(run.compiles)), lambda width: compile_lines(one, width))
        self._lines("environment", (key, run.environment is None), lambda width: environment_lines(one, width))
        self._show_pictures(one, baseline)
        self.refresh_bindings()

    def _lines(self, name: str, key: Hashable, draw: Callable[[int], Sequence[Content]]) -> None:
        self.query_one(f"#{name}", Lines).show(key, draw)

    def _show_pictures(self, one: RunResult, baseline: RunResult | None) -> None:
        samples = one.run.samples("run")
        key = (one.run.id, len(samples))
        spread, in_order = self.query_one("#distribution", Picture), self.query_one("#trend", Picture)
        spread.display = in_order.display = bool(samples)
        spread.show(key, lambda w, h: distribution(samples, one.summary, w, h))
        in_order.show(key, lambda w, h: trend(samples, one.summary, w, h))
        curve = curve_of(one, baseline)
        picture = self.query_one("#break-even", Picture)
        picture.display = curve is not None
        if curve is not None:
            picture.show(curve, lambda w, h: break_even_plot(curve, w, h))

    # -- keys -------------------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """HLO is there for compiled runs; the next run where there is one."""
        if action == "hlo" and self.whole:
            run = self._run()
            return True if run is not None and "hlo" in run.texts else None
        if action == "step" and self.whole and isinstance(parameters[0], int):
            return True if self._at(parameters[0]) else None
        return super().check_action(action, parameters)

    def _at(self, step: int) -> str:
        """The run so many places further on, or an empty text."""
        ids = list(self.profiler.session.runs)
        index = ids.index(self.run) + step if self.run in ids else -1
        return ids[index] if 0 <= index < len(ids) else ""

    def action_step(self, step: int) -> None:
        """Another run of the session."""
        found = self._at(step)
        if found:
            self.run = self.profiler.run_in_view = found
            self._show(self.profiler.session.runs[found])
            self.query_one("#detail-scroll").scroll_home(animate=False)

    def action_scroll(self, step: int) -> None:
        """A line up or down."""
        self.query_one("#detail-scroll").scroll_relative(y=step, animate=False)

    def action_close(self) -> None:
        """Back to the screen below."""
        if self in self.app.screen_stack:
            self.dismiss()

    def action_hlo(self) -> None:
        """What XLA made of this run."""
        self.profiler.show_hlo(self.run)

    def action_copy(self) -> None:
        """The run in one line, through the terminal's clipboard."""
        run = self._run()
        if run is None:
            return
        session = self.profiler.session
        baseline = session.runs.get(run.plan.baseline)
        text = row_text(result(session, run.id), baseline.plan.variant if baseline is not None else "")
        self.app.copy_to_clipboard(text)
        self.notify(text, title="Copied", markup=False)


class RunDetailInResults(RunDetailScreen):
    """Opened from Results."""

    MODE: ClassVar[str] = "results"


class RunDetailInRun(RunDetailScreen):
    """Opened from Run."""

    MODE: ClassVar[str] = "run"


def _head(one: RunResult, width: int) -> list[Content]:
    """Which run this is."""
    plan = one.run.plan
    how = {"numpy": "NumPy on the host", "eager": "op by op", "jit": "compiled as one program"}.get(plan.how, plan.how)
    precision = f" · precision {plan.precision}" if plan.precision else ""
    preset = f" · {plan.preset}" if plan.preset else ""
    title = Content.assemble(
        (f" {shorten(plan.workload, 30)} ", "bold $primary"),
        (shorten(plan.variant, 30), "bold"),
        (f"  {safe(plan.device)}  ", ""),
        (safe(parameters_text(plan.parameters)), "$text-muted"),
        (safe(f"{preset} · {how}{precision} · {one.run.status}"), "$text-muted"),
    )
    return [title.truncate(width, ellipsis=True)]


def _phases(one: RunResult, width: int) -> list[Content]:
    """The table, and below it what a first result costs, phase by phase."""
    table = phase_lines(one, width)
    bars = stacked(one.phase_seconds, width) if one.run.plan.how != "numpy" else []
    head = Content.styled("to the first result, on a linear scale, end to end", "$quiet")
    return [*table, Content(""), head, *bars] if bars else table
