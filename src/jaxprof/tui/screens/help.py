"""Every key of the screen below, in groups, with what it does. Made from the bindings: it cannot be out of date."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.screen import Screen


class HelpScreen(ModalScreen[None]):
    """The map of keys."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,q,f1", "dismiss", "Close", tooltip="Back to the screen", id="help.close"),
    ]

    def __init__(self, below: Screen[Any]) -> None:
        super().__init__()
        self._below = below

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="dialog help") as box:
            box.border_title = "Keys"
            box.border_subtitle = "Esc closes"
            yield Static(self._text(), markup=False)

    def _text(self) -> Content:
        groups: dict[str, dict[str, list[Any]]] = {}
        for active in self._below.active_bindings.values():
            binding = active.binding
            if not binding.description or not binding.id:
                continue
            place = "Everywhere" if active.node is self.app else "This screen" if active.node is self._below else "Here"
            groups.setdefault(place, {}).setdefault(binding.action, []).append(binding)
        lines: list[Content] = []
        for place in ("Here", "This screen", "Everywhere"):
            if place not in groups:
                continue
            lines += (
                [Content(""), Content.styled(place, "bold $primary")]
                if lines
                else [Content.styled(place, "bold $primary")]
            )
            for bindings in groups[place].values():
                shown = " ".join(dict.fromkeys(self.app.get_key_display(binding) for binding in bindings))
                first = bindings[0]
                lines.append(
                    Content.assemble(
                        (f"  {shown:<14}", "bold $footer-key-foreground"),
                        f"{first.description:<20}",
                        (first.tooltip, "$text-muted"),
                    )
                )
        return Content("\n").join(lines)
