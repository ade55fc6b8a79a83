"""Colours by meaning. Screens name a meaning (`$phase-compile`, `$text-muted`), never a colour.

`VARIABLES` are the meanings that Textual's themes do not define; their defaults make every theme work.
"""

from __future__ import annotations

from pathlib import Path

from textual.theme import Theme

VARIABLES = {
    "phase-trace": "#7d8fa9",
    "phase-lower": "#4fb3a9",
    "phase-compile": "#e0975c",
    "phase-transfer": "#b48ede",
    "phase-first": "#d9c27a",
    "phase-run": "#6ea8fe",
    "state-import": "#5f6b79",
    "state-data": "#d9c27a",
    "state-host": "#8fbf7f",
    "state-waiting": "#44505e",
    "bar": "#6ea8fe",
    "bar-track": "#2a333f",
    "baseline": "#8a97a8",
    "better": "#7fce8f",
    "worse": "#f0787a",
    "heat-1": "#a08a48",
    "heat-2": "#c79a3f",
    "heat-3": "#e08b45",
    "heat-4": "#ef6a4e",
    "heat-5": "#ff4d5e",
    "quiet": "#7c8896",
    "rule": "#2f3a47",
    "code-keyword": "#b48ede",
    "code-name": "#6ea8fe",
    "code-string": "#9fcf8a",
    "code-number": "#e0b26c",
    "code-comment": "#788491",
}
"""Colour of each meaning on the dark theme."""

ON_LIGHT = {
    "phase-trace": "#5a687c",
    "phase-lower": "#0d7168",
    "phase-compile": "#9d5213",
    "phase-transfer": "#7c4dbd",
    "phase-first": "#7a630e",
    "phase-run": "#1f62c9",
    "state-import": "#778493",
    "state-data": "#7a630e",
    "state-host": "#327241",
    "state-waiting": "#8fa0b2",
    "bar": "#1f62c9",
    "bar-track": "#d5dbe3",
    "baseline": "#5a687c",
    "better": "#20763a",
    "worse": "#b8292f",
    "heat-1": "#71690f",
    "heat-2": "#865c0a",
    "heat-3": "#a14a0a",
    "heat-4": "#b5331c",
    "heat-5": "#9c1030",
    "quiet": "#5d6776",
    "rule": "#c3ccd6",
    "code-keyword": "#7c4dbd",
    "code-name": "#1f62c9",
    "code-string": "#2b742b",
    "code-number": "#8a5c09",
    "code-comment": "#5e6772",
}
"""Colour of each meaning on the light theme."""

DARK = Theme(
    name="jaxprof-dark",
    primary="#6ea8fe",
    secondary="#4fb3a9",
    accent="#e0b26c",
    foreground="#d7dde5",
    background="#0f1318",
    surface="#151a21",
    panel="#1d242d",
    success="#7fce8f",
    warning="#e0b26c",
    error="#f0787a",
    dark=True,
    variables={
        **VARIABLES,
        "text-muted": "#93a0b0",
        "text-disabled": "#5f6b79",
        "border": "#6ea8fe",
        "border-blurred": "#2f3a47",
        "block-cursor-background": "#25405f",
        "block-cursor-foreground": "#ffffff",
        "block-cursor-text-style": "none",
        "block-cursor-blurred-background": "#1d242d",
        "block-cursor-blurred-foreground": "#d7dde5",
        "footer-background": "#151a21",
        "footer-key-foreground": "#6ea8fe",
        "scrollbar": "#2f3a47",
        "scrollbar-hover": "#3d4a5a",
        "scrollbar-active": "#6ea8fe",
        "scrollbar-background": "#0f1318",
        "scrollbar-background-hover": "#0f1318",
        "scrollbar-background-active": "#0f1318",
        "scrollbar-corner-color": "#0f1318",
    },
)

LIGHT = Theme(
    name="jaxprof-light",
    primary="#1f62c9",
    secondary="#0d7168",
    accent="#8a5c09",
    foreground="#1c2430",
    background="#f6f8fa",
    surface="#eef1f5",
    panel="#e3e8ee",
    success="#20763a",
    warning="#8a5c09",
    error="#b8292f",
    dark=False,
    variables={
        **ON_LIGHT,
        "text-muted": "#55606e",
        "text-disabled": "#778493",
        "border": "#1f62c9",
        "border-blurred": "#c3ccd6",
        "block-cursor-background": "#dbe7fb",
        "block-cursor-foreground": "#0b1a30",
        "block-cursor-text-style": "none",
        "block-cursor-blurred-background": "#e3e8ee",
        "block-cursor-blurred-foreground": "#1c2430",
        "footer-background": "#e9edf2",
        "footer-key-foreground": "#1f62c9",
        "scrollbar": "#c3ccd6",
        "scrollbar-hover": "#a9b5c2",
        "scrollbar-active": "#1f62c9",
        "scrollbar-background": "#f6f8fa",
        "scrollbar-background-hover": "#f6f8fa",
        "scrollbar-background-active": "#f6f8fa",
        "scrollbar-corner-color": "#f6f8fa",
    },
)

STYLES = Path(__file__).with_name("jaxprof.tcss")
"""Stylesheet of all screens and dialogs. The path is absolute, because Textual resolves a relative path beside the file
of the subclass."""
