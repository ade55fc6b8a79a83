"""A screen's size classes before its first layout.

Textual sets the classes of the breakpoints when a screen learns its size, which is after it was laid out once; over a
slow line the first layout is seen. Set while the screen composes, the classes are right from the first frame on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from textual.screen import Screen


def wear_size(screen: Screen[Any]) -> None:
    """Gives `screen` the classes that Textual will give it for the app's size."""
    size = screen.app.size
    for steps, extent in (
        (screen.app.HORIZONTAL_BREAKPOINTS, size.width),
        (screen.app.VERTICAL_BREAKPOINTS, size.height),
    ):
        fitting = [name for start, name in steps or () if extent >= start]
        for _, name in steps or ():
            screen.set_class(name == fitting[-1] if fitting else False, name)
