"""Colours by meaning. Screens name a meaning (`$phase-compile`, `$text-muted`), never a colour.

Each table has the colours of a meaning: on the dark theme, on the light one, and the numbers of those that stand for
them in a terminal of 16 colours. No two kinds of one legend look alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from textual.theme import Theme

# fmt: off
_BLUE, _VIOLET, _TEAL = ("#6ea8fe", "#1f62c9", 12, 4), ("#b48ede", "#7c4dbd", 5, 5), ("#4fb3a9", "#0d7168", 6, 6)
_GREEN, _RED, _GOLD = ("#7fce8f", "#20763a", 10, 2), ("#f0787a", "#b8292f", 9, 1), ("#e0b26c", "#8a5c09", 11, 3)
_TEXT, _RULE, _SLATE = ("#d7dde5", "#1c2430", 15, 0), ("#2f3a47", "#c3ccd6", 8, 7), ("#7d8fa9", "#5a687c", 7, 8)
_GROUND, _SURFACE, _PANEL = ("#0f1318", "#f6f8fa", 0, 15), ("#151a21", "#eef1f5", 0, 15), ("#1d242d", "#e3e8ee", 0, 15)
_OURS = {
    **dict.fromkeys(("phase-run", "bar", "code-name"), _BLUE),
    **dict.fromkeys(("phase-trace", "baseline"), _SLATE),
    **dict.fromkeys(("phase-transfer", "code-keyword"), _VIOLET),
    "phase-lower": _TEAL, "better": _GREEN, "worse": _RED, "rule": _RULE, "code-number": _GOLD,
    "phase-first": ("#d9c27a", "#7a630e", 14, 12),
    "state-data": ("#d9c27a", "#7a630e", 10, 12),
    "phase-compile": ("#e0975c", "#9d5213", 3, 3),
    "state-import": ("#c9d0d8", "#2a333f", 15, 0),
    "state-calls": ("#e58fb0", "#a03a68", 13, 13),
    "state-host": ("#7a9e45", "#4f6d00", 2, 10),
    "state-waiting": ("#4a5a78", "#94a5c6", 8, 7),
    "counter": ("#e8ef7a", "#b8292f", 11, 9),
    "bar-track": ("#2a333f", "#d5dbe3", 0, 15),
    "heat-1": ("#a08a48", "#71690f", 3, 3),
    "heat-2": ("#c79a3f", "#865c0a", 11, 9),
    "heat-3": ("#e08b45", "#a14a0a", 9, 13),
    "heat-4": ("#ef6a4e", "#b5331c", 13, 5),
    "heat-5": ("#ff4d5e", "#9c1030", 1, 1),
    "quiet": ("#7c8896", "#5d6776", 7, 8),
    "code-string": ("#9fcf8a", "#2b742b", 10, 2),
    "code-comment": ("#788491", "#5e6772", 8, 8),
}
"""Meanings that no theme of Textual's defines. Our dark colours are their defaults, so that every theme works."""
_SCROLLBAR_GROUND = ("background", "background-hover", "background-active", "corner-color")
_TEXTUALS = {
    "primary": _BLUE, "success": _GREEN, "error": _RED, "accent": _GOLD, "warning": _GOLD, "foreground": _TEXT,
    "background": _GROUND, "surface": _SURFACE, "panel": _PANEL, "secondary": _TEAL,
}
_DERIVED = {
    **dict.fromkeys(("border", "footer-key-foreground", "scrollbar-active"), _BLUE),
    **dict.fromkeys(("border-blurred", "scrollbar"), _RULE),
    **dict.fromkeys((f"scrollbar-{part}" for part in _SCROLLBAR_GROUND), _GROUND),
    "block-cursor-blurred-background": _PANEL, "block-cursor-blurred-foreground": _TEXT, "footer-background": _SURFACE,
    "text-muted": ("#93a0b0", "#55606e", 7, 8),
    "text-disabled": ("#5f6b79", "#778493", 8, 7),
    "block-cursor-background": ("#25405f", "#dbe7fb", 8, 7),
    "block-cursor-foreground": ("#ffffff", "#0b1a30", 15, 0),
    "scrollbar-hover": ("#3d4a5a", "#a9b5c2", 7, 8),
}
# fmt: on

_Colours = Mapping[str, tuple[Any, ...]]
_SIXTEEN = (
    "#000000", "#aa0000", "#00aa00", "#aa5500", "#0000aa", "#aa00aa", "#00aaaa", "#aaaaaa",
    "#555555", "#ff5555", "#55ff55", "#ffff55", "#5555ff", "#ff55ff", "#55ffff", "#ffffff",
)  # fmt: skip
"""The colours that Rich sends as the numbers 0 to 15. For others it sends the nearest one: for most of ours, a grey."""


def _on(colours: _Colours, *, dark: bool, few: bool) -> dict[str, Any]:
    column = 2 * few + (not dark)
    return {meaning: _SIXTEEN[each[column]] if few else each[column] for meaning, each in colours.items()}


def themes(*, few: bool = False) -> tuple[Theme, Theme]:
    """Return the dark theme and the light one; `few`: for a terminal of 16 colours."""
    dark, light = (
        Theme(
            name,
            **_on(_TEXTUALS, dark=dark, few=few),
            dark=dark,
            variables=_on(_OURS | _DERIVED, dark=dark, few=few) | {"block-cursor-text-style": "none"},
        )
        for name, dark in (("jaxprof-dark", True), ("jaxprof-light", False))
    )
    return dark, light


def variables(*, few: bool = False) -> dict[str, str]:
    """Return our own meanings, for themes that do not define them."""
    return _on(_OURS, dark=True, few=few)


DARK, LIGHT = themes()

STYLES = Path(__file__).with_name("jaxprof.tcss")
"""Stylesheet of all screens and dialogs. The path is absolute, because Textual resolves a relative path beside the file
of the subclass."""
