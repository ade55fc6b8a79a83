"""Whether what is shown can be trusted, in one line: the worst of what was looked at. A click, or `u`, lists it all."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.content import Content
from textual.style import Style
from textual.widget import Widget

from jaxprof.safe_text import safe

if TYPE_CHECKING:
    from jaxprof.session import Run

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
    """One thing that was looked at."""

    capture: str
    verdict: str
    code: str
    message: str
    advice: str


def trust_of(run: Run) -> list[TrustRow]:
    """What was looked at in a run's captures, the worst first."""
    rows = [
        TrustRow(kind, str(row.get("verdict", "unknown")), str(row.get("code", "")), str(row.get("message", "")),
                 str(row.get("advice") or ""))
        for kind, event in run.trust.items() for row in event.rows
    ]  # fmt: skip
    order = list(MARKS)
    return sorted(rows, key=lambda row: order.index(row.verdict) if row.verdict in MARKS else order.index("unknown"))


def why_no_capture(run: Run) -> str:
    """Why a run has no profile, as far as is known."""
    if run.plan.how == "numpy":
        return "NumPy runs are not profiled: JAX's profiler sees what XLA runs."
    if run.plan.how == "compile":
        return "This program was compiled and not run."
    if not run.over:
        return "The capture comes after the timing; this run is not there yet."
    if run.status != "ok":
        return f"This run has {run.status} before it was captured."
    if run.plan.how == "imported":
        return "This program has no part of its own; the whole profile has it."
    return "No capture was recorded (--no-capture, or a session of an older version)."


class TrustLine(Widget):
    """One line under the tabs."""

    ALLOW_SELECT = False
    auto_links = False

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._key: Hashable = None
        self._line = Content("")

    def show(self, run: Run | None) -> None:
        """Shows what is known of a run's captures."""
        key = (run.id, run.status, tuple(len(event.rows) for event in run.trust.values())) if run is not None else None
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
        said = [(f"This capture can be trusted: {len(rows)} things were looked at", "$text-muted")]
    else:
        more = f" (and {same - 1} more)" if same > 1 else ""
        said = [(safe(worst.message), "$foreground"), (more, "$text-muted")]
    return Content.assemble((f" {mark} ", style), ("u ", "bold $footer-key-foreground"), *said).stylize(click)
