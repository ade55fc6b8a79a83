"""Help: a tour of what the screens answer, then the keys of the screen below. The keys are made from its bindings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from jaxprof.tui.keys import bindings, key_of
from jaxprof.tui.kit.dialogs import Dialog
from jaxprof.tui.kit.drawing import hang
from jaxprof.tui.kit.screen_bars import StageTabs, Tab
from jaxprof.tui.profiler import ModeScreen
from jaxprof.tui.tour import tour

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.screen import Screen

PAGES = (Tab("tour", "Tour", "Tour"), Tab("keys", "Keys of this screen", "Keys"))


class HelpScreen(Dialog[None]):
    """The tour, and all keys of the screen below, in groups."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("help")

    def __init__(self, below: Screen[Any]) -> None:
        super().__init__()
        self._below = below
        self.page = "tour"
        """The page in view."""

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="dialog help") as box:
            box.border_title = "Help"
            box.border_subtitle = f"{key_of('help.turn')} the other page · Esc closes"
            yield StageTabs()
            yield Static(markup=False)

    def on_mount(self) -> None:
        self._show()

    def on_resize(self) -> None:
        """Wraps the text again for the new width."""
        self.call_after_refresh(self._show)

    def action_turn(self) -> None:
        """Shows the other page."""
        self.action_tab("tour" if self.page == "keys" else "keys")

    def action_tab(self, page: str) -> None:
        """Shows that page from its top."""
        self.page = page
        self._show()
        self.query_one(VerticalScroll).scroll_home(animate=False)

    def _show(self) -> None:
        self.query_one(StageTabs).show(PAGES, frozenset([self.page]))
        text = self.query_one(Static)
        width = max(40, text.size.width)
        mode = self._below.MODE if isinstance(self._below, ModeScreen) else ""
        text.update(tour(width, mode) if self.page == "tour" else self._keys(width))

    def _keys(self, width: int) -> Content:
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
