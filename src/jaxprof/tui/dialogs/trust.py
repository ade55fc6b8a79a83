"""Everything that was looked at in a run's captures, the worst first, with what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content

from jaxprof.safe_text import safe
from jaxprof.tui.dialogs.base import Dialog
from jaxprof.tui.widgets.drawing import hang
from jaxprof.tui.widgets.picture import Lines
from jaxprof.tui.widgets.trust_line import CAPTURES, MARKS, TrustRow, trust_of, why_no_capture
from jaxprof.units import integer, percent, seconds

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from jaxprof.session import Run
    from jaxprof.tui.app import JaxprofApp


class TrustDialog(Dialog[None]):
    """The list; nothing is asked."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,u,q", "dismiss", "Close", tooltip="Back to the screen", id="trust.close"),
    ]

    def __init__(self, run: Run, median_seconds: float | None) -> None:
        super().__init__()
        self._run, self._median = run, median_seconds

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="dialog wide-dialog") as box:
            box.border_title = "Can this capture be trusted?"
            box.border_subtitle = "Esc closes"
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
                parts.append(f"{integer(capture.calls)} call{'s' if capture.calls != 1 else ''}")
            if capture.events is not None:
                parts.append(f"{integer(capture.events)} events")
            if capture.seconds_with is not None:
                parts.append(f"{seconds(capture.seconds_with)} a call with the profiler on")
                if self._median:
                    change = capture.seconds_with / self._median - 1
                    parts.append(f"{'+' if change >= 0 else '-'}{percent(abs(change))} to the run")
        note = " · ".join(parts)
        head = Content.assemble((CAPTURES.get(kind, safe(kind)), "bold $primary"), "  ")
        return hang(head, note, width, "$text-muted")


def _row_lines(row: TrustRow, width: int) -> list[Content]:
    mark, style = MARKS.get(row.verdict, MARKS["unknown"])
    lines = hang(Content.assemble((f"{mark} ", style)), row.message, width)
    if row.advice:
        lines += hang(Content("  "), row.advice, width, "$text-muted")
    return lines


def ask_about(app: JaxprofApp, run: Run) -> None:
    """Lists all that was looked at in the captures of a run."""
    from jaxprof.results import result
    from jaxprof.tui.views import source_of

    summary = result(app.session, run.id).summary
    app.push_screen(TrustDialog(source_of(app.session, run), summary.median if summary is not None else None))
