"""Whether a run's captures can be trusted: the worst check in one line, and the dialog that lists them all."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.style import Style
from textual.widget import Widget

from jaxprof.text import safe
from jaxprof.tui.keys import bindings, key_of
from jaxprof.tui.kit.dialogs import Dialog
from jaxprof.tui.kit.drawing import hang
from jaxprof.tui.kit.guard import Guarded
from jaxprof.tui.kit.picture import Lines
from jaxprof.units import counted, percent, seconds

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from jaxprof.session import Run
    from jaxprof.tui.profiler import Profiler


MARKS = {
    "bad": ("✗", "bold $error"),
    "doubt": ("!", "bold $warning"),
    "unknown": ("?", "bold $warning"),
    "good": ("✓", "bold $better"),
}
"""The worst verdict first."""
CAPTURES = {"run": "steady calls", "compile": "compile", "attribution": "command buffers off", "imported": "profile"}


@dataclass(frozen=True, slots=True)
class TrustRow:
    """One check of a capture."""

    capture: str
    verdict: str
    code: str
    message: str
    advice: str


def trust_of(run: Run) -> list[TrustRow]:
    """The checks of a run's captures, worst first."""
    rows = [
        TrustRow(kind, row.verdict, row.code, row.message, row.advice)
        for kind, event in run.trust.items()
        for row in event.rows
    ]
    order = list(MARKS)
    return sorted(rows, key=lambda row: order.index(row.verdict) if row.verdict in MARKS else order.index("unknown"))


def why_no_capture(run: Run) -> str:
    """Why a run has no profile, as far as known."""
    if run.plan.how == "numpy":
        return "NumPy runs are not profiled: JAX's profiler sees what XLA runs."
    if run.plan.how == "compile":
        return "This program was compiled and not run."
    if not run.shown.over:
        return "The capture follows the timing, which this run has not finished."
    if run.shown.status != "ok":
        how = "was cancelled" if run.shown.status == "cancelled" else run.shown.status
        return f"This run {how} before it was captured."
    if run.plan.how == "imported":
        return "This program has no capture of its own; see the whole profile."
    return "No capture was recorded (--no-capture, or a session of an older version)."


class TrustLine(Guarded, Widget):
    """One line under the tabs."""

    ALLOW_SELECT = False
    auto_links = False

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._key: Hashable = None
        self._line = Content("")

    def show(self, run: Run | None) -> None:
        """Shows the worst check of a run's captures."""
        key = (
            (run.id, run.shown.status, tuple(len(event.rows) for event in run.trust.values()))
            if run is not None
            else None
        )
        if key != self._key:
            self._key = key
            self._line = _line(run) if run is not None else Content("")
            self.refresh()

    def render(self) -> Content:
        return self._line.truncate(max(1, self.size.width - 1), ellipsis=True)


def _line(run: Run) -> Content:
    rows = trust_of(run)
    if not rows:
        return Content.assemble((" - ", "bold $quiet"), (safe(why_no_capture(run)), "$text-muted"))
    worst = rows[0]
    mark, style = MARKS.get(worst.verdict, MARKS["unknown"])
    same = sum(row.verdict == worst.verdict for row in rows)
    click = Style.from_meta({"@click": "screen.trust"})
    if worst.verdict == "good":
        words = [(f"Capture OK: {len(rows)} checks passed", "$text-muted")]
    else:
        more = f" (and {same - 1} more)" if same > 1 else ""
        words = [(safe(worst.message), "$foreground"), (more, "$text-muted")]
    key = (f"{key_of('hlo.trust')} ", "bold $footer-key-foreground")
    return Content.assemble((f" {mark} ", style), key, *words).stylize(click)


class TrustDialog(Dialog[None]):
    """The list of checks; asks nothing."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("trust")

    def __init__(self, run: Run, median_seconds: float | None) -> None:
        super().__init__()
        self._run, self._median = run, median_seconds

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="dialog wide-dialog") as box:
            box.border_title = "Can this capture be trusted?"
            box.border_subtitle = "↑ ↓ scroll, Esc closes"
            yield Lines(id="trust-rows")

    def on_mount(self) -> None:
        self.query_one(Lines).show(self._run.id, self._lines)
        self.query_one(VerticalScroll).focus()

    def _lines(self, width: int) -> list[Content]:
        rows = trust_of(self._run)
        lines: list[Content] = []
        for kind in dict.fromkeys((*self._run.captures, *self._run.trust)):
            lines += [Content("")] if lines else []
            lines += self._title(kind, width)
            for row in rows:
                if row.capture == kind:
                    lines += _row_lines(row, width)
        return lines or [Content.styled(safe(why_no_capture(self._run)), "$text-muted")]

    def _title(self, kind: str, width: int) -> list[Content]:
        capture = self._run.captures.get(kind)
        parts: list[str] = []
        if capture is not None:
            if capture.calls is not None:
                parts.append(counted(capture.calls, "call"))
            if capture.events is not None:
                parts.append(counted(capture.events, "event"))
            if capture.seconds_with is not None:
                parts.append(f"{seconds(capture.seconds_with)} a call with the profiler on")
                if self._median:
                    change = capture.seconds_with / self._median - 1
                    parts.append(f"{'+' if change >= 0 else '-'}{percent(abs(change))} compared with the run")
        note = " · ".join(parts)
        head = Content.assemble((CAPTURES.get(kind, safe(kind)), "bold $primary"), "  ")
        return hang(head, note, width, "$text-muted")


def _row_lines(row: TrustRow, width: int) -> list[Content]:
    mark, style = MARKS.get(row.verdict, MARKS["unknown"])
    lines = hang(Content.assemble((f"{mark} ", style)), row.message, width)
    if row.advice:
        lines += hang(Content("  "), row.advice, width, "$text-muted")
    return lines


def ask_about(app: Profiler, run: Run) -> None:
    """Lists all checks of a run's captures."""
    from jaxprof.analysis import result
    from jaxprof.tui.kit.captures import source_of

    summary = result(app.session, run.id).summary
    app.push_screen(TrustDialog(source_of(app.session, run), summary.median if summary is not None else None))
