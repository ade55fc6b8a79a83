"""The dialog with all conclusions about the session in view: its largest costs, its findings, and what is unknown."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from textual.content import Content

from jaxprof.tui.keys import key_of
from jaxprof.tui.kit.dialogs import Draw, ReportDialog

if TYPE_CHECKING:
    from jaxprof.findings.explanation import Explanation
    from jaxprof.session import Session

READING = "Analysing the session…"


class ExplanationDialog(ReportDialog, keys="explanation"):
    CLASSES = "dialog help"
    _explanation: Explanation | None = None

    def __init__(self, session: Session, name: str) -> None:
        keys = f"{key_of('explanation.copy')} copies the command"
        super().__init__("What to do", partial(self._explain, session, name), READING, keys)

    def _explain(self, session: Session, name: str) -> Draw:
        from jaxprof.findings.derive import explanation
        from jaxprof.report.explain import explanation_lines

        found = self._explanation = explanation(session, name)
        lines = partial(explanation_lines, found)
        return lambda width: [Content.styled(line, _style(line)) for line in lines(width=max(40, width))]

    def action_copy(self) -> None:
        if (explanation := self._explanation) is not None:
            verifying = [finding.verify for finding in explanation.findings]
            commands = [*verifying, *(abstention.command for abstention in explanation.abstentions)]
            if command := next(filter(None, commands), ""):
                self.copy(command)


def _style(line: str) -> str:
    """Return the style of a line of the report by its first letters: a finding, a fix, something unknown, the rest."""
    if line[:1].isdigit() and line[1:3] == ". ":
        return "bold $warning"
    if line.startswith(("? ", "verify")):
        return "$text-muted"
    return "$better" if line.lstrip().startswith("→") else ""
