"""Colours by meaning. Screens name a meaning (`$phase-compile`, `$text-muted`), never a colour.

Each table has the colours of a meaning: on the dark theme, and on the light one.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from textual.theme import Theme

_OURS = {
    "phase-trace": ("#7d8fa9", "#5a687c"),
    "phase-lower": ("#4fb3a9", "#0d7168"),
    "phase-compile": ("#e0975c", "#9d5213"),
    "phase-transfer": ("#b48ede", "#7c4dbd"),
    "phase-first": ("#d9c27a", "#7a630e"),
    "phase-run": ("#6ea8fe", "#1f62c9"),
    "state-import": ("#5f6b79", "#778493"),
    "state-data": ("#d9c27a", "#7a630e"),
    "state-calls": ("#e58fb0", "#a03a68"),
    "state-host": ("#8fbf7f", "#327241"),
    "state-waiting": ("#44505e", "#8fa0b2"),
    "bar": ("#6ea8fe", "#1f62c9"),
    "bar-track": ("#2a333f", "#d5dbe3"),
    "baseline": ("#8a97a8", "#5a687c"),
    "better": ("#7fce8f", "#20763a"),
    "worse": ("#f0787a", "#b8292f"),
    "heat-1": ("#a08a48", "#71690f"),
    "heat-2": ("#c79a3f", "#865c0a"),
    "heat-3": ("#e08b45", "#a14a0a"),
    "heat-4": ("#ef6a4e", "#b5331c"),
    "heat-5": ("#ff4d5e", "#9c1030"),
    "quiet": ("#7c8896", "#5d6776"),
    "rule": ("#2f3a47", "#c3ccd6"),
    "code-keyword": ("#b48ede", "#7c4dbd"),
    "code-name": ("#6ea8fe", "#1f62c9"),
    "code-string": ("#9fcf8a", "#2b742b"),
    "code-number": ("#e0b26c", "#8a5c09"),
    "code-comment": ("#788491", "#5e6772"),
}
"""Meanings that no theme of Textual's defines. Our dark colours are their defaults, so that every theme works."""
_TEXTUALS = {
    "primary": ("#6ea8fe", "#1f62c9"),
    "secondary": ("#4fb3a9", "#0d7168"),
    "accent": ("#e0b26c", "#8a5c09"),
    "foreground": ("#d7dde5", "#1c2430"),
    "background": ("#0f1318", "#f6f8fa"),
    "surface": ("#151a21", "#eef1f5"),
    "panel": ("#1d242d", "#e3e8ee"),
    "success": ("#7fce8f", "#20763a"),
    "warning": ("#e0b26c", "#8a5c09"),
    "error": ("#f0787a", "#b8292f"),
}
_DERIVED = {
    "text-muted": ("#93a0b0", "#55606e"),
    "text-disabled": ("#5f6b79", "#778493"),
    "border": ("#6ea8fe", "#1f62c9"),
    "border-blurred": ("#2f3a47", "#c3ccd6"),
    "block-cursor-background": ("#25405f", "#dbe7fb"),
    "block-cursor-foreground": ("#ffffff", "#0b1a30"),
    "block-cursor-text-style": ("none", "none"),
    "block-cursor-blurred-background": ("#1d242d", "#e3e8ee"),
    "block-cursor-blurred-foreground": ("#d7dde5", "#1c2430"),
    "footer-background": ("#151a21", "#e9edf2"),
    "footer-key-foreground": ("#6ea8fe", "#1f62c9"),
    "scrollbar": ("#2f3a47", "#c3ccd6"),
    "scrollbar-hover": ("#3d4a5a", "#a9b5c2"),
    "scrollbar-active": ("#6ea8fe", "#1f62c9"),
    "scrollbar-background": ("#0f1318", "#f6f8fa"),
    "scrollbar-background-hover": ("#0f1318", "#f6f8fa"),
    "scrollbar-background-active": ("#0f1318", "#f6f8fa"),
    "scrollbar-corner-color": ("#0f1318", "#f6f8fa"),
}


def _on(colours: Mapping[str, tuple[str, str]], *, dark: bool) -> dict[str, Any]:
    return {meaning: on_dark if dark else on_light for meaning, (on_dark, on_light) in colours.items()}


def _theme(name: str, *, dark: bool) -> Theme:
    return Theme(name, **_on(_TEXTUALS, dark=dark), dark=dark, variables=_on(_OURS | _DERIVED, dark=dark))


VARIABLES = _on(_OURS, dark=True)
DARK, LIGHT = _theme("jaxprof-dark", dark=True), _theme("jaxprof-light", dark=False)

STYLES = Path(__file__).with_name("jaxprof.tcss")
"""Stylesheet of all screens and dialogs. The path is absolute, because Textual resolves a relative path beside the file
of the subclass."""
