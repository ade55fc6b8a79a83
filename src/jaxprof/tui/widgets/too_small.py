"""What is shown instead of a screen in a terminal that is too small for it."""

from __future__ import annotations

from textual.content import Content
from textual.widget import Widget


class TooSmall(Widget):
    """A note in the middle; the stylesheet shows it, and hides the rest, below 80x24."""

    def render(self) -> Content:
        width, height = self.app.size
        return Content.assemble(
            ("jaxprof", "bold $primary"),
            " wants a terminal of 80×24.\n",
            (f"This one is {width}×{height}. ", "$text-muted"),
            ("Make it larger, or q to quit.", "$text-muted"),
        )

    def on_resize(self) -> None:
        self.refresh()
