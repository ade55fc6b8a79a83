"""The first line of every screen: where one is, where one can go, which session is open, and what runs now."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from textual.content import Content
from textual.style import Style
from textual.widget import Widget

from jaxprof.safe_text import columns, shorten
from jaxprof.tui.modes import PLACES

if TYPE_CHECKING:
    from jaxprof.tui.app import JaxprofApp


class ModeBar(Widget):
    """One line; a click on a mode goes there."""

    ALLOW_SELECT = False
    auto_links = False

    def __init__(self, mode: str) -> None:
        super().__init__()
        self._mode = mode
        self._right: tuple[str, str] = ("", "")

    def on_mount(self) -> None:
        self.show_state()

    def show_state(self) -> None:
        """Draws the line again if what it says of the session or of the runs has changed."""
        right = _state(cast("JaxprofApp", self.app))
        if right != self._right:
            self._right = right
            self.refresh()

    def render(self) -> Content:
        state, session = self._right
        tabs = self._tabs()
        left = Content.assemble((" jaxprof ", "bold $primary"), tabs)
        if state and left.cell_length + columns(state) + 2 > self.size.width:
            left = tabs  # what goes on is worth more than what this is called
        room = self.size.width - left.cell_length - 1
        state = shorten(state, room) if state and room > 3 else ""
        room -= columns(state) + (2 if state else 0)
        session = shorten(session, room) if session and room >= 6 else ""
        right = Content.assemble((state, "bold $warning"), "  " if state and session else "", (session, "$quiet"))
        gap = self.size.width - left.cell_length - right.cell_length - 1
        return Content.assemble(left, " " * gap, right) if gap >= 0 else left

    def _tabs(self) -> Content:
        parts: list[Content] = []
        for mode in PLACES:
            here = mode.name == self._mode
            click = Style.from_meta({"@click": f"app.go('{mode.name}')"})
            tab = Content.styled(f" {mode.key} ", "$quiet" if not here else "bold $foreground on $panel")
            name = Content.styled(f"{mode.title} ", "bold $foreground on $panel" if here else "$text-muted")
            parts.append((tab + name).stylize(click))
        return Content.assemble(*parts)


def _state(app: JaxprofApp) -> tuple[str, str]:
    """What runs now, and which session is open."""
    state = ""
    if app.live.busy and app.live.session is not None:
        waiting = sum(not run.over for run in app.live.session.runs.values())
        state = f"{waiting} run{'s' if waiting != 1 else ''} to go"
        if app.live.program is not None:
            state = "program runs"
    if app.silent_since:
        state = app.silent_since
    name = app.session_path.name.removesuffix(".jaxprof") if app.session_path is not None else ""
    return state, name
