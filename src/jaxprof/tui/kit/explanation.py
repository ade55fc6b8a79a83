"""The conclusions about the session in view: its largest costs and first finding at the head of a screen, all findings
in a dialog."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from textual.content import Content

from jaxprof.text import columns, safe
from jaxprof.tui.keys import key_of
from jaxprof.tui.kit.dialogs import TextDialog
from jaxprof.tui.kit.drawing import hang
from jaxprof.tui.kit.picture import Lines
from jaxprof.tui.kit.threads import in_thread

if TYPE_CHECKING:
    from jaxprof.analysis.explain.model import Explanation
    from jaxprof.session import Session

READING = "Analysing the session…"
_TALL: Final = 34
"""Terminal height, in lines, from which on nothing is cut."""
_LABEL: Final = 12
"""Columns of the label before each line."""
_COST_LINES: Final = 3
"""Lines of the costs if not everything is shown."""
_ROOMY: Final = 100
"""Columns from which on the first line also has the sentence of the finding, and how many more there are."""


def explain(session: Session, name: str) -> Explanation:
    """Return the explanation of a session. For threads: reading the HLO of a session can take a second."""
    from jaxprof.analysis.explain.derive import explanation

    return explanation(session, name)


def cost_lines(cost: str, certainty: str, width: int) -> list[Content]:
    """Return what costs most and how certain that is, as at the beginning of `jaxprof explain`, and an empty line."""
    return [*_labelled("costs most", cost, width, "bold"), *_labelled("how sure", certainty, width, "$text-muted"),
            Content("")]  # fmt: skip


def _labelled(label: str, text: str, width: int, style: str) -> list[Content]:
    from jaxprof.report.renderers import wrap

    lines = wrap(text, width=max(12, width - _LABEL), indent="")
    heads = [label, *[""] * (len(lines) - 1)]
    return [
        Content.assemble((head.ljust(_LABEL), "$primary"), (line, style))
        for head, line in zip(heads, lines, strict=True)
    ]


class ExplanationHead(Lines):
    """The largest costs, with or without a fix, and the first finding; the dialog has the rest. Hidden while the
    session is being written."""

    def show_session(self, session: Session, name: str, *, growing: bool) -> None:
        """Show what to do about `session`, which commands call `name`, as soon as a thread has found out."""
        if growing or not session.runs:
            self.clear()
            return
        if not self.display:
            self.show(READING, lambda width: [Content.styled(READING, "$text-muted"), Content("")])
        in_thread(self, lambda: self._head_of(session, name), "explanation-head", then=self._show_first)

    @staticmethod
    def _head_of(session: Session, name: str) -> tuple[Explanation, str]:
        from jaxprof.report.conclusion import cost_and_certainty

        explanation = explain(session, name)
        return explanation, cost_and_certainty(explanation)[0]

    def _show_first(self, head: tuple[Explanation, str]) -> None:
        explanation, cost = head
        key = (cost, explanation.findings[:1], explanation.abstentions[:1], len(explanation.findings))
        self.show(key, lambda width: headline(*head, width, whole=self.screen.size.height >= _TALL))


def headline(explanation: Explanation, cost: str, width: int, *, whole: bool = False) -> list[Content]:
    """Return `cost`, then the first finding or what is unknown, in at most four lines. With `whole`, use as many lines
    as needed, and add the command that verifies the fix or finds out what is unknown."""
    costs = _labelled("costs most", cost, width, "bold")
    if not whole and len(costs) > _COST_LINES:
        costs = [*costs[: _COST_LINES - 1], costs[_COST_LINES - 1].truncate(width - 2, ellipsis=False) + Content(" …")]
    return [*costs, *_first_finding(explanation, width, whole=whole)]


def _first_finding(explanation: Explanation, width: int, *, whole: bool) -> list[Content]:
    from jaxprof.report.explain import cost_text, place_text

    roomy = width >= _ROOMY
    explain = key_of("results.explain")
    key = f"{explain}: {'more' if not explanation.findings else 'what to do' if roomy else 'fix'}"
    room = max(1, width - columns(key) - 2)
    if explanation.findings:
        first, others = explanation.findings[0], len(explanation.findings) + explanation.left_out - 1
        known = first.cost.seconds is not None or first.cost.bytes
        cost = first.cost if roomy else replace(first.cost, low=None, high=None)
        parts = [
            cost_text(cost) if known else "",
            place_text(first),
            f"{others} more" if others and roomy else "",
        ]
        summary = "  ".join(filter(None, parts))
        words = f"{summary}  {first.message}" if not summary or roomy else summary
        what = Content.assemble((first.code, "bold $warning"), "  ", (safe(words), "$warning"))
        command = first.verify
    else:
        unknown = explanation.abstentions[0] if explanation.abstentions else None
        words = f"; unknown: {unknown.reason}" if unknown is not None else ""
        what = Content.styled(safe(f"{explanation.nothing_found}{words}"), "$text-muted")
        command = unknown.command if unknown is not None else ""
    begin, *more = what.wrap(room) if whole else [what]
    first_line = Content.assemble(begin.truncate(room, ellipsis=True, pad=True), "  ", (key, "$quiet"))
    if not whole:
        return [first_line]
    return [
        first_line,
        *more,
        *(hang(Content.styled("→ ", "$text-muted"), command, width, "$text-muted") if command else []),
    ]


class ExplanationDialog(TextDialog, keys="explanation"):
    """The findings that cost most, with their fixes and the commands that verify them."""

    CLASSES = "dialog help"

    def __init__(self, session: Session, name: str) -> None:
        super().__init__(
            "What to do", f"{key_of('explanation.copy')} copies the command, {key_of('explanation.close')} closes"
        )
        self._session, self._called = session, name
        self._explanation: Explanation | None = None

    def on_mount(self) -> None:
        in_thread(self, lambda: explain(self._session, self._called), "explanation", then=self._take)

    def _take(self, explanation: Explanation) -> None:
        self._explanation = explanation
        self.show(explanation)

    def lines(self, width: int) -> list[Content]:
        if self._explanation is None:
            return [Content.styled(READING, "$text-muted")]
        from jaxprof.report.explain import explanation_lines

        lines = explanation_lines(self._explanation, full=True, width=max(40, width))
        return [Content.styled(line, _style(line)) for line in lines]

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
