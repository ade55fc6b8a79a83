"""The conclusions about the session in view: its largest costs and what to do at the head of a screen, all findings in
a dialog."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from textual.content import Content

from jaxprof.base.text import safe
from jaxprof.tui.keys import in_words, key_of
from jaxprof.tui.kit.dialogs import Draw, ReportDialog
from jaxprof.tui.kit.guard import in_thread
from jaxprof.tui.kit.picture import Lines

if TYPE_CHECKING:
    from jaxprof.findings.explanation import Explanation
    from jaxprof.report.conclusion import Conclusion
    from jaxprof.session import Session

READING = "Analysing the session…"
_TALL = 34
"""Terminal height, in lines, from which on nothing is cut."""
_SHORT = 2
"""Most lines of the action below that height."""


_STYLES = {"costs most": "bold", "how sure": "$text-muted", "do next": ""}


def cost_lines(result: Conclusion, width: int) -> list[Content]:
    from jaxprof.report.conclusion import LABEL_WIDTH, conclusion_lines

    lines, style = [], ""
    for line in conclusion_lines(result, max(2 * LABEL_WIDTH, width)):
        style = _STYLES.get(line[:LABEL_WIDTH].strip(), style)
        lines.append(Content.assemble((line[:LABEL_WIDTH], "$primary"), (line[LABEL_WIDTH:], style)))
    return lines


class ExplanationHead(Lines):
    """The largest costs, with or without a fix, and what to do; the dialog has the rest. Hidden while the session is
    being written."""

    _session: Session | None = None

    def show_session(self, session: Session, name: str) -> None:
        """Show what to do about `session`, which commands call `name`, as soon as a thread has found out."""
        if not session.deserted or not session.runs:
            self.clear()
            return
        if session is not self._session or not self.display:
            self._session = session
            self.show(lambda width: [Content.styled(READING, "$text-muted"), Content("")])

        def derive() -> Conclusion:  # in a thread: reading the HLO of a session can take a second
            from jaxprof.findings.derive import explanation
            from jaxprof.report.conclusion import conclusion

            return conclusion(explanation(session, name))

        def show(result: Conclusion) -> None:
            self.show(lambda width: head_lines(result, width, whole=self.screen.size.height >= _TALL))

        in_thread(self, derive, "explanation-head", then=show)


def head_lines(result: Conclusion, width: int, *, whole: bool) -> list[Content]:
    """Return what costs most and what to do, the action shortened between words unless `whole`. No figure is cut."""
    from jaxprof.report.conclusion import LABEL_WIDTH

    key = f" (for all of it: {in_words('results.explain')})"
    room = _SHORT * (width - LABEL_WIDTH) - 2 * len(key)  # lines end between words
    if not whole:
        action = textwrap.shorten(safe(result.action), max(LABEL_WIDTH, room), placeholder=" …")
        result = replace(result, certainty="", action=action)
    return cost_lines(replace(result, action=result.action + key, command=""), width)


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
