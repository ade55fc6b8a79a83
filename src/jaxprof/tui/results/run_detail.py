"""One run in full: its phases as a table, the distribution and order of its samples, and its break-even.

The app pushes the screen over Run or Results; Esc goes back there. It is notified of changes like any other screen, so
it can also show a running run.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING

from textual.containers import Vertical, VerticalScroll
from textual.content import Content

from jaxprof.analysis import RunResult, result
from jaxprof.analysis.ab import side_title
from jaxprof.analysis.run_result import break_even_curve, prompt_cost
from jaxprof.analysis.speedup import steady_samples
from jaxprof.text import safe, shorten
from jaxprof.tui.kit.captures import RunKeys
from jaxprof.tui.kit.drawing import hang
from jaxprof.tui.kit.format import baseline_name, parameters_text
from jaxprof.tui.kit.phase_bars import UNTIL_FIRST, first_result
from jaxprof.tui.kit.picture import Lines, Picture
from jaxprof.tui.kit.plots import STYLES, Axis, Mark, PlotLine, count_tick, distribution, line_plot, seconds_tick, trend
from jaxprof.tui.results.facts import (
    compile_lines,
    environment_lines,
    failure_lines,
    figure_lines,
    memory_lines,
    phase_lines,
    warning_lines,
)
from jaxprof.tui.results.screen import row_text
from jaxprof.units import counted, seconds

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from jaxprof.analysis.run_result import BreakEvenCurve
    from jaxprof.session import Run, Session


class RunDetailScreen(RunKeys, keys="run_detail"):
    """Shows all details of one run."""

    AUTO_FOCUS = "#detail-scroll"

    def __init__(self, mode: str, run: str) -> None:
        """`mode` is the mode of the screen below: Run or Results."""
        super().__init__()
        self.MODE = mode
        self.run = run
        """The id of the run in view."""

    def compose_body(self) -> ComposeResult:
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
                    yield Picture("Samples in order", id="trend", classes="box")
                    yield Picture("Break-even", id="break-even", classes="box")
                    yield Lines("Compiled op by op", id="compiles", classes="box")
                    yield Lines("Environment", id="environment", classes="box")

    # -- showing ----------------------------------------------------------------------------------------------

    @property
    def chosen(self) -> Run | None:
        return self.profiler.session.runs.get(self.run)

    def show_session(self, runs: frozenset[str], *, replaced: bool) -> None:
        """Show the run as it is now; close when its session is no longer open."""
        run = self.chosen
        if run is None:
            self.call_later(self.action_close)
            return
        if replaced or self.run in runs or run.plan.baseline in runs:
            self._show(run)

    def _show(self, run: Run) -> None:
        session = self.profiler.session
        run_result = result(session, run.id, prompt_cost)
        baseline = result(session, run.plan.baseline) if run.plan.baseline in session.runs else None
        name = baseline_name(session, run)
        theirs = baseline.summary if baseline is not None else None
        key = (
            run.id,
            run.shown.status,
            tuple(run_result.phase_seconds.items()),
            run_result.summary,
            theirs,
            len(run_result.warnings),
        )
        self._lines("head", key, lambda width: _head(session, run_result, width))
        self._lines("failure", key, lambda width: failure_lines(run_result, width))
        self._lines("phases", key, lambda width: _phases(run_result, width))
        self._lines(
            "figures", (key, run.check is None, run_result.cost), lambda width: figure_lines(run_result, name, width)
        )
        self._lines("warnings", key, lambda width: warning_lines(run_result, width))
        self._lines("memory", (key, run.memory is None), lambda width: memory_lines(run_result, width))
        self._lines("compiles", (key, len(run.compiles)), lambda width: compile_lines(run_result, width))
        self._lines("environment", (key, run.environment is None), lambda width: environment_lines(run_result, width))
        self._show_pictures(run_result, baseline)
        self.refresh_bindings()

    def _lines(self, name: str, key: Hashable, draw: Callable[[int], Sequence[Content]]) -> None:
        self.query_one(f"#{name}", Lines).show(key, draw)

    def _show_pictures(self, run_result: RunResult, baseline: RunResult | None) -> None:
        samples = steady_samples(run_result.run)
        key = (run_result.run.id, len(samples))
        spread, in_order = self.query_one("#distribution", Picture), self.query_one("#trend", Picture)
        spread.display = in_order.display = bool(samples)
        spread.show(key, lambda w, h: distribution(samples, run_result.summary, w, h, modes=run_result.modes))
        in_order.show(key, lambda w, h: trend(samples, run_result.summary, w, h, modes=run_result.modes))
        curve = break_even_curve(run_result, baseline)
        picture = self.query_one("#break-even", Picture)
        picture.display = curve is not None
        if curve is not None:
            picture.show(curve, lambda w, h: break_even_plot(curve, w, h))

    # -- keys -------------------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Dim the next or previous run if there is none."""
        if action == "step" and self.whole and isinstance(parameters[0], int):
            return True if self._neighbour(parameters[0]) else None
        return super().check_action(action, parameters)

    def _neighbour(self, step: int) -> str:
        """Return the id of the run `step` places further, or an empty text."""
        ids = list(self.profiler.session.runs)
        index = ids.index(self.run) + step if self.run in ids else -1
        return ids[index] if 0 <= index < len(ids) else ""

    def action_step(self, step: int) -> None:
        run_id = self._neighbour(step)
        if run_id:
            self.run = self.profiler.run_in_view = run_id
            self._show(self.profiler.session.runs[run_id])
            self.query_one("#detail-scroll").scroll_home(animate=False)

    def action_scroll(self, step: int) -> None:
        self.query_one("#detail-scroll").scroll_relative(y=step, animate=False)

    def action_copy(self) -> None:
        run = self.chosen
        if run is None:
            return
        session = self.profiler.session
        self.copy(row_text(result(session, run.id), baseline_name(session, run)))


def _head(session: Session, run_result: RunResult, width: int) -> list[Content]:
    """Return the line that names the run; for a side of a comparison, also a line that describes the side."""
    plan = run_result.run.plan
    how = {"numpy": "NumPy on the host", "eager": "op by op", "jit": "compiled as one program"}.get(plan.how, plan.how)
    precision = f" · precision {plan.precision}" if plan.precision else ""
    preset = f" · {plan.preset}" if plan.preset else ""
    title = Content.assemble(
        (f" {shorten(plan.workload, 30)} ", "bold $primary"),
        (shorten(run_result.run.variant, 30), "bold"),
        (f"  {safe(plan.device)}  ", ""),
        (safe(parameters_text(plan.parameters)), "$text-muted"),
        (safe(f"{preset} · {how}{precision} · {run_result.run.shown.status}"), "$text-muted"),
    )
    side = side_title(session, run_result.run)
    return [title.truncate(width, ellipsis=True), *(hang(Content(" "), side, width) if side else ())]


def _phases(run_result: RunResult, width: int) -> list[Content]:
    """Return the table of phases, and below it the cost of a first result, phase by phase."""
    table = phase_lines(run_result, width)
    bars = first_result(run_result.phase_seconds, width) if run_result.run.plan.how != "numpy" else []
    first = sum(took for phase in UNTIL_FIRST if (took := run_result.phase_seconds.get(phase)) is not None)
    head = Content.styled(f"time to the first result: {seconds(first)}, on a linear scale", "$quiet")
    return [*table, Content(""), head, *bars] if bars else table


def break_even_plot(curve: BreakEvenCurve, width: int, height: int) -> Content:
    """Return the plot of the total time over the number of calls, for a run and its baseline, with the break-even."""
    last = curve.calls
    ours = [(0.0, 0.0)] + [(float(calls), curve.seconds_after(calls)) for calls in (1, last)]
    theirs = ((0.0, 0.0), (float(last), last * curve.baseline_seconds))
    marks = []
    if curve.break_even_calls is not None:
        calls = curve.break_even_calls
        word = counted(calls, "call")
        marks.append(Mark(float(calls), calls * curve.baseline_seconds, word))
    return line_plot(
        [
            PlotLine(curve.baseline_label, theirs, STYLES[0], dotted=True),
            PlotLine(curve.label, tuple(ours), STYLES[1]),
        ],
        Axis("calls", count_tick, zero=True),
        Axis("total time", seconds_tick, zero=True),
        width,
        height,
        marks,
    )
