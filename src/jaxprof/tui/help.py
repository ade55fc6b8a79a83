"""What the keys do: the help screen lists them in groups. It is made from the bindings, and so never out of date."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from jaxprof.tui.keys import bindings
from jaxprof.tui.kit.dialogs import Dialog
from jaxprof.tui.kit.drawing import hang

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.screen import Screen


class HelpScreen(Dialog[None]):
    """All keys of the screen below, in groups."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("help")

    def __init__(self, below: Screen[Any]) -> None:
        super().__init__()
        self._below = below

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="dialog help") as box:
            box.border_title = "Keys"
            box.border_subtitle = "Esc closes"
            yield Static(markup=False)

    def on_mount(self) -> None:
        self._show()

    def on_resize(self) -> None:
        """Wraps the explanations again for the new width."""
        self.call_after_refresh(self._show)

    def _show(self) -> None:
        text = self.query_one(Static)
        text.update(self._text(max(40, text.size.width)))

    def _text(self, width: int) -> Content:
        lines: list[Content] = []
        for place, actions in self._groups().items():
            lines += [Content("")] if lines else []
            lines.append(Content.styled(place, "bold $primary"))
            for same in actions.values():
                shown = " ".join(dict.fromkeys(self.app.get_key_display(binding) for binding in same))
                head = Content.assemble(
                    (f"  {shown:<12} ", "bold $footer-key-foreground"), f"{same[0].description:<16} "
                )
                lines += hang(head, same[0].tooltip, width, "$text-muted")
        return Content("\n").join(lines)

    def _groups(self) -> dict[str, dict[str, list[Binding]]]:
        """Bindings by place (focused pane, screen, app) and action."""
        groups: dict[str, dict[str, list[Binding]]] = {"In this pane": {}, "On this screen": {}, "Everywhere": {}}
        for active in self._below.active_bindings.values():
            binding = active.binding
            if not binding.description or not binding.id:
                continue
            everywhere, screen = active.node is self.app, active.node is self._below
            place = "Everywhere" if everywhere else "On this screen" if screen else "In this pane"
            groups[place].setdefault(binding.action, []).append(binding)
        return {place: actions for place, actions in groups.items() if actions}
