"""The history of a workload over the kept sessions: the text of `jaxprof compare --over-time`, a phase or an exact fact
at a time. A thread reads the sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content

from jaxprof.analysis.history import FACTS_KEPT, PHASES_KEPT, read_history
from jaxprof.errors import UsageError
from jaxprof.text import safe, safe_lines
from jaxprof.tui.keys import key_of
from jaxprof.tui.kit.dialogs import TextDialog
from jaxprof.tui.kit.drawing import hang
from jaxprof.tui.kit.threads import in_thread

if TYPE_CHECKING:
    from jaxprof.errors import JaxprofError
    from jaxprof.session.log import Library

_MEASURES = (*PHASES_KEPT, *FACTS_KEPT)


class HistoryDialog(TextDialog, keys="history"):
    """Each measurement with its trend, and its points with what changed between them."""

    CLASSES = "dialog report"

    def __init__(self, library: Library, workload: str = "") -> None:
        """`workload`: the one to show; empty for all."""
        keys = ("measure", "copy", "close")
        words = zip(map(key_of, (f"history.{key}" for key in keys)), ("another phase", "copies", "closes"), strict=True)
        super().__init__(f"History of {workload or 'all workloads'}", ", ".join(f"{key} {does}" for key, does in words))
        self._library, self._workload = library, workload
        self._measure = "run"
        self._text = ""

    def on_mount(self) -> None:
        self.action_measure(0)

    def action_measure(self, step: int) -> None:
        self._measure = _MEASURES[(_MEASURES.index(self._measure) + step) % len(_MEASURES)]
        self._take(f"Reading the sessions: {self._measure}…")
        in_thread(self, self._read, "history", then=self._take, failed=self._refused)

    def _read(self) -> str:
        from jaxprof.report.history import history_text

        return history_text(read_history(self._library.paths(), self._measure, self._workload))

    def _refused(self, error: JaxprofError) -> None:
        unmeasured = f"No kept session measured {self._workload}." if isinstance(error, UsageError) else str(error)
        self._take(unmeasured)

    def _take(self, text: str) -> None:
        self._text = text
        self.show(text)

    def lines(self, width: int) -> list[Content]:
        return [drawn for line in safe_lines(self._text) for drawn in hang(Content(""), line, width)]

    def action_copy(self) -> None:
        self.copy(self._text, safe(self._workload) or "All workloads")
