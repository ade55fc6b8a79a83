"""The last line of every screen: the keys that do something here and now.

One widget that draws one line, because Textual's footer makes a widget of every key and makes all of them anew at
each change of focus, which is slow over SSH. What does not fit is left out, least important last; `?` shows it all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content
from textual.style import Style
from textual.widget import Widget

if TYPE_CHECKING:
    from textual.screen import Screen

Key = tuple[str, str, str, bool]
"""What is pressed, its display, its description, whether it can be pressed now."""


class KeyBar(Widget):
    """One line of keys; a click on one presses it."""

    ALLOW_SELECT = False
    auto_links = False

    def __init__(self) -> None:
        super().__init__()
        self._keys: list[Key] = []

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, self._bindings_changed)
        self._bindings_changed(self.screen)

    def _bindings_changed(self, screen: Screen[object]) -> None:
        if screen is not self.screen:
            return
        keys: dict[str, Key] = {}
        for active in screen.active_bindings.values():
            binding = active.binding
            if binding.show and binding.description and binding.action not in keys:
                shown = self.app.get_key_display(binding)
                keys[binding.action] = (binding.key, shown, binding.description, active.enabled)
        found = list(keys.values())
        if found != self._keys:
            self._keys = found
            self.refresh()

    def render(self) -> Content:
        room = self.size.width - 1
        line = Content(" ")
        last = [key for key in self._keys if key[1] in ("?", "q")]
        for key in [key for key in self._keys if key not in last] + last:
            item = _item(key)
            reserved = 0 if key in last else sum(_item(other).cell_length for other in last)
            if line.cell_length + item.cell_length + reserved > room:
                if key in last:
                    break
                continue
            line = line.append(item)
        return line


def _item(key: Key) -> Content:
    name, shown, description, enabled = key
    text = Content.assemble(
        (shown, "bold $footer-key-foreground" if enabled else "$quiet"),
        " ",
        (description, "$foreground" if enabled else "$quiet"),
        "  ",
    )
    return text.stylize(Style.from_meta({"@click": f"app.press({name!r})"}))
