"""What to do about the session in view: `jaxprof explain` as a dialog of every screen of a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.message import Message

from jaxprof.tui.kit.dialogs import Dialog
from jaxprof.tui.kit.picture import Lines
from jaxprof.tui.kit.threads import in_thread

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from jaxprof.analysis.explain.model import Explanation
    from jaxprof.session import Session

READING = "Reading what the session has..."


def explain_key(place: str) -> Binding:
    """The key of a screen that opens the dialog; the screen is a `SessionScreen`, which has the action."""
    return Binding(
        "a",
        "explain",
        "What to do",
        show=False,
        tooltip="What to change, the most expensive first",
        id=f"{place}.explain",
    )


class ExplanationDialog(Dialog[None]):
    """The findings that cost most, with their fix and the command that verifies it. A thread derives them, because the
    HLO of a session can take a second to read."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter,a", "dismiss", "Close", tooltip="Go back", id="explanation.close"),
        Binding("y", "copy", "Copy", tooltip="Copy the first command that verifies a fix", id="explanation.copy"),
    ]

    class Derived(Message):
        """The explanation is there."""

        def __init__(self, explanation: Explanation) -> None:
            super().__init__()
            self.explanation = explanation

    def __init__(self, session: Session, name: str) -> None:
        super().__init__()
        self._session, self._called = session, name
        self._explanation: Explanation | None = None

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="dialog help") as box:
            box.border_title = "What to do"
            box.border_subtitle = "y copies the command, Esc closes"
            yield Lines(id="explanation-text")

    def on_mount(self) -> None:
        self._show()
        self.query_one(VerticalScroll).focus()
        in_thread(self, self._derive, "explanation")

    def _derive(self) -> None:
        from jaxprof.analysis.explain.derive import explanation

        self.post_message(self.Derived(explanation(self._session, self._called)))

    def on_explanation_dialog_derived(self, message: Derived) -> None:
        """Shows what the thread derived."""
        self._explanation = message.explanation
        self._show()

    def _show(self) -> None:
        self.query_one(Lines).show(self._explanation is not None, self._drawn)

    def _drawn(self, width: int) -> list[Content]:
        if self._explanation is None:
            return [Content.styled(READING, "$text-muted")]
        from jaxprof.report.explain import explanation_lines

        lines = explanation_lines(self._explanation, full=True, width=max(40, width))
        return [Content.styled(line, _style(line)) for line in lines]

    def action_copy(self) -> None:
        """Copies the first command to the terminal's clipboard."""
        explained = self._explanation
        commands = [finding.verify for finding in explained.findings] if explained is not None else []
        commands += [abstention.command for abstention in explained.abstentions] if explained is not None else []
        command = next(filter(None, commands), "")
        if command:
            self.app.copy_to_clipboard(command)
            self.notify(command, title="Copied", markup=False)


def _style(line: str) -> str:
    """The style of a line of the report by its first letters: a finding, a fix, what is not known, the rest."""
    if line[:1].isdigit() and line[1:3] == ". ":
        return "bold $warning"
    if line.startswith(("? ", "verify:")):
        return "$text-muted"
    return "$better" if line.lstrip().startswith("→") else ""
